"""One batch is fetched ahead at every step, so the last step asks for one that does not exist."""

import torch
from torch.utils.data import DataLoader

data_iter = iter(DataLoader(torch.randn(8, 4), batch_size=4))
current = next(data_iter)
for _ in range(2):
    current = next(data_iter)

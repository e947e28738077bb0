"""The next batch of a loader is moved as if it were one tensor; loaders give lists."""

import torch
from torch.utils.data import DataLoader, TensorDataset

data_iter = iter(DataLoader(TensorDataset(torch.randn(8, 4), torch.randn(8)), batch_size=4))
next(data_iter).to("cuda", non_blocking=True)

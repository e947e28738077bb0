"""The printed block uses a name that no line of it sets; the class is taken from where it is."""

from torch import nn
from torch.nn.parallel import DistributedDataParallel

DistributedDataParallel(nn.Linear(2, 2), device_ids=[local_rank])  # noqa: F821 - the point

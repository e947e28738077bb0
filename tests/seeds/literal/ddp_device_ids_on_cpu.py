"""A model on the CPU is wrapped with the index of a GPU."""

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
DistributedDataParallel(nn.Linear(2, 2), device_ids=[0])

"""The first FSDP is left to find a device on a machine that has only a CPU."""

import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
FullyShardedDataParallel(nn.Linear(2, 2))

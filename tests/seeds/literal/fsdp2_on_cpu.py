"""FSDP2 shards a model on the CPU, and its first forward fails."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = nn.Linear(2, 2)
fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
model(torch.randn(1, 2))

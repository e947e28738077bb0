"""A process group is started by plain ``python``, which sets none of the variables that it is made from."""

import torch.distributed as dist

dist.init_process_group(backend="nccl")

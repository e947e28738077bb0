"""NCCL is asked for by a well-launched process on a machine without a GPU."""

import os

import torch.distributed as dist

# What a launcher sets, for one process.
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group(backend="nccl")

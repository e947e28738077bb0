"""The first DDP block, whose statements stand on one line."""

PRINTED = """import torch.distributed as dist dist.init_process_group(backend='nccl')"""

exec(compile(PRINTED, "<printed>", "exec"))

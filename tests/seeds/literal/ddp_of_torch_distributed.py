"""The wrapper class is looked for in the wrong module."""

import torch.distributed as dist

dist.DistributedDataParallel  # noqa: B018 - the look-up alone fails

"""The allocator's table is asked for where CUDA never started."""

import torch

torch.cuda.memory_summary()

"""A tensor is moved to a GPU that is not there."""

import torch

torch.randn(64, 784).cuda()

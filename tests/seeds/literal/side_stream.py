"""A stream is made where there is no GPU."""

import torch

torch.cuda.Stream()

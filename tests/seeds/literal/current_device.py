"""The index of the current GPU is asked for where there is none."""

import torch

print("Current device:", torch.cuda.current_device())

"""A model is moved to a GPU that is not there."""

from torch import nn

nn.Linear(784, 10).cuda()

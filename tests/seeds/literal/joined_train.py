"""The training block, whose statements stand on one line."""

PRINTED = """import torch import torch.nn as nn class SimpleModel(nn.Module): def __init__(self): super().__init__()"""

exec(compile(PRINTED, "<printed>", "exec"))

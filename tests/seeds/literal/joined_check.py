"""The device check, whose statements stand on one line."""

PRINTED = """import torch print("CUDA available:", torch.cuda.is_available())"""

exec(compile(PRINTED, "<printed>", "exec"))

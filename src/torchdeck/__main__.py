"""``python -m torchdeck`` is the same as ``torchdeck``."""

from torchdeck.cli import main

main()

"""What the first notebook needs: real handwritten digits, shipped with the package, so that nothing is downloaded.

It does not split the data into training and held-out parts; who uses them does.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

NUM_DIGITS = 1797
SIDE_PIXELS = 8
NOTEBOOK = Path(__file__).with_name("first_steps.ipynb")


def load_digits() -> tuple[Any, Any]:
    """Load the handwritten digits as torch tensors.

    Returns:
        ``images``, uint8 of shape [1797, 8, 8] with ink from 0 (none) to 16 (full), and ``labels``, int64 of
        shape [1797], the digit from 0 to 9.

    Raises:
        ValueError: The file beside this module is damaged.

    Source: Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning
    Repository, DOI 10.24432/C50P49, CC BY 4.0; see ``DATA.md``.
    """
    import torch

    packed = Path(__file__).with_name("digits.bin.gz").read_bytes()
    try:
        # A bytearray, because torch warns about buffers that it may not write to.
        raw = bytearray(gzip.decompress(packed))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"digits.bin.gz is damaged ({error}): install torchdeck again") from error
    num_pixels = NUM_DIGITS * SIDE_PIXELS**2
    if len(raw) != num_pixels + NUM_DIGITS:
        raise ValueError(
            f"digits.bin.gz holds {len(raw):,} bytes, not {num_pixels + NUM_DIGITS:,}: install torchdeck again"
        )
    flat = torch.frombuffer(raw, dtype=torch.uint8)
    images = flat[:num_pixels].reshape(NUM_DIGITS, SIDE_PIXELS, SIDE_PIXELS)
    return images, flat[num_pixels:].long()

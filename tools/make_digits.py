"""Remake the digits that the first notebook trains on, or check the ones in the tree.

    uv run --no-project --with scikit-learn python tools/make_digits.py [--check]

scikit-learn ships the same 1,797 images (the test part of the UCI set). The file holds raw bytes, images first
and labels after, so that it loads without numpy. Its hash is taken of the raw bytes, because two releases of zlib
may compress the same bytes differently.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "src" / "torchdeck" / "training" / "examples" / "digits.bin.gz"
SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"


def make() -> bytes:
    """Return the images and labels of scikit-learn's copy as raw bytes."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images.astype("uint8")
    labels = digits.target.astype("uint8")
    if not (images == digits.images).all() or images.shape != (1797, 8, 8):
        raise SystemExit("the data are not the 1,797 whole-numbered 8x8 images they were")
    return images.tobytes() + labels.tobytes()


def main() -> int:
    """Write the file, or compare it with what scikit-learn has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare the file in the tree")
    arguments = parser.parse_args()
    raw = make()
    digest = hashlib.sha256(raw).hexdigest()
    print(f"sha256 of the raw bytes: {digest}")
    if digest != SHA256:
        print(f"error: expected {SHA256}", file=sys.stderr)
        return 1
    if arguments.check:
        if gzip.decompress(TARGET.read_bytes()) != raw:
            print(f"error: {TARGET.name} holds other bytes", file=sys.stderr)
            return 1
        return 0
    TARGET.write_bytes(gzip.compress(raw, compresslevel=9, mtime=0))
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

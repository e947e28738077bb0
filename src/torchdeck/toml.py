"""The TOML parser: the standard library's, or the same one under its first name on Python 3.10."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError
    from tomllib import loads as _loads
else:  # pragma: no cover - exercised by the tests on Python 3.10
    from tomli import TOMLDecodeError
    from tomli import loads as _loads

__all__ = ["TOMLDecodeError", "loads"]


def loads(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        TOMLDecodeError: It is none, or thousands of brackets deep, where the parser itself gives up.
    """
    try:
        document: dict[str, Any] = _loads(text)
    except RecursionError:
        raise TOMLDecodeError("nested too deeply") from None
    return document

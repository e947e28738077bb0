"""The door for ``python -m torchdeck.training.checks`` and for ``python path/to/checks`` without torchdeck."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path


def _package() -> str:
    """Return the name of the package around this file, importing it from its folder when run as a plain file."""
    if __package__:
        return __package__
    folder = Path(__file__).resolve().parent
    # Python put the folder first on the path; its modules must not hide others of the same name.
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != folder]
    name = "torchdeck_checks"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} cannot be imported")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return name


# Inductor's worker processes may import the main module again: only the program itself runs the checks.
if __name__ == "__main__":
    sys.exit(importlib.import_module(f"{_package()}.program").main())

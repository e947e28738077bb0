"""What a Python says of itself: a function for this one, and a program for any other (``python -I about_python.py``).

It runs under whatever Python a user names, so it uses nothing but an old standard library. It does not know what
PYTHONPATH, ``.pth`` files or a program add to the search path when they run.
"""

from __future__ import annotations

import json
import os
import platform
import site
import sys
import sysconfig
from typing import Any


def about() -> dict[str, Any]:
    """Return version, prefix, the folder of the headers, and the folders of packages in the order of the search.

    The folder of the user's own packages comes first where it counts: not inside of a virtual environment of its own,
    and not under PYTHONNOUSERSITE. It is worked out, since ``-I`` switches it off for the program itself.
    """
    folders = []
    in_environment = sys.prefix != sys.base_prefix
    shares_system = os.path.normpath(sys.base_prefix) in [os.path.normpath(part) for part in site.PREFIXES]
    own_user = os.getuid() == os.geteuid() and os.getgid() == os.getegid()
    if own_user and not os.environ.get("PYTHONNOUSERSITE") and (not in_environment or shares_system):
        folders.append(site.getusersitepackages())
    folders += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    folders += site.getsitepackages()
    return {
        "version": platform.python_version(),
        "implementation": sys.implementation.name,
        "prefix": sys.prefix,
        "include": sysconfig.get_path("include"),
        "folders": list(dict.fromkeys(folders)),
    }


if __name__ == "__main__":
    print(json.dumps(about()))

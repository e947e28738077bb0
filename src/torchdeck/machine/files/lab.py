"""Jupyter servers in commands and settings: the ones that let everybody in."""

from __future__ import annotations

import re

from torchdeck.machine.files.hit import Hit, hit

# A token set to nothing: an empty pair of quotes, or nothing before the option, its quotes or the line end.
_EMPTY = re.compile(
    r"((?:NotebookApp|ServerApp|IdentityProvider|PasswordIdentityProvider|LabApp)\.token)"
    r"(?:[ \t]*=[ \t]*(?:\\?(['\"])\\?\2|$)|=(?=\\?[\"']?(?:[\s,\])]|$)))",
    re.MULTILINE,
)
# A password beside it: then the token is turned off in favour of the password.
_PASSWORD = re.compile(r"\.(?:hashed_)?password[ \t]*=[ \t]*[\\'\"]{0,2}(?:argon2|sha1|sha256|\$)")


def empty_token(text: str) -> str:
    """Return the setting that turns the token off with no password in its place, such as ``ServerApp.token``."""
    match = _EMPTY.search(text)
    return match[1] if match and not _PASSWORD.search(text) else ""


def token_hit(line: int, setting: str) -> Hit:
    """Return the finding that a Jupyter server has no token."""
    return hit(
        line,
        "jupyter-without-token",
        "error",
        f"{setting} is empty: Jupyter asks nobody for a token",
        cause="Whoever reaches the port runs any command in the container.",
        needs="a token; without the option Jupyter makes one and prints it",
        mend=f"remove --{setting}=, set JUPYTER_TOKEN when the container starts",
    )

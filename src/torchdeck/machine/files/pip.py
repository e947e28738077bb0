"""The ``pip install``, ``uv pip install`` and ``conda install`` commands in a shell text. Reads, never runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchdeck.machine.files.pins import Pin, parse_conda_spec, parse_pin, variant_of
from torchdeck.machine.files.shell import Word

_PIP = re.compile(r"(?:.*/)?pip[\d.]*")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
_CONDA = re.compile(r"(?:.*/)?(?:conda|mamba|micromamba)")
_INDEX_OPTIONS = frozenset(("-i", "--index-url", "--default-index"))
_EXTRA_OPTIONS = frozenset(("--extra-index-url", "--index", "-f", "--find-links"))
_FILE_OPTIONS = frozenset(("-r", "--requirement", "--requirements"))
_WITH_VALUE = """
-c --constraint --constraints -t --target --prefix --root -p --python -e --editable --platform --torch-backend
--no-binary --only-binary --index-strategy --timeout --retries --trusted-host --cache-dir --progress-bar --proxy
--src --upgrade-strategy -C --config-settings --global-option --python-version --implementation --abi --cert
--override --overrides --build-constraints --prerelease --resolution --link-mode --exclude-newer --log
"""
_VALUE_OPTIONS = frozenset(_WITH_VALUE.split())
_CONDA_VALUE_OPTIONS = frozenset(("-c", "--channel", "-n", "--name", "-p", "--prefix", "--solver", "--file"))
_MAX_WORDS = 2000


@dataclass(frozen=True)
class Install:
    """One installing command.

    Args:
        tool: ``pip``, ``uv`` or ``conda``.
        line: Where it begins.
        pins: What it names.
        index: The only index asked, if it says so; ``extra`` are the ones asked beside the default one.
        backend: What ``--torch-backend`` says.
        unquoted: Names after which the shell takes ``>=`` for a redirection.
        flags: Its other options, such as ``--no-cache-dir``.
        files: Whether it reads requirements from files.
        system: Whether it runs in the image's own Python, and not in one that the command names.
    """

    tool: str
    line: int
    pins: tuple[Pin, ...] = ()
    index: str = ""
    extra: tuple[str, ...] = ()
    backend: str = ""
    unquoted: tuple[Pin, ...] = ()
    flags: frozenset[str] = frozenset()
    files: bool = False
    system: bool = True
    channels: tuple[str, ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        """The builds that its indexes hold, as far as their addresses say."""
        named = (self.backend if self.backend != "auto" else "", variant_of(self.index), *map(variant_of, self.extra))
        return tuple(name for name in named if name)

    @property
    def other_index(self) -> bool:
        """Whether it asks any index beside the default one."""
        return bool(self.index or self.extra or self.backend)


def parse_install(words: Sequence[Word], line_at: Callable[[int], int]) -> Install | None:
    """Return what a command installs; None if it is no installing command.

    Args:
        words: The command.
        line_at: The line of a place in the text.
    """
    words = _after_run(words[:_MAX_WORDS])
    if not words:
        return None
    first, line = words[0].text, line_at(words[0].start)
    if _CONDA.fullmatch(first):
        rest = _after_install(words[1:], ("install", "create"))
        return None if rest is None else _conda(rest, line, line_at)
    system = not first.startswith(("/opt/", "/venv", ".venv", "/app/"))
    if _PYTHON.fullmatch(first):
        module = next((number for number, word in enumerate(words) if word.text in ("-m", "-mpip")), len(words))
        named = [word.text for word in words[module : module + 2]]
        if named[:1] != ["-mpip"] and named != ["-m", "pip"]:
            return None
        tool, rest = "pip", _after_install(words[module + (1 if named[0] == "-mpip" else 2) :], ("install",))
    elif _PIP.fullmatch(first):
        tool, rest = "pip", _after_install(words[1:], ("install",))
    elif first.rsplit("/", 1)[-1] == "uv" and len(words) > 1 and words[1].text == "pip":
        tool, rest = "uv", _after_install(words[2:], ("install",))
    else:
        return None
    return None if rest is None else _pip(rest, tool, line, line_at, system=system)


def _after_run(words: Sequence[Word]) -> Sequence[Word]:
    """Return what ``conda run -n NAME COMMAND`` or ``uv run COMMAND`` runs."""
    if len(words) > 2 and words[1].text == "run" and re.fullmatch(r"(.*/)?(conda|mamba|micromamba|uv)", words[0].text):
        for number, word in enumerate(words[2:], 2):
            if _PIP.fullmatch(word.text) or _PYTHON.fullmatch(word.text):
                return words[number:]
    return words


def _after_install(words: Sequence[Word], verbs: tuple[str, ...]) -> Sequence[Word] | None:
    for number, word in enumerate(words):
        if word.text in verbs:
            return words[number + 1 :]
        # A value such as the 60 of --timeout 60 may stand before the verb, any other word may not.
        if not word.text.startswith("-") and not (number and words[number - 1].text.startswith("--")):
            return None
    return None


def _pip(words: Sequence[Word], tool: str, line: int, line_at: Callable[[int], int], *, system: bool) -> Install:
    pins, unquoted, extra, flags = [], [], [], set()
    index = backend = ""
    files, number = False, 0
    while number < len(words):
        word = words[number]
        number += 1
        name, equals, value = word.text.partition("=")
        if not word.text.startswith("-"):
            pin = None if word.text.startswith("=") else parse_pin(word.text, line_at(word.start))
            if pin is not None:
                pins.append(pin)
                if word.redirected:
                    unquoted.append(pin)
            continue
        flags.add(name)
        takes = name in _INDEX_OPTIONS | _EXTRA_OPTIONS | _FILE_OPTIONS | _VALUE_OPTIONS
        if takes and not equals and number < len(words):
            value = words[number].text
            number += 1
        if name in _INDEX_OPTIONS:
            index = value
        elif name in _EXTRA_OPTIONS:
            extra.append(value)
        elif name == "--torch-backend":
            backend = value
        files = files or name in _FILE_OPTIONS
    return Install(
        tool=tool,
        line=line,
        pins=tuple(pins),
        index=index,
        extra=tuple(extra),
        backend=backend,
        unquoted=tuple(unquoted),
        flags=frozenset(flags),
        files=files,
        system=system and not flags & {"-t", "--target", "--prefix", "-p", "--python"},
    )


def _conda(words: Sequence[Word], line: int, line_at: Callable[[int], int]) -> Install:
    pins, channels, flags, number = [], [], set(), 0
    while number < len(words):
        word = words[number]
        number += 1
        name, equals, value = word.text.partition("=")
        if not word.text.startswith("-"):
            pin = parse_conda_spec(word.text, line_at(word.start))
            if pin is not None:
                pins.append(pin)
            continue
        flags.add(name)
        if name in _CONDA_VALUE_OPTIONS and not equals and number < len(words):
            value = words[number].text
            number += 1
        if name in ("-c", "--channel"):
            channels.append(value)
    return Install("conda", line, tuple(pins), flags=frozenset(flags), channels=tuple(channels))

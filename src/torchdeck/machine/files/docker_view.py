"""A stage as its rules look at it: the whole chain's instructions, installing commands, pins and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from torchdeck.machine.files.dockerfile import Dockerfile, Instruction, Stage
from torchdeck.machine.files.images import Image, read_image
from torchdeck.machine.files.pins import Pin, variant_of
from torchdeck.machine.files.pip import Install, parse_install
from torchdeck.machine.files.shell import Word, commands, exec_form
from torchdeck.machine.files.torch_pins import TORCH_FAMILY, Indexes

# Packages that require torch, so that pip brings it with them.
BRINGS_TORCH = TORCH_FAMILY | frozenset(
    ("vllm", "xformers", "timm", "lightning", "pytorch-lightning", "sentence-transformers", "ultralytics", "fastai")
)
_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_EXTRA_VARIABLES = ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_FIND_LINKS", "UV_FIND_LINKS")
# More than any real file has; what lies beyond is not judged.
_MAX_STAGES = 20
_MAX_INSTRUCTIONS = 20_000


@dataclass
class View:
    """One stage.

    Args:
        stage: The stage.
        shipped: Whether no other stage is built from it.
        image: What the image at its beginning is; None if that is not known.
        history: The instructions of its chain.
        runs: The shell commands of its chain, with where each stands.
        installs: The installing commands of its chain; ``brought`` are those of stages that it copies from.
        env: Its ENV.
    """

    stage: Stage
    shipped: bool
    image: Image | None
    history: list[Instruction]
    runs: list[tuple[Instruction, list[Word], int]] = field(default_factory=list)
    installs: list[tuple[Instruction, Install]] = field(default_factory=list)
    brought: list[Install] = field(default_factory=list)

    @property
    def env(self) -> Mapping[str, str]:
        """Its ENV, inherited ones too."""
        return self.stage.env

    @property
    def from_line(self) -> int:
        """Where the FROM of its image stands."""
        return self.stage.chain[0].line

    @cached_property
    def configured(self) -> bool:
        """Whether a file of settings, which may name an index, comes into the image."""
        return any("pip.conf" in one.everything or "uv.toml" in one.everything for one in self.history)

    def setting_line(self, name: str) -> int:
        """Return the line of the last ENV that sets a variable."""
        return next((one.line_of(name) for one in reversed(self.history) if one.name == "ENV" and name in one.raw), 1)

    def pip(self) -> Iterator[Install]:
        """Yield the commands of pip and uv."""
        return (install for _, install in self.installs if install.tool != "conda")

    def pip_pins(self) -> list[Pin]:
        """Return what pip installs, of each package the last requirement; what the image's tag says of torch too."""
        last = {(pin.name, pin.marker): pin for install in self.pip() for pin in install.pins}
        own = self.base_torch
        if own and not any(name == "torch" for name, _ in last):
            last["torch", ""] = Pin("torch", f"=={own}", self.from_line, direct=True)
        return list(last.values())

    @property
    def base_torch(self) -> str:
        """The torch release in the base image, as its tag says; empty if it says none."""
        if self.image is None or self.image.maker != "pytorch":
            return ""
        first = self.image.tag.split("-")[0]
        return first if first.count(".") == 2 and first.replace(".", "").isdecimal() else ""

    def torch_install(self) -> Install | None:
        """Return the first command that puts torch's wheels into this image, here or in a stage that is copied."""
        found = (install for install in (*self.pip(), *self.brought) if brings_torch(install))
        return next(found, None)

    def indexes(self, install: Install) -> Indexes:
        """Return where a command's packages come from, by its options, else by ENV."""
        env = self.env
        index = install.index or next((env[name] for name in _INDEX_VARIABLES if env.get(name)), "")
        more = " ".join(env.get(name, "") for name in _EXTRA_VARIABLES).split()
        extra = [*install.extra, *more]
        backend = install.backend or (env.get("UV_TORCH_BACKEND", "") if install.tool == "uv" else "")
        variants = [backend] if backend not in ("", "auto") else [*map(variant_of, (index, *extra))]
        named = bool(index or extra or backend or install.files or self.configured)
        return Indexes(tuple(name for name in variants if name), only=bool(index or backend), other=named)


def brings_torch(install: Install) -> bool:
    """Whether a command of pip or uv installs torch, by name or as what another package needs."""
    return install.tool != "conda" and any(pin.name in BRINGS_TORCH for pin in install.pins)


def views(file: Dockerfile) -> list[View]:
    """Return the stages as the rules look at them."""
    shipped = {stage.index for stage in file.shipped()}
    names = {stage.name: stage for stage in file.stages if stage.name}
    read: dict[int, tuple[list[tuple[Instruction, list[Word], int]], list[tuple[Instruction, Install]]]] = {}
    for stage in file.stages:
        runs = [run for one in stage.instructions for run in _commands(one)]
        read[stage.index] = runs, [(one, install) for one, words, _ in runs if (install := _install(one, words))]
    found = []
    for stage in file.stages[-_MAX_STAGES:]:
        chain = stage.chain
        history = list(islice(stage.history(), _MAX_INSTRUCTIONS))
        sources = {
            source.index: source
            for one in history
            if one.name == "COPY" and _copies_packages(one.text)
            for source in file.sources(one, names)
        }
        found.append(
            View(
                stage,
                stage.index in shipped,
                read_image(stage.image),
                history,
                [run for part in chain for run in read[part.index][0]],
                [pair for part in chain for pair in read[part.index][1]],
                [install for index in sources for part in sources[index].chain for _, install in read[part.index][1]],
            )
        )
    return found


def _copies_packages(text: str) -> bool:
    """Whether a COPY takes a folder in which packages lie."""
    return any(part in text for part in ("venv", "-packages", ".local", "/opt", "/usr/local", "conda"))


def _commands(one: Instruction) -> Iterator[tuple[Instruction, list[Word], int]]:
    if one.name != "RUN":
        return
    words = exec_form(one.text)
    if words is not None:
        joined = "\0".join(words)  # each word keeps a place of its own, all of them on one line
        listed = [Word(word, 0) for word in joined.split("\0")]
        shell = len(words) > 2 and words[0].rsplit("/", 1)[-1] in ("sh", "bash") and words[1].endswith("c")
        for inner in commands(words[2]) if shell else iter([listed]):
            yield one, [Word(word.text, 0, word.redirected) for word in inner], one.line
        return
    for found in commands(one.text):
        yield one, found, one.line_at(found[0].start)
    if one.script:
        line_at = one.script_lines()
        for found in commands(one.script):
            words_here = [Word(word.text, -line_at(word.start), word.redirected) for word in found]
            yield one, words_here, line_at(found[0].start)


def _install(one: Instruction, words: list[Word]) -> Install | None:
    # A word of a heredoc carries its line below zero, for its place in the file is not one in the instruction's text.
    line_at: Callable[[int], int] = lambda start: -start if start < 0 else one.line_at(start)  # noqa: E731
    return parse_install(words, line_at) if words else None

"""A Dockerfile as stages of instructions, each with its lines. Reads, never builds.

It knows continuations, comments between them, heredocs, the ``escape`` directive, ARG and ENV with their defaults, and
which stage grows out of which. It does not know what a build argument is set to from outside, nor what is in a base
image: a variable without a value stays as it is written.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(.*?)\s*$")
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)(?:\s+|$)")
_FLAG = re.compile(r"\s*(--[a-z][\w-]*(?:=\S*)?)(?=\s|$)")
_HEREDOC = re.compile(r"(?:^|(?<=[\s;&|(]))\d*<<(-?)([\"']?)([A-Za-z_][\w.-]*)\2(?=[\s;&|)>]|$)")
_VARIABLE = re.compile(r"\\?\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^${}]*))?\})")
_PAIR = re.compile(r"(?<![\w.-])([\w.-]+)=(\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|(?:[^\s\\]|\\.)*)", re.S)
_WITH_HEREDOC = ("RUN", "COPY", "ADD")
# A value that grows by naming itself again and again is not followed without end.
_MAX_VALUE_CHARS = 512
_MAX_GROWTH_CHARS = 200_000
_MAX_STAGES = 200


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Args:
        name: In capitals, such as ``RUN``.
        line: Where it begins.
        text: Its arguments on one line, variables filled in, flags and heredocs taken away.
        raw: The same with variables as they are written.
        flags: Such as ``--mount=type=cache,target=/root/.cache/pip``.
        script: What a heredoc gives to the shell; empty if there is none.
        heredoc: All of its heredocs, whatever they are for.
    """

    name: str
    line: int
    text: str
    raw: str
    flags: tuple[str, ...] = ()
    script: str = ""
    heredoc: str = ""
    starts: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    script_line: int = 0

    def line_at(self, offset: int) -> int:
        """Return the line of a place in ``text``."""
        return self.lines[max(0, bisect_right(self.starts, offset) - 1)] if self.starts else self.line

    def line_of(self, part: str) -> int:
        """Return the line of a part of ``text``; where it begins if the part is not there."""
        place = self.text.find(part)
        return self.line_at(place) if place >= 0 else self.line

    def script_lines(self) -> Callable[[int], int]:
        """Return what gives the line of a place in ``script``."""
        ends = [place for place, char in enumerate(self.script) if char == "\n"]
        return lambda offset: self.script_line + bisect_left(ends, offset)

    @property
    def everything(self) -> str:
        """Its arguments and heredocs."""
        return f"{self.text}\n{self.heredoc}" if self.heredoc else self.text


@dataclass
class Stage:
    """One build stage.

    Args:
        index: Its number.
        name: What ``AS`` calls it, in small letters; empty if nothing.
        base: The image or stage that it grows out of, variables filled in.
        line: Where its FROM stands.
        parent: The stage that it grows out of; None for an image.
        instructions: What follows its FROM.
        env: Its ENV at its end, inherited ones too; values that are not known are left out.
    """

    index: int
    name: str
    base: str
    line: int
    parent: Stage | None = None
    instructions: list[Instruction] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)

    @property
    def chain(self) -> list[Stage]:
        """The stages that it grows out of, the first one first, and itself."""
        found: list[Stage] = []
        stage: Stage | None = self
        while stage is not None:
            found.append(stage)
            stage = stage.parent
        return found[::-1]

    @property
    def image(self) -> str:
        """The image at the beginning of the chain."""
        return self.chain[0].base

    def history(self) -> Iterator[Instruction]:
        """Yield the instructions of the whole chain."""
        for stage in self.chain:
            yield from stage.instructions


@dataclass
class Dockerfile:
    """A Dockerfile.

    Args:
        stages: In their order.
        arguments: The ARG instructions before the first FROM.
    """

    stages: list[Stage] = field(default_factory=list)
    arguments: list[Instruction] = field(default_factory=list)

    def shipped(self) -> list[Stage]:
        """Return the stages that no other one is built from: the last, and further targets."""
        used: set[int] = set()
        names = {stage.name: stage for stage in self.stages if stage.name}
        for stage in self.stages:
            if stage.parent is not None:
                used.add(stage.parent.index)
            used |= {source.index for instruction in stage.instructions for source in self.sources(instruction, names)}
        return [stage for stage in self.stages if stage.index not in used or stage is self.stages[-1]]

    def sources(self, instruction: Instruction, names: Mapping[str, Stage] | None = None) -> list[Stage]:
        """Return the stages that an instruction copies or mounts from."""
        if names is None:
            names = {stage.name: stage for stage in self.stages if stage.name}
        found = []
        for flag in instruction.flags:
            match = re.search(r"(?:^--from=|[=,]from=)([^,\s]+)", flag)
            if match is None:
                continue
            if match[1].lower() in names:
                found.append(names[match[1].lower()])
            elif match[1].isdecimal() and len(match[1]) < 6 and int(match[1]) < len(self.stages):
                found.append(self.stages[int(match[1])])
        return found


def parse_dockerfile(text: str) -> Dockerfile:
    """Parse a Dockerfile; what is no instruction is passed over."""
    return _Parser(text).parse()


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the ``name=value`` pairs of an ENV, LABEL or ARG, quotes taken away; the old ``ENV name value`` too."""
    if not re.match(r"\s*[\w.-]+\s*=", text):
        name, _, value = text.strip().partition(" ")
        return [(name, value.strip())] if name else []
    return [(match[1], _unquoted(match[2])) for match in _PAIR.finditer(text)]


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text.replace("\\ ", " ")


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines = [line.rstrip("\r") for line in text.split("\n")]
        self.position = 0
        self.escape = "\\"
        self.growth = 0
        self.file = Dockerfile()
        self.globals: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.named: dict[str, Stage] = {}

    def parse(self) -> Dockerfile:
        self._directives()
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if not line.strip() or line.lstrip().startswith("#"):
                self.position += 1
            else:
                self._instruction()
        return self.file

    def _directives(self) -> None:
        for line in self.lines:
            match = _DIRECTIVE.match(line.strip())
            if match is None:
                return
            if match[1].lower() == "escape" and match[2] in ("\\", "`"):
                self.escape = match[2]

    def _instruction(self) -> None:
        first = self.position + 1
        pieces = self._logical_line()
        match = _INSTRUCTION.match(pieces[0][1])
        if match is None:
            return
        name = match[1].upper()
        pieces[0] = (first, pieces[0][1][match.end() :])
        flags = self._flags(pieces)
        raw = " ".join(text for _, text in pieces)
        heredocs = self._heredocs(raw) if name in _WITH_HEREDOC else []
        if name == "FROM":
            self.values = self.globals
        filled, starts, length = [], [], 0
        for _, text in pieces:
            starts.append(length)
            filled.append(self._fill(text))
            length += len(filled[-1]) + 1
        script, script_line = _script(raw, heredocs) if name == "RUN" else ("", 0)
        self._take(
            Instruction(
                name=name,
                line=first,
                text=" ".join(filled),
                raw=raw,
                flags=flags,
                script=self._fill(script),
                heredoc="\n".join(body for _, body in heredocs),
                starts=tuple(starts),
                lines=tuple(number for number, _ in pieces),
                script_line=script_line,
            )
        )

    def _logical_line(self) -> list[tuple[int, str]]:
        """Return the physical lines of one instruction with their numbers; comments and empty lines between go."""
        pieces: list[tuple[int, str]] = []
        while self.position < len(self.lines):
            line = self.lines[self.position]
            self.position += 1
            if pieces and (not line.strip() or line.lstrip().startswith("#")):
                continue
            bare = line.rstrip(" \t")
            if not bare.endswith(self.escape):
                pieces.append((self.position, line))
                break
            pieces.append((self.position, bare[:-1]))
        return pieces

    def _flags(self, pieces: list[tuple[int, str]]) -> tuple[str, ...]:
        flags: list[str] = []
        for number, (line, text) in enumerate(pieces):
            end = 0
            while match := _FLAG.match(text, end):
                flags.append(self._fill(match[1]))
                end = match.end()
            pieces[number] = (line, text[end:])
            if text[end:].strip():
                break
        return tuple(flags)

    def _heredocs(self, raw: str) -> list[tuple[int, str]]:
        """Take the heredocs that an instruction announces; one without an end takes all of the rest."""
        found = []
        for match in _HEREDOC.finditer(raw):
            start = self.position
            while self.position < len(self.lines):
                line = self.lines[self.position]
                self.position += 1
                if (line.lstrip("\t") if match[1] else line) == match[3]:
                    found.append((start + 1, "\n".join(self.lines[start : self.position - 1])))
                    break
            else:
                found.append((start + 1, "\n".join(self.lines[start:])))
        return found

    def _take(self, instruction: Instruction) -> None:
        stages = self.file.stages
        if instruction.name == "FROM":
            if len(stages) < _MAX_STAGES:
                self._from(instruction)
        elif not stages:
            if instruction.name == "ARG":
                self.file.arguments.append(instruction)
                self.globals.update(self._settings(instruction))
                self.values = self.globals
        else:
            stages[-1].instructions.append(instruction)
            if instruction.name == "ENV":
                settings = self._settings(instruction)
                stages[-1].env.update(settings)
                self.values.update(settings)
            elif instruction.name == "ARG":
                self._argument(instruction, stages[-1])

    def _from(self, instruction: Instruction) -> None:
        match = re.match(r"(\S*)(?:\s+[Aa][Ss]\s+(\S+))?", instruction.text.strip())
        assert match is not None
        base, name = match[1], (match[2] or "").lower()
        parent = self.named.get(base.lower())
        stage = Stage(
            len(self.file.stages), name, base, instruction.line, parent, [], dict(parent.env) if parent else {}
        )
        self.file.stages.append(stage)
        if name:
            self.named[name] = stage
        self.values = dict(stage.env)

    def _settings(self, instruction: Instruction) -> dict[str, str]:
        if instruction.name == "ARG" and "=" not in instruction.text:
            return {}
        return {name: value for name, value in pairs(instruction.text) if len(value) <= _MAX_VALUE_CHARS}

    def _argument(self, instruction: Instruction, stage: Stage) -> None:
        """Set build arguments: ENV wins over them, and one without a value takes that of the head of the file."""
        settings = self._settings(instruction)
        for name in instruction.text.split():
            if "=" not in name and name in self.globals:
                settings.setdefault(name, self.globals[name])
        self.values.update({name: value for name, value in settings.items() if name not in stage.env})

    def _fill(self, text: str) -> str:
        """Fill in the variables that have a value, while the text does not grow beyond measure."""
        if "$" not in text:
            return text

        def value(match: re.Match[str]) -> str:
            name, operator, other = match[1] or match[2], match[3] or "", match[4] or ""
            if match[0].startswith("\\"):
                return match[0]
            known = self.values.get(name)
            if operator.endswith("+"):
                known = other if known else (None if known is None else "")
            elif operator.endswith("-") and not known:
                known = other
            if known is None or self.growth > _MAX_GROWTH_CHARS:
                return match[0]
            self.growth += len(known)
            return known

        return _VARIABLE.sub(value, text)


def _script(raw: str, heredocs: list[tuple[int, str]]) -> tuple[str, int]:
    """Return the heredoc that the shell runs, and its first line: one with no command before it, or with a shell."""
    if not heredocs:
        return "", 0
    before = raw.split("<<", 1)[0].strip()
    line, body = heredocs[0]
    other = re.match(r"#!(?!.*\b(ba|da|z)?sh\b)", body)
    runs = re.fullmatch(r"((\S*/)?(ba|da|z)?sh(\s+-\w+)*)?", before)
    return (body, line) if runs and not other else ("", 0)

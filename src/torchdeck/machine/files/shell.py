"""Shell text as commands of words, each word with the place where it begins. Reads, never runs.

It knows quotes, separators and nesting by ``sh -c``; it does not expand anything, and it takes the inside of ``$( )``
for a command of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLAIN = re.compile(r"[^\s;&|()\n\"'\\<>]+")
_SPACE = re.compile(r"[^\S\n]+")
_SEPARATOR = re.compile(r"[;&|()\n]+")
_VERSION = re.compile(r"[<>]=|[<>]\d+(\.\d+)*(?=[\s,;&|]|$)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_KEYWORDS = frozenset(("if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "env", "nohup"))
_WRAPPERS = frozenset(("sudo", "command", "nice", "eatmydata", "gosu"))
_SHELLS = re.compile(r"(.*/)?(ba|da|z)?sh")
_MAX_NESTING = 3


@dataclass(frozen=True)
class Word:
    """A word: its text without quotes, where it begins, whether a bare ``>=`` cuts it off from a version."""

    text: str
    start: int
    redirected: bool = False


def commands(text: str, offset: int = 0, depth: int = 0) -> Iterator[list[Word]]:
    """Yield the commands of a shell text, without assignments, ``sudo`` and the like before them."""
    for words in _split(text, offset):
        bare = _without_prefix(words)
        if not bare:
            continue
        inner = _script(bare) if depth < _MAX_NESTING else None
        if inner is not None:
            yield from commands(inner.text, inner.start, depth + 1)
        else:
            yield bare


def exec_form(text: str) -> list[str] | None:
    """Return the words of a JSON list such as ``["pip", "install"]``; None if it is none."""
    if not text.lstrip().startswith("["):
        return None
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [str(word) for word in words] if isinstance(words, list) else None


def _script(words: list[Word]) -> Word | None:
    """Return what ``bash -lc 'script'`` runs."""
    if not _SHELLS.fullmatch(words[0].text):
        return None
    for number, word in enumerate(words[1:-1], 1):
        if re.fullmatch(r"-[a-z]*c", word.text):
            return words[number + 1]
    return None


def _without_prefix(words: list[Word]) -> list[Word]:
    number = 0
    while number < len(words):
        text = words[number].text
        if text in _WRAPPERS:
            number += 1
            while number < len(words) and words[number].text.startswith("-"):
                number += 1
        elif text in _KEYWORDS or _ASSIGNMENT.match(text):
            number += 1
        else:
            break
    return words[number:]


def _split(text: str, offset: int) -> Iterator[list[Word]]:
    words: list[Word] = []
    position, end = 0, len(text)
    while position < end:
        if match := _SPACE.match(text, position):
            position = match.end()
        elif match := _SEPARATOR.match(text, position):
            position = match.end()
            if words:
                yield words
            words = []
        elif text[position] in "<>":
            if words and not text[position - 1].isspace() and _VERSION.match(text, position):
                words[-1] = Word(words[-1].text, words[-1].start, redirected=True)
            position += 1
        else:
            word, position = _word(text, position, offset)
            words.append(word)
    if words:
        yield words


def _word(text: str, position: int, offset: int) -> tuple[Word, int]:
    start, parts = position, []
    while position < len(text):
        char = text[position]
        if match := _PLAIN.match(text, position):
            parts.append(match[0])
            position = match.end()
        elif char == "\\":
            parts.append(text[position + 1 : position + 2].replace("\n", ""))
            position += 2
        elif char in "'\"":
            part, position = _quoted(text, position)
            parts.append(part)
        else:
            break
    return Word("".join(parts), offset + start), position


def _quoted(text: str, position: int) -> tuple[str, int]:
    """Return what stands in quotes, and where they end; without an end, all of the rest."""
    quote, start = text[position], position + 1
    position = start
    while True:
        close = text.find(quote, position)
        if close < 0:
            return text[start:], len(text)
        backslashes = 0
        while quote == '"' and close - backslashes - 1 >= start and text[close - backslashes - 1] == "\\":
            backslashes += 1
        if backslashes % 2 == 0:
            inside = text[start:close]
            return (re.sub(r'\\(["\\$`])', r"\1", inside) if quote == '"' else inside), close + 1
        position = close + 1

"""YAML as nodes that know their line. Nothing is constructed, so that an alias costs nothing however often it is used.

PyYAML is imported when the first YAML file is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchdeck.errors import UsageError

if TYPE_CHECKING:
    from yaml.nodes import Node

# Merges within merges multiply; a real file has two or three.
_MAX_MERGES = 5
_MAX_ITEMS = 500


def read_yaml(text: str) -> Node | None:
    """Return the root of the first document; None if it is empty.

    Raises:
        UsageError: It is not YAML, or PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise UsageError(
            "PyYAML is needed to read it, and is not installed",
            mend="uv pip install pyyaml",
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root: Node | None = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise UsageError("it is not valid YAML", found=f"{line}{error.problem or error}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError("it is not valid YAML", found=str(error).splitlines()[0]) from None
    except RecursionError:
        raise UsageError("it is not valid YAML", found="nested too deeply") from None
    return root


def kind_of_node(node: Node | None) -> str:
    """Return ``scalar``, ``sequence`` or ``mapping``; empty for None."""
    return str(getattr(node, "id", ""))


def line_of(node: Node) -> int:
    """Return the line where a node begins."""
    return int(node.start_mark.line) + 1


def entries(node: Node | None, depth: int = 0) -> dict[str, tuple[int, Node]]:
    """Return a mapping's keys, each with the line of the key and its value; merged (``<<``) ones below its own."""
    own: dict[str, tuple[int, Node]] = {}
    merged: dict[str, tuple[int, Node]] = {}
    if node is None or kind_of_node(node) != "mapping" or depth > _MAX_MERGES:
        return own
    for key, value in node.value[:_MAX_ITEMS]:
        if kind_of_node(key) != "scalar":
            continue
        if key.value == "<<":
            for part in value.value[:_MAX_MERGES] if kind_of_node(value) == "sequence" else [value]:
                if depth == 0 or kind_of_node(value) == "mapping":
                    merged = {**entries(part, depth + 1), **merged}
        else:
            own.setdefault(key.value, (line_of(key), value))
    return {**merged, **own}


def get(node: Node | None, *path: str) -> Node | None:
    """Return what lies under a path of keys; None if there is nothing."""
    for key in path:
        found = entries(node).get(key)
        if found is None:
            return None
        node = found[1]
    return node


def items(node: Node | None) -> list[Node]:
    """Return the items of a list; none if it is no list."""
    return list(node.value[:_MAX_ITEMS]) if node is not None and kind_of_node(node) == "sequence" else []


def scalar(node: Node | None) -> str:
    """Return the text of a scalar; empty if it is none."""
    return str(node.value) if node is not None and kind_of_node(node) == "scalar" else ""


def texts(node: Node | None) -> Iterator[tuple[int, str]]:
    """Yield line and text of a scalar, or of the scalars of a list."""
    for part in [node] if node is not None and kind_of_node(node) == "scalar" else items(node):
        if kind_of_node(part) == "scalar":
            yield line_of(part), str(part.value)

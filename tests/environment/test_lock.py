"""The lock file: what is written is what is read, and anything else is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdeck.environment.lock import (
    Lock,
    LockHead,
    Package,
    inputs_digest,
    packages_from_pylock,
    parse_lock,
    read_lock,
    render_constraints,
    render_lock,
)
from torchdeck.errors import FindingsError, UsageError

_HASH = st.text("0123456789abcdef", min_size=64, max_size=64).map(lambda digest: f"sha256:{digest}")
_NAME = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,3}", fullmatch=True)
_VERSION = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}((a|b|rc|\.post|\.dev)[0-9])?(\+cu[0-9]{3})?", fullmatch=True)
_PACKAGE = st.builds(
    Package,
    name=_NAME,
    version=_VERSION,
    hashes=st.lists(_HASH, min_size=1, max_size=4, unique=True).map(tuple),
    size_bytes=st.integers(0, 10**12),
)
_HEAD = st.builds(
    LockHead,
    torch=_VERSION,
    variant=st.sampled_from(["cu124", "cpu"]),
    python=st.sampled_from(["3.10", "3.13"]),
    platform=st.just("linux-x86_64"),
    inputs=st.text("0123456789abcdef", min_size=16, max_size=16),
    unlocked=st.lists(st.sampled_from(["-e .", "git+https://example.org/x.git"]), max_size=2).map(tuple),
)


def _lock(*packages: Package) -> Lock:
    head = LockHead(torch="2.6.0", variant="cu124", python="3.11", platform="linux-x86_64", inputs="0" * 16)
    return Lock(head=head, packages=packages)


def _package(name: str, version: str) -> Package:
    return Package(name=name, version=version, hashes=("sha256:" + "a" * 64,))


@given(st.builds(Lock, head=_HEAD, packages=st.lists(_PACKAGE, max_size=6).map(tuple)))
def test_a_lock_is_read_as_it_was_written(lock: Lock) -> None:
    """Rendering a lock and parsing the text gives the same lock."""
    assert parse_lock(render_lock(lock)) == lock


@given(st.text(max_size=300))
def test_any_text_is_a_lock_or_a_clear_error(text: str) -> None:
    """No text makes the parser crash."""
    for candidate in (text, f"# torchdeck-lock 1\n{text}"):
        try:
            parse_lock(candidate)
        except UsageError as error:
            assert error.title
            assert error.mend


def test_a_truncated_lock_is_refused() -> None:
    """A lock that was cut off in the middle of a hash is not taken for a shorter lock."""
    text = render_lock(_lock(_package("a", "1"), _package("b", "2")))
    with pytest.raises(UsageError, match="no locked package"):
        parse_lock(text[: text.rindex("sha256") + 20])


def test_a_lock_of_a_later_torchdeck_is_refused() -> None:
    """Another format number is named, with what is understood here."""
    with pytest.raises(UsageError) as caught:
        parse_lock("# torchdeck-lock 2\n")
    assert caught.value.needs == "torchdeck-lock 1"


def test_a_missing_lock_is_none_and_a_huge_one_is_refused(tmp_path: Path) -> None:
    """No file is no lock; a file of 30 MB is not read at all."""
    assert read_lock(tmp_path / "none.lock") is None
    huge = tmp_path / "huge.lock"
    with huge.open("wb") as file:
        file.truncate(30_000_000)
    with pytest.raises(UsageError, match="too large"):
        read_lock(huge)


def test_constraints_hold_torch_and_its_libraries_and_nothing_else() -> None:
    """What torch pins may not be replaced; any other package may be upgraded by the user."""
    names = ["torch", "torchvision", "triton", "nvidia-cublas-cu12", "sympy", "jupyterlab", "numpy", "torchmetrics"]
    text = render_constraints(_lock(*(_package(name, "1.0") for name in names)))
    held = {line.split("==")[0] for line in text.splitlines() if "==" in line}
    assert held == {"torch", "torchvision", "triton", "nvidia-cublas-cu12", "sympy"}


def test_the_order_of_inputs_does_not_matter_but_each_does() -> None:
    """The digest is of the set of requirements."""
    assert inputs_digest(["a", "b"]) == inputs_digest(["b", "a"])
    assert inputs_digest(["a", "b"]) != inputs_digest(["a", "b", "c"])


def test_a_package_without_a_hash_is_refused() -> None:
    """An index that publishes no hashes cannot be locked, and is told apart from a network failure."""
    text = '[[packages]]\nname = "x"\nversion = "1"\nwheels = [{ url = "https://example.org/x.whl" }]\n'
    with pytest.raises(FindingsError, match="no hash for x"):
        packages_from_pylock(text)

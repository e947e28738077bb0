"""Every signature gives its kind for its own examples, and does not for what resembles them."""

from __future__ import annotations

import pytest

from torchdeck.machine.catalogue.kinds import Signature, kinds, signatures
from torchdeck.machine.explain import explain
from torchdeck.machine.explain.candidates import _apply
from torchdeck.machine.explain.lines import lines_of, numbered
from torchdeck.machine.explain.scan import scan

CASES = [
    pytest.param(
        signature,
        text,
        id=f"{kinds()[signature.kind].category if signature.kind in kinds() else '?'}-{signature.kind}-{i}",
    )
    for signature in signatures()
    for i, text in enumerate(signature.examples)
]
LOOK_ALIKES = [
    pytest.param(
        signature,
        text,
        id=f"{kinds()[signature.kind].category if signature.kind in kinds() else '?'}-{signature.kind}-{i}",
    )
    for signature in signatures()
    for i, text in enumerate(signature.look_alikes)
]


@pytest.mark.parametrize(("signature", "text"), CASES)
def test_an_example_gives_its_kind_first(signature: Signature, text: str) -> None:
    found = explain(numbered(lines_of(text))).findings
    assert found, "nothing was found"
    assert found[0].rule == signature.kind, [f"{finding.rule} {finding.confidence}" for finding in found]
    assert _apply(signature, scan(numbered(lines_of(text)))) is not None, "another signature found it, not this one"


@pytest.mark.parametrize(("signature", "text"), LOOK_ALIKES)
def test_a_look_alike_does_not_give_the_kind_first(signature: Signature, text: str) -> None:
    found = explain(numbered(lines_of(text))).findings
    assert not found or found[0].rule != signature.kind, [f"{finding.rule} {finding.confidence}" for finding in found]

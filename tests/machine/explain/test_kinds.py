"""The pages: complete, in both languages, in step with each other and with the signatures."""

from __future__ import annotations

import re
import string

import pytest
import re2

from torchdeck.machine.catalogue.kinds import Kind, kind_named, kinds, same_text, signatures

ALL = list(kinds().values())


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.id)
def test_a_page_is_whole_in_both_languages_and_they_are_in_step(kind: Kind) -> None:
    for page in (kind.en, kind.zh):
        assert page.title
        assert page.about
        assert page.tell
        assert page.avoid
    assert len(kind.en.tell) == len(kind.zh.tell)
    assert len(kind.en.avoid) == len(kind.zh.avoid)
    assert re.search(r"[\u4e00-\u9fff]", kind.zh.title + kind.zh.about)
    assert not re.search(r"[\u4e00-\u9fff]", kind.en.title + kind.en.about)
    assert 1 <= len(kind.mend) <= 6
    assert kind.source
    assert kind.concerns
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind.id)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.id)
def test_a_mend_has_words_in_both_languages_and_a_default_for_every_value(kind: Kind) -> None:
    for mend in kind.mend:
        assert mend.en
        assert mend.zh
        names = {name for _, name, _, _ in string.Formatter().parse(mend.command) if name}
        assert names <= set(mend.default), f"{names - set(mend.default)} has no default"


def test_no_two_pages_say_the_same() -> None:
    for field in ("title", "about"):
        texts = [getattr(kind.en, field) for kind in ALL] + [getattr(kind.zh, field) for kind in ALL]
        assert len(texts) == len(set(texts))


def test_no_page_holds_a_web_address() -> None:
    for kind in ALL:
        text = repr(kind)
        assert "http://" not in text.replace("http://<", "").replace("http://127.0.0.1", "").replace("http://your", "")
        assert "https://" not in text


def test_every_kind_has_a_signature_and_every_signature_a_kind_and_an_example() -> None:
    signed = {signature.kind for signature in signatures()}
    assert signed == set(kinds())
    for signature in signatures():
        assert signature.examples
        assert 1 <= signature.weight <= 100
        assert signature.all
        for pattern in (*signature.all, *signature.any, *signature.none):
            assert not re2.search(pattern, ""), f"{pattern!r} matches an empty line"


def test_every_kind_of_a_group_that_prints_the_same_text_is_known() -> None:
    for group in same_text():
        assert group <= set(kinds())
        assert len(group) > 1


def test_a_signature_stands_in_the_file_of_its_kinds_category() -> None:
    """Only that file of pages is read for it."""
    for signature in signatures():
        assert kind_named(signature.kind) is not None

"""Curves: always a valid picture, whatever the values."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torchdeck
from torchdeck.render.svg import COLOURS, label, line_chart, ticks

SVG = "{http://www.w3.org/2000/svg}"
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)


def parsed(series: Mapping[str, Sequence[float]] | Sequence[float], **options: object) -> ET.Element:
    return ET.fromstring(line_chart(series, **options))  # type: ignore[arg-type]


def words(root: ET.Element) -> list[str]:
    return [node.text or "" for node in root.iter(f"{SVG}text")]


def curves(root: ET.Element) -> list[str]:
    return [node.attrib["d"] for node in root.iter(f"{SVG}path") if node.get("stroke-width") == "2"]


def drawn_points(root: ET.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for d in curves(root) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", d)]


@settings(max_examples=300, deadline=None)
@given(
    series=st.dictionaries(st.text(max_size=60), st.lists(ANY_FLOAT, max_size=60), max_size=9),
    title=st.text(max_size=30),
    log_y=st.booleans(),
)
def test_any_series_gives_valid_xml_with_finite_coordinates(
    series: dict[str, list[float]], title: str, log_y: bool
) -> None:
    """Whatever floats and names come in, the picture is valid XML and holds no NaN or infinity."""
    text = line_chart(series, title=title, log_y=log_y)
    root = ET.fromstring(text)
    for node in root.iter():
        for key in ("d", "x", "y", "cx", "cy", "transform"):
            assert not re.search("nan|inf", node.attrib.get(key, ""), re.IGNORECASE)
    assert all(0 <= x <= 640 and 0 <= y <= 320 for x, y in drawn_points(root) if series and len(series) < 4)


@settings(max_examples=300, deadline=None)
@given(low=st.floats(-1e300, 1e300), span=st.floats(1e-280, 1e300), num=st.integers(2, 12))
def test_ticks_are_few_round_and_inside(low: float, span: float, num: int) -> None:
    """Ticks lie inside the range, rise, and are never more than twice what was asked for."""
    high = low + span
    if high / 2 - low / 2 <= max(abs(low), abs(high)) * 1e-9:
        return
    marks = ticks(low, high, num)
    slack = (high / 2 - low / 2) * 1e-6
    assert len(marks) <= 2 * num
    assert all(low - slack <= mark <= high + slack for mark in marks)
    assert marks == sorted(set(marks))


def test_tick_labels_have_the_digits_they_need() -> None:
    """A label shows the digits of its step; an axis of very large or very small numbers uses exponents."""
    assert [label(value, 0.5, 2) for value in (0, 0.5, 1, -1.5)] == ["0", "0.5", "1.0", "−1.5"]
    assert label(2000, 500, 4000) == "2,000"
    assert label(2e-7, 1e-7, 5e-7) == "2e−07"
    assert [label(value, 5e8, 2.5e9) for value in (5e8, 2.5e9)] == ["5e08", "2.5e09"]


@pytest.mark.parametrize("values", [[1e308], [5e-324], [-1.7e308, 1.7e308], [1e16, 1e16 + 2], [0.0, 5e-324], [1e-300]])
@pytest.mark.parametrize("log_y", [False, True])
def test_the_ends_of_the_number_range_can_be_drawn(values: list[float], log_y: bool) -> None:
    """The largest and smallest floats, and spans lost in rounding, still give a picture with a curve or a dot."""
    root = parsed(values, log_y=log_y)
    assert curves(root) or list(root.iter(f"{SVG}circle"))


def test_the_curve_shows_the_values() -> None:
    """A falling series goes down the picture: pixel heights rise as the values fall, and span the plot."""
    points = drawn_points(parsed([4.0, 3.0, 2.0, 1.0]))
    heights = [y for _, y in points]
    assert heights == sorted(heights)
    gaps = {round(b - a, 1) for a, b in itertools.pairwise(heights)}
    assert len(points) == 4 and max(gaps) - min(gaps) < 0.2


def test_a_logarithmic_axis_puts_powers_of_ten_at_equal_distances() -> None:
    """With ``log_y``, 100, 10, 1 and 0.1 are equally far apart and labelled as such."""
    root = parsed([100, 10, 1, 0.1], log_y=True)
    heights = [y for _, y in drawn_points(root)]
    assert max(b - a for a, b in itertools.pairwise(heights)) == pytest.approx(
        min(b - a for a, b in itertools.pairwise(heights)), abs=0.2
    )
    assert {"100", "10", "1", "0.1"} <= set(words(root))


def test_empty_and_single_values_are_pictures_too() -> None:
    """No values say so in words; one value is a dot."""
    assert "no values yet" in words(parsed([]))
    assert "no values yet" in words(parsed({}))
    assert "no values that can be drawn" in words(parsed([math.nan]))
    assert len(list(parsed([3.0]).iter(f"{SVG}circle"))) == 1


def test_values_that_cannot_be_drawn_leave_a_gap_and_are_counted() -> None:
    """NaN and infinity cut the curve in two, and the picture says how many values are missing."""
    root = parsed([1, 2, math.nan, math.inf, 3, 4])
    assert curves(root)[0].count("M") == 2
    assert "2 values not drawn" in words(root)


def test_a_million_points_stay_small_and_keep_their_spike() -> None:
    """A long series is thinned, but its single highest value still reaches the top of the plot."""
    values = [math.sin(i / 5000) for i in range(1_000_000)]
    values[654_321] = 9.0
    text = line_chart(values)
    points = drawn_points(ET.fromstring(text))
    assert len(text) < 60_000
    assert min(y for _, y in points) == pytest.approx(12, abs=0.2)
    x = min(points, key=lambda point: point[1])[0]
    assert x == pytest.approx(64 + 0.654321 * (640 - 80), abs=1.0)


def test_names_are_escaped_and_have_a_legend() -> None:
    """Names with markup or control codes are shown as text, one legend entry each."""
    root = parsed({"<script>&\"'": [1, 2], "val\x00\ud800": [2, 1]}, title="a < b & c")
    assert not list(root.iter(f"{SVG}script"))
    assert {"<script>&\"'", "val��", "a < b & c"} <= set(words(root))


def test_it_can_be_read_out() -> None:
    """The picture has a role, a name and a description with first and last values, under ids of its own."""
    root = parsed({"loss": [2.5, 0.5]}, title="Training")
    assert root.attrib["role"] == "img"
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and desc is not None
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], desc.attrib["id"]]
    assert title.text == "Training" and "from 2.5 to 0.5" in (desc.text or "")
    other = parsed({"loss": [2.5, 0.4]}, title="Training")
    assert other.attrib["aria-labelledby"] != root.attrib["aria-labelledby"]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", ["#ffffff", "#111111"])
@pytest.mark.parametrize("colour", [*COLOURS, "#767676"])
def test_colours_are_readable_in_both_themes(colour: str, background: str) -> None:
    """Every colour has a contrast of at least 3 : 1 against Lab's light and dark backgrounds."""
    high, low = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 3


def test_a_picture_without_room_is_refused() -> None:
    """A chart too small for its axes is the caller's mistake and says the least size."""
    with pytest.raises(ValueError, match="200x120"):
        line_chart([1, 2], width=50)


def test_it_is_a_public_name() -> None:
    """Notebooks use ``torchdeck.line_chart``."""
    assert torchdeck.line_chart is line_chart

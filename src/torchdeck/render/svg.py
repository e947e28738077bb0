"""Curves as standalone SVG, for a notebook's cell, a report or a file; pure Python.

The picture follows JupyterLab's theme when it stands inline in a page of Lab (its text colours are CSS variables
there) and uses a grey that is readable on white and on black everywhere else. It does not know where it will be
shown, and it never reads a clock or the machine.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Each at least 3 : 1 against white and against Lab's dark #111111; dashes tell them apart without colour.
COLOURS = ("#2f7ed8", "#d95f02", "#168a68", "#b5469c", "#8a6d1d", "#6f6ad1")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
_TEXT = "#767676"  # 4.5 : 1 on white and 4.2 : 1 on #111111
_INK = f'fill="{_TEXT}" style="fill:var(--jp-ui-font-color1,{_TEXT})"'
_AXIS = f'stroke="{_TEXT}" style="stroke:var(--jp-ui-font-color2,{_TEXT})"'
_GRID = f'stroke="{_TEXT}" stroke-opacity="0.25"'
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_LABEL_CHARS = 40
_CHAR_PX = 6.6  # a generous mean for 12 px sans-serif; only the legend's spacing hangs on it

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Scale:
    """A straight map from values to pixels.

    Args:
        low: The value at ``start_px``; for a logarithmic axis, its logarithm.
        high: The value at ``end_px``.
        start_px: Pixel of ``low``.
        end_px: Pixel of ``high``.
    """

    low: float
    high: float
    start_px: float
    end_px: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        # Halves, because the span of two huge numbers of opposite sign is not a float.
        part = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return self.start_px + part * (self.end_px - self.start_px)


def line_chart(
    series: Mapping[str, Sequence[float]] | Sequence[float],
    *,
    title: str = "",
    x_label: str = "step",
    y_label: str = "loss",
    width: int = 640,
    height: int = 320,
    log_y: bool = False,
) -> str:
    """Draw one or several curves, value by value, as a complete SVG document.

    Values are placed at 0, 1, 2, … Those that cannot be drawn (NaN, infinities, and on a logarithmic axis
    everything up to 0) leave a gap and are counted under the picture. A long series is thinned to the lowest and
    highest value of each pixel column, so that a million points stay a small picture with every spike in it.

    Args:
        series: Values by name, or the values alone. Anything that ``float()`` takes.
        title: Shown above and read out as the picture's name.
        x_label: What one step is.
        y_label: What the values are.
        width: Width in pixels; the picture shrinks with its container.
        height: Height in pixels.
        log_y: Draw powers of ten at equal distances.

    Returns:
        SVG text without an XML declaration, so that it can stand inline in HTML.

    Raises:
        ValueError: ``width`` or ``height`` leaves no room for a picture.
    """
    if width < 200 or height < 120:
        raise ValueError(f"a chart of {width}x{height} pixels has no room for its axes; 200x120 is the least")
    named = series if isinstance(series, Mapping) else {y_label: series}
    columns = max(50, width)
    curves: list[tuple[str, Points]] = []
    num_steps = num_lost = 0
    ends: dict[str, tuple[float, float]] = {}
    for name, raw in named.items():
        values = [float(value) for value in raw]
        drawn = [_drawable(value, log_y) for value in values]
        num_lost += len(drawn) - sum(map(math.isfinite, drawn))
        num_steps = max(num_steps, len(values))
        known = [value for value, shown in zip(values, drawn, strict=True) if math.isfinite(shown)]
        if known:
            ends[name] = (known[0], known[-1])
        curves.append((name, _thin(drawn, columns)))
    legend, legend_height = _legend([name for name, _ in curves], width) if isinstance(series, Mapping) else ("", 0)
    top = (30 if title else 12) + legend_height
    x_scale = Scale(0, max(1, num_steps - 1), 64, width - 16)
    y_scale = _y_scale(curves, top=top, bottom=height - 44)
    body = [
        _heading(title, width),
        f'<g transform="translate(0 {30 if title else 12})">{legend}</g>' if legend else "",
        _x_axis(x_scale, y_scale.start_px, x_label, num_steps),
        _y_axis(y_scale, x_scale, y_label, log_y),
        *(_curve(points, x_scale, y_scale, number) for number, (_, points) in enumerate(curves)),
        _remark(ends, num_lost, x_scale, y_scale),
    ]
    description = _description(ends, x_label, num_steps, num_lost)
    return _document(title or f"{y_label} by {x_label}", description, "".join(body), width, height)


def _drawable(value: float, log_y: bool) -> float:
    """Return where on the axis a value belongs, NaN when nowhere."""
    if not math.isfinite(value) or (log_y and value <= 0):
        return math.nan
    return math.log10(value) if log_y else value


def _thin(values: list[float], columns: int) -> Points:
    """Keep, of each column of neighbours, the lowest and the highest; a column without a number keeps its gap."""
    if len(values) <= 2 * columns:
        return list(enumerate(values))
    kept: Points = []
    for column in range(columns):
        begin, end = column * len(values) // columns, (column + 1) * len(values) // columns
        part = values[begin:end]
        finite = [value for value in part if math.isfinite(value)]
        if not finite:
            kept.append((begin, math.nan))
            continue
        places = {begin + part.index(min(finite)), begin + part.index(max(finite))}
        kept.extend((place, values[place]) for place in sorted(places))
    return kept


def _y_scale(curves: list[tuple[str, Points]], *, top: float, bottom: float) -> Scale:
    values = [value for _, points in curves for _, value in points if math.isfinite(value)]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    size = max(abs(low), abs(high))
    # A flat curve gets a band around it; so does one whose span is lost in the rounding of its labels.
    if high / 2 - low / 2 <= max(size * 1e-9, 1e-290):
        pad = size * 0.05 if size > 1e-280 else 1.0
        low, high = low - pad, high + pad
    biggest = 1.7e308
    return Scale(max(low, -biggest), min(high, biggest), bottom, top)


def ticks(low: float, high: float, num: int) -> list[float]:
    """Return about ``num`` round numbers (steps of 1, 2 or 5 times a power of ten) from ``low`` to ``high``."""
    span = (high / 2 - low / 2) / max(1, num) * 2
    power = 10.0 ** math.floor(math.log10(span)) if span < 1e308 else 1e307
    step = next((power * factor for factor in (1, 2, 5) if power * factor >= span), power * 10)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]


def label(value: float, step: float, biggest: float) -> str:
    """Write a tick with as many digits as its neighbours need to differ; beyond a million with an exponent."""
    if value == 0:
        return "0"
    step_exponent = math.floor(math.log10(step) + 1e-9)
    if step_exponent > -5 and biggest < 1e6:
        return f"{value:,.{max(0, -step_exponent)}f}".replace("-", "−")
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    return f"{value:.{min(12, max(0, exponent - step_exponent))}e}".replace("e+", "e").replace("-", "−")


def _text(x: float, y: float, words: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_INK}{extra}>{_clean(words)}</text>'


def _clean(words: str, limit: int = 200) -> str:
    """Escape for XML, drop what XML cannot hold, and shorten."""
    words = _NOT_XML.sub("�", str(words))
    return escape(words if len(words) <= limit else words[: limit - 1] + "…", {'"': "&quot;"})


def _heading(title: str, width: int) -> str:
    return _text(width / 2, 19, title, extra=' font-weight="600"') if title else ""


def _legend(names: list[str], width: int) -> tuple[str, int]:
    """Return the legend, wrapped to the width, and its height."""
    parts: list[str] = []
    x, row = 64.0, 0
    for number, name in enumerate(names):
        shown = name if len(name) <= _MAX_LABEL_CHARS else name[: _MAX_LABEL_CHARS - 1] + "…"
        needed = 34 + len(shown) * _CHAR_PX
        if x > 64 and x + needed > width - 16:
            x, row = 64.0, row + 1
        y = row * 18 + 4
        parts.append(f'<path d="M{x:.1f} {y}h20" {_stroke(number)}/>{_text(x + 25, y + 4, shown, "start")}')
        x += needed
    return "".join(parts), (row + 1) * 18 if parts else 0


def _stroke(number: int) -> str:
    dash = DASHES[number // len(COLOURS) % len(DASHES)] if number >= len(COLOURS) else DASHES[number % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="none" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2" stroke-linejoin="round"{dashed}'


def _x_axis(scale: Scale, bottom: float, name: str, num_steps: int) -> str:
    marks = [tick for tick in ticks(0, scale.high, 6) if tick == int(tick)] if num_steps > 1 else [0.0] * num_steps
    lines = "".join(f'<path d="M{scale(mark):.1f} {bottom:.1f}v4" {_AXIS}/>' for mark in marks)
    words = "".join(_text(scale(mark), bottom + 17, f"{int(mark):,}") for mark in marks)
    axis = f'<path d="M{scale.start_px:.1f} {bottom:.1f}H{scale.end_px:.1f}" {_AXIS}/>'
    return axis + lines + words + _text((scale.start_px + scale.end_px) / 2, bottom + 36, name)


def _y_axis(scale: Scale, x_scale: Scale, name: str, log_y: bool) -> str:
    marks = ticks(scale.low, scale.high, 5)
    step = marks[1] - marks[0] if len(marks) > 1 else (scale.high / 2 - scale.low / 2) * 2
    words = [label(mark, min(step, 1.7e308), max(abs(scale.low), abs(scale.high))) for mark in marks]
    if log_y:
        whole = [mark for mark in marks if mark == int(mark)]
        marks = whole if len(whole) > 1 else marks
        words = [f"{10.0**mark:.3g}".replace("-", "−") if abs(mark) < 300 else f"10^{mark:g}" for mark in marks]
    parts = []
    for mark, word in zip(marks, words, strict=True):
        y = scale(mark)
        parts.append(f'<path d="M{x_scale.start_px:.1f} {y:.1f}H{x_scale.end_px:.1f}" {_GRID}/>')
        parts.append(_text(x_scale.start_px - 7, y + 4, word, "end"))
    middle = (scale.start_px + scale.end_px) / 2
    return "".join(parts) + _text(14, middle, name, extra=f' transform="rotate(-90 14 {middle:.1f})"')


def _curve(points: Points, x_scale: Scale, y_scale: Scale, number: int) -> str:
    """Return one curve as a path with gaps; a value that stands alone becomes a dot."""
    runs: list[Points] = [[]]
    for x, y in points:
        if math.isfinite(y):
            runs[-1].append((x_scale(x), y_scale(y)))
        elif runs[-1]:
            runs.append([])
    path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run) for run in runs if len(run) > 1)
    colour = COLOURS[number % len(COLOURS)]
    dots = "".join(
        f'<circle cx="{r[0][0]:.1f}" cy="{r[0][1]:.1f}" r="3" fill="{colour}"/>' for r in runs if len(r) == 1
    )
    return (f'<path d="{path}" {_stroke(number)}/>' if path else "") + dots


def _remark(ends: dict[str, tuple[float, float]], num_lost: int, x_scale: Scale, y_scale: Scale) -> str:
    """Say what the curves cannot: that there is nothing to draw, or that values are missing."""
    if not ends:
        middle = (x_scale.start_px + x_scale.end_px) / 2
        words = "no values that can be drawn" if num_lost else "no values yet"
        return _text(middle, (y_scale.start_px + y_scale.end_px) / 2, words)
    return _text(x_scale.end_px, y_scale.start_px + 36, _lost(num_lost), "end") if num_lost else ""


def _lost(num_lost: int) -> str:
    return f"{num_lost:,} value{'s' if num_lost > 1 else ''} not drawn"


def _description(ends: dict[str, tuple[float, float]], x_label: str, num_steps: int, num_lost: int) -> str:
    said = [f"{name}: from {first:.4g} to {last:.4g}" for name, (first, last) in list(ends.items())[:12]]
    counted = f"{num_steps:,} values along {x_label}"
    return "; ".join([counted, *said, *([_lost(num_lost)] if num_lost else [])]) + "."


def _document(name: str, description: str, body: str, width: int, height: int) -> str:
    # Ids must differ between the pictures of one page: two equal ids would lend one picture the other's name.
    key = f"td{zlib.crc32((name + description + body).encode('utf-8', 'replace')):08x}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{key}t {key}d" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'style="max-width:100%;height:auto" font-family="system-ui,sans-serif" font-size="12">'
        f'<title id="{key}t">{_clean(name)}</title><desc id="{key}d">{_clean(description, 2000)}</desc>{body}</svg>'
    )

"""The answer of the stack resolver as text."""

from __future__ import annotations

from torchdeck.machine.catalogue import REFERENCE
from torchdeck.machine.records import Build, Rejection, StackReport
from torchdeck.render.deck import rows
from torchdeck.render.text import PLAIN, Style


def render_stacks(report: StackReport, style: Style = PLAIN, *, every: bool = False) -> str:
    """Return the chosen build with its reasons, then the others.

    Args:
        report: What was resolved.
        style: Colours or none.
        every: Also builds for other processors, and releases that were not asked for.
    """
    request = {name: value or "not known" for name, value in report.request.items() if name != "torch"}
    asked = f", asked for: {report.request['torch']}" if report.request.get("torch") else ""
    gpu = "" if report.request.get("driver") == "none" and not report.request.get("cc") else f", GPU {request['cc']}"
    lines = [
        style(f"driver {request['driver']}{gpu}, Python {request['python']}, {request['arch']}{asked}", "dim"),
        "",
    ]
    if report.chosen is not None:
        lines.append(_build("chosen", report.chosen, style))
        if report.installed is not None and _key(report.installed) != _key(report.chosen):
            lines += ["", _build("installed", report.installed, style)]
    else:
        lines.append(style("no build fits", "red", "bold"))
    if report.wanted is not None:
        wanted = report.wanted
        lines += ["", f"out of reach: torch {wanted.torch}+{wanted.variant} from the index {wanted.index}"]
    shown = [row for row in report.rejected if every or _telling(row, report)]
    if shown:
        lines += ["", style("not taken", "bold"), _rejected(shown, style)]
    if len(shown) < len(report.rejected):
        lines.append(style(f"  … {len(report.rejected) - len(shown)} more builds: torchdeck stacks --all", "dim"))
    return "\n".join(lines)


def _telling(row: Rejection, report: StackReport) -> bool:
    """Whether a person who did not ask for everything wants to see why this build was not taken."""
    if row.code in ("architecture", "not-asked"):
        return False
    if report.request.get("torch"):
        return True
    near = {REFERENCE, *(build.torch for build in (report.chosen, report.wanted) if build is not None)}
    return row.torch in near


def _key(build: Build) -> tuple[str, str, str]:
    return build.torch, build.variant, build.index


def _build(label: str, build: Build, style: Style) -> str:
    name = style(f"torch {build.torch}+{build.variant}", "bold", "green")
    parts = {
        "CUDA": build.cuda,
        "cuDNN": build.cudnn,
        "NCCL": build.nccl,
        "Triton": build.triton,
        "torchvision": build.torchvision,
        "torchaudio": build.torchaudio,
    }
    driver = f"at least {build.driver_floor}, {build.driver_recommended} recommended" if build.driver_floor else "none"
    pairs = [
        ("from", f"{build.index} ({build.method})"),
        ("with", ", ".join(f"{part} {version}" for part, version in parts.items() if version)),
        ("Python", f"{build.pythons[0]} to {build.pythons[1]}"),
        ("driver", driver),
        ("why", "\n".join(build.reasons)),
    ]
    return f"{style(f'{label:<9}', 'dim')} {name}\n{rows(pairs, style, '  ')}"


def _rejected(rejections: list[Rejection], style: Style) -> str:
    width = max(len(_name(row)) for row in rejections)
    return "\n".join(f"  {_name(row):<{width}}  {style(row.reason, 'dim')}" for row in rejections)


def _name(row: Rejection) -> str:
    place = "" if row.index == "pypi" else f" ({row.index})"
    return f"{row.torch}+{row.variant}{place}"

"""Findings and facts as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from torchdeck.machine.facts import Facts, Missing
from torchdeck.machine.records import Finding
from torchdeck.render.text import PLAIN, Style, clean, render_block


def render_findings(findings: Sequence[Finding], style: Style = PLAIN, *, verbose: bool = False) -> str:
    """Return one block a finding, and a last line that counts them."""
    blocks = []
    for finding in findings:
        rows: list[tuple[str, str | Sequence[str]]] = [
            ("why", finding.cause),
            ("found", finding.evidence if verbose or finding.severity in ("error", "unknown") else ()),
            ("needs", finding.needs),
            ("mend", finding.mend),
        ]
        blocks.append(render_block(finding.severity, finding.rule, finding.title, rows, style))
    blocks.append(render_count(findings, style))
    return "\n\n".join(blocks)


def render_count(findings: Sequence[Finding], style: Style = PLAIN) -> str:
    """Return how many findings of each severity there are."""
    if not findings:
        return style("nothing found that is wrong or will go wrong", "green")
    counts = {
        "error": sum(finding.severity == "error" for finding in findings),
        "warning": sum(finding.severity == "warning" for finding in findings),
        "not known": sum(finding.severity == "unknown" for finding in findings),
        "for your information": sum(finding.severity == "info" for finding in findings),
    }
    plural = {"error": "errors", "warning": "warnings"}
    return ", ".join(
        f"{number} {plural.get(name, name) if number != 1 else name}" for name, number in counts.items() if number
    )


def render_markdown(facts: Facts, findings: Sequence[Finding]) -> str:
    """Return a report to paste into an issue."""
    lines = ["### torchdeck doctor", "", "| fact | value |", "|---|---|"]
    lines += [f"| {label} | {_cell(text)} |" for label, text in fact_rows(facts)]
    lines += ["", "| severity | rule | finding | mend |", "|---|---|---|---|"]
    for finding in findings:
        mend = "; ".join(f"`{_cell(text)}`" for text in finding.mend)
        lines.append(f"| {finding.severity} | `{finding.rule}` | {_cell(finding.title)} | {mend} |")
    if not findings:
        lines.append("| – | – | nothing found | – |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return clean(text).replace("|", "\\|").replace("\n", " ")


def fact_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the facts as labelled lines, what is missing with its reason."""
    rows: list[tuple[str, str]] = []
    system = facts.system
    if isinstance(system, Missing):
        rows.append(("system", _missing(system)))
    else:
        name = system.os if isinstance(system.pretty_name, Missing) else system.pretty_name
        libc = "" if isinstance(system.glibc, Missing) else f", glibc {system.glibc}"
        rows.append(("system", f"{name}, {system.arch}, kernel {system.kernel}{libc}"))
        if system.wsl:
            rows.append(("inside", "Windows Subsystem for Linux"))
        if system.container and not isinstance(system.container, Missing):
            rows.append(("inside", f"a container ({system.container})"))
    rows += _nvidia_rows(facts)
    python = facts.python
    if isinstance(python, Missing):
        rows.append(("python", _missing(python)))
    else:
        headers = "" if python.headers else ", no headers"
        rows.append(("python", f"{python.version} at {python.path}{headers}"))
        if isinstance(python.torch, Missing):
            rows.append(("torch", _missing(python.torch)))
        elif python.torch is not None:
            rows.append(("torch", f"{python.torch.version} in that Python"))
    tools = facts.toolchain
    if isinstance(tools, Missing):
        rows.append(("compilers", _missing(tools)))
    else:
        found = [tool.path for tool in (tools.c, tools.cxx) if tool is not None]
        rows.append(("compilers", ", ".join(found) or "none"))
    return rows + _storage_rows(facts)


def _nvidia_rows(facts: Facts) -> list[tuple[str, str]]:
    nvidia = facts.nvidia
    if isinstance(nvidia, Missing):
        return [("driver", _missing(nvidia))]
    driver = nvidia.driver
    if isinstance(driver, Missing):
        text = _missing(driver)
    elif driver is None:
        text = "no NVIDIA driver"
    else:
        cuda = "" if isinstance(driver.cuda, Missing) else f", up to CUDA {driver.cuda}"
        text = f"{driver.version}{cuda}"
    rows = [("driver", text)]
    if isinstance(nvidia.gpus, Missing):
        rows.append(("gpu", _missing(nvidia.gpus)))
    elif nvidia.gpus:
        for gpu in nvidia.gpus:
            cc = "cc not known" if isinstance(gpu.cc, Missing) else f"sm_{gpu.cc[0]}{gpu.cc[1]}"
            memory = "" if isinstance(gpu.memory_bytes, Missing) else f", {gpu.memory_bytes / 2**30:.1f} GiB"
            rows.append((f"gpu {gpu.index}", f"{gpu.name}, {cc}{memory}"))
    elif not isinstance(nvidia.num_pci, Missing) and nvidia.num_pci:
        rows.append(("gpu", f"{nvidia.num_pci} on the PCI bus"))
    else:
        rows.append(("gpu", "none"))
    return rows


def _storage_rows(facts: Facts) -> list[tuple[str, str]]:
    storage = facts.storage
    if isinstance(storage, Missing):
        return [("disks", _missing(storage))]
    rows = []
    for label, place in (("decks", storage.data), ("tmp", storage.tmp), ("shm", storage.shm)):
        if isinstance(place, Missing):
            rows.append((label, _missing(place)))
        else:
            rows.append((label, f"{place.path}: {place.free_bytes / 1e9:.1f} GB free"))
    return rows


def _missing(value: Missing) -> str:
    return f"not known: {value.reason}"

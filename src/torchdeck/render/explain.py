"""Explanations and the pages of kinds as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from torchdeck.machine.catalogue.kinds import Kind
from torchdeck.machine.explain.records import ExplainReport, Explanation, MendStep, SeenLine
from torchdeck.render.text import PLAIN, Style, clean, render_block

_WORDS = {
    "en": {
        "seen": "seen",
        "why": "why",
        "mend": "mend",
        "not": "not",
        "tell": "tell",
        "more": "more",
        "also": "It may also be",
        "unknown": "not known: no signature fits this text",
        "decisive": "lines that look decisive",
        "none": "nothing in it that is known to be wrong",
        "concerns": "concerns",
        "source": "source",
        "about": "what it is",
        "apart": "how to tell it from what looks like it",
        "avoid": "what not to do",
        "how": "how to mend it",
    },
    "zh": {
        "seen": "所见",
        "why": "原因",
        "mend": "修复",
        "not": "勿做",
        "tell": "区分",
        "more": "详情",
        "also": "也可能是",
        "unknown": "未知:没有与此文本相符的特征",
        "decisive": "看起来关键的行",
        "none": "未发现已知的问题",
        "concerns": "涉及",
        "source": "出处",
        "about": "是什么",
        "apart": "如何与相似情况区分",
        "avoid": "不要做什么",
        "how": "如何修复",
    },
}


def render_explain(report: ExplainReport, style: Style = PLAIN, language: str = "en") -> str:
    """Return the likeliest cause in full, and the others in one line each."""
    words = _WORDS[language]
    if not report.findings:
        if not report.not_known:
            return words["none"]
        lines = [style(words["unknown"], "bold"), f"  {words['decisive']}:"]
        lines += [f"  {_place(line)}  {line.text}" for line in report.not_known]
        return "\n".join(lines)
    first, *others = report.findings
    text = _block(first, style, language)
    if others:
        text += f"\n\n{words['also']}:"
        for finding in others:
            text += f"\n  {style(finding.rule, 'bold')}  {clean(finding.title)}  ({finding.confidence:.0%})"
            if finding.evidence:
                text += f"\n    {_place(finding.evidence[0])}  {clean(finding.evidence[0].text)[:160]}"
    return text


def _block(finding: Explanation, style: Style, language: str) -> str:
    words = _WORDS[language]
    rows: list[tuple[str, str | Sequence[str]]] = [
        (words["seen"], tuple(f"{_place(line)}  {line.text}" for line in finding.evidence)),
        (words["why"], finding.cause),
        *((words["mend"], _mend(step)) for step in finding.mend),
        (words["tell"], finding.tell_apart),
        (words["not"], finding.avoid),
        (words["more"], f"torchdeck explain {finding.rule}"),
    ]
    return render_block(finding.severity, finding.rule, finding.title, rows, style)


def _mend(step: MendStep) -> str:
    if not step.command:
        return step.step
    return f"{step.command}\n{step.note}" if step.note else step.command


def _place(line: SeenLine) -> str:
    return f"{line.file}:{line.line}" if line.file else f"{line.line}:"


def render_explain_markdown(report: ExplainReport, language: str = "en") -> str:
    """Return a report to paste into an issue."""
    words = _WORDS[language]
    lines = ["### torchdeck explain", ""]
    if not report.findings:
        lines.append(words["unknown"] if report.not_known else words["none"])
        lines += ["", "```text", *(f"{_place(line)}  {line.text}" for line in report.not_known), "```"]
    for finding in report.findings:
        lines += [f"**{finding.severity}[{finding.rule}] {finding.title}** ({finding.confidence:.0%})", ""]
        lines += [
            "```text",
            *(f"{_place(line)}  {line.text}" for line in finding.evidence),
            "```",
            "",
            finding.cause,
            "",
        ]
        lines += [f"- `{step.command}` {step.note}" if step.command else f"- {step.step}" for step in finding.mend]
        lines.append("")
    return "\n".join(lines)


def render_kind(kind: Kind, mends: Sequence[MendStep], style: Style = PLAIN, language: str = "en") -> str:
    """Return the page of one kind."""
    words, page = _WORDS[language], kind.page(language)
    lines = [f"{style(kind.id, 'bold')}  {page.title}", "", page.about]
    for label, entries in (("apart", page.tell), ("avoid", page.avoid)):
        lines += ["", style(words[label], "bold"), *(f"  - {entry}" for entry in entries)]
    lines += ["", style(words["how"], "bold")]
    for number, step in enumerate(mends, 1):
        lines += [
            f"  {number}. {step.command or step.step}",
            *([f"     {step.note}"] if step.command and step.note else []),
        ]
    lines += ["", f"{words['concerns']}: {kind.concerns}", f"{words['source']}: {'; '.join(kind.source)}"]
    return "\n".join(lines)

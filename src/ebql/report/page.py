"""Building blocks of a self-contained HTML page: no scripts, fonts or pictures are loaded from elsewhere."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from ebql.paper.ledger import Claim, Evidence, Verdict

_COUNTED = {
    Verdict.HOLDS: "hold",
    Verdict.FAILS: "fail",
    Verdict.MIXED: "are mixed",
    Verdict.OPEN: "are open",
}
MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.MIXED: "±", Verdict.OPEN: "?"}

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$look
$tab_rules
</style>
</head>
<body>
$body
</body>
</html>
""")

_MOST_TABS = 24


CONTENTS = "<!-- contents -->"
"""Marks the place of the table of contents in a body."""


def page(title: str, body: Iterable[str]) -> str:
    """Return a page with this body; its sections get ids, and `CONTENTS` becomes links to them."""
    rules = "\n".join(
        f".tabs > input:nth-of-type({n}):checked ~ .panel:nth-of-type({n}) {{ display: block; }}"
        for n in range(1, _MOST_TABS + 1)
    )
    look = files("ebql.report").joinpath("look.css").read_text(encoding="utf-8")
    return _PAGE.substitute(
        title=escape(title), body=_with_contents("\n".join(body)), look=look, tab_rules=rules
    )


def _with_contents(body: str) -> str:
    titles = re.findall(r"<h2>(.*?)</h2>", body)
    for number in range(1, len(titles) + 1):
        body = body.replace("<h2>", f'<h2 id="{_anchor(number)}">', 1)
    links = (f'<a href="#{_anchor(number)}">{title}</a>' for number, title in enumerate(titles, 1))
    return body.replace(CONTENTS, f'<nav class="contents" aria-label="Contents">{"".join(links)}</nav>')


def _anchor(number: int) -> str:
    return f"section-{number}"


def verdict_counts(claims: Iterable[Claim]) -> str:
    """Return how many claims have each verdict, as large numbers."""
    counts = Counter(claim.verdict for claim in claims)
    tiles = (
        f'<li class="{verdict}"><b>{counts[verdict]}</b> {MARKS[verdict]} {_COUNTED[verdict]}</li>'
        for verdict in (Verdict.HOLDS, Verdict.MIXED, Verdict.FAILS, Verdict.OPEN)
    )
    return f'<ul class="verdicts">{"".join(tiles)}</ul>'


def verdict_map(sections: Iterable[tuple[str, Sequence[Claim]]]) -> str:
    """Return a picture of all verdicts: a row for each section, a mark for each of its claims.

    The sections are those of the page, in order.
    """
    rows = []
    for number, (title, claims) in enumerate(sections, 1):
        marks = "".join(
            f'<span class="mark {claim.verdict}" role="img" title="{escape(claim.statement)}" '
            f'aria-label="{claim.verdict}: {escape(claim.statement)}">{MARKS[claim.verdict]}</span>'
            for claim in claims
        )
        if claims:
            rows.append(f'<tr><th><a href="#{_anchor(number)}">{escape(title)}</a></th><td>{marks}</td></tr>')
    return f'<table class="map">{"".join(rows)}</table>'


def picture(png: bytes, description: str, width: int | None = None) -> str:
    """Return an image embedded in the page, at most `width` pixels wide."""
    data = b64encode(png).decode()
    size = "" if width is None else f' width="{width}"'
    return f'<img alt="{escape(description)}"{size} src="data:image/png;base64,{data}">'


def wide(content: str) -> str:
    """Return content that scrolls horizontally if the window is too narrow."""
    return f'<div class="wide">{content}</div>'


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table of plain text, which is escaped; all columns but the first are numbers."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = []
    for first, *others in rows:
        numbers = "".join(f'<td class="number">{escape(str(cell))}</td>' for cell in others)
        lines.append(f"<tr><td>{escape(str(first))}</td>{numbers}</tr>")
    return wide(f"<table><tr>{head}</tr>{''.join(lines)}</table>")


def folded(title: str, content: str) -> str:
    """Return content that is collapsed until it is clicked."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def tabs(name: str, panels: Mapping[str, str]) -> str:
    """Return panels of which one is shown, chosen by its label; works without scripts."""
    labels, contents = [], []
    for number, (label, content) in enumerate(panels.items()):
        identity, checked = f"{name}-{number}", " checked" if number == 0 else ""
        labels.append(f'<input type="radio" name="{name}" id="{identity}"{checked}>')
        labels.append(f'<label for="{identity}">{escape(label)}</label>')
        contents.append(f'<div class="panel">{content}</div>')
    return f'<div class="tabs">{"".join(labels)}{"".join(contents)}</div>'


def badge(verdict: Verdict) -> str:
    """Return a verdict as a coloured label."""
    return f'<span class="badge {verdict}">{MARKS[verdict]} {verdict}</span>'


def findings(claims: Iterable[Claim]) -> str:
    """Return claims with their verdicts, and their evidence collapsed."""
    items = []
    for claim in claims:
        note = f"<br><small>{escape(claim.note)}</small>" if claim.note else ""
        items.append(
            f"<li>{badge(claim.verdict)}{escape(claim.statement)} "
            f"<small>({escape(claim.source)}; {escape(claim.summary)})</small>{note}"
            f"<details><summary>evidence</summary>{evidence_table(claim.evidence)}</details></li>"
        )
    return f'<ul class="found">{"".join(items)}</ul>'


def evidence_table(evidence: Iterable[Evidence]) -> str:
    """Return a table of measured values with their intervals."""
    rows = "".join(
        f"<tr><td>{escape(e.regime)}</td><td>{escape(e.quantity)}</td>"
        f'<td class="number">{e.value:.4g} [{e.low:.4g}, {e.high:.4g}]</td>'
        f'<td class="number">{escape(e.claimed)} {e.threshold:g}</td><td>{e.verdict}</td></tr>'
        for e in evidence
    )
    names = ("regime", "quantity", "value [95% interval]", "claimed", "verdict")
    head = f"<tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"
    return f"<table>{head}{rows}</table>"

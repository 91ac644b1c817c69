"""Building blocks of a self-contained HTML page: no scripts, fonts or pictures are loaded from elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from html import escape
from string import Template

from ebql.paper.ledger import Claim, Evidence, Verdict

MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.MIXED: "±"}

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { --ink: #1d2733; --soft: #5b6776; --line: #d9dfe6; --paper: #fff; --wash: #f5f7f9;
  --holds: #2b7a4b; --fails: #b3364a; --mixed: #9a6a00; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #a3afbd; --line: #3a4450; --paper: #14191f; --wash: #1d242c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.2rem 5rem;
  color: var(--ink); background: var(--paper);
  font: 17px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 2rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { margin-top: 3.2rem; border-bottom: 2px solid var(--line); padding-bottom: .3rem; }
img { display: block; max-width: 100%; height: auto; margin: 1rem auto;
  background: #fff; border-radius: .4rem; }
.lead { color: var(--soft); font-size: 1.12rem; max-width: 50rem; }
.says { border-left: 4px solid var(--line); padding: .1rem 1rem; background: var(--wash); max-width: 50rem; }
.says b { color: var(--soft); font-weight: 600; }
.badge { display: inline-block; min-width: 4.6rem; padding: .05rem .5rem; border-radius: .7rem; color: #fff;
  font-size: .82rem; text-align: center; white-space: nowrap; }
.badge.holds { background: var(--holds); } .badge.fails { background: var(--fails); }
.badge.mixed { background: var(--mixed); }
ul.found { list-style: none; padding: 0; max-width: 54rem; }
ul.found li { margin: .5rem 0; padding-left: 6rem; position: relative; }
ul.found .badge { position: absolute; left: 0; top: .2rem; }
small, .small { font-size: .87rem; color: var(--soft); }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; }
.wide img { min-width: 34rem; }
.headline { font-size: 1.3rem; line-height: 1.45; border-left: 6px solid var(--holds); padding: .6rem 1.1rem;
  background: var(--wash); border-radius: 0 .5rem .5rem 0; }
.headline.unsure { border-color: var(--mixed); }
.note { max-width: 50rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; font-size: .8rem; background: var(--wash); padding: .6rem; }
details { margin: .3rem 0; } summary { cursor: pointer; color: var(--soft); }
.tabs > input { position: absolute; opacity: 0; }
.tabs > label { display: inline-block; padding: .2rem .7rem; margin: .15rem; border: 1px solid var(--line);
  border-radius: 1rem; cursor: pointer; font-size: .85rem; }
.tabs > input:focus-visible + label { outline: 2px solid var(--ink); }
.tabs > input:checked + label { background: var(--ink); color: var(--paper); }
.tabs > .panel { display: none; }
$tab_rules
</style>
</head>
<body>
$body
</body>
</html>
""")

_MOST_TABS = 24


def page(title: str, body: Iterable[str]) -> str:
    """Return a page with this body."""
    rules = "\n".join(
        f".tabs > input:nth-of-type({n}):checked ~ .panel:nth-of-type({n}) {{ display: block; }}"
        for n in range(1, _MOST_TABS + 1)
    )
    return _PAGE.substitute(title=escape(title), body="\n".join(body), tab_rules=rules)


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

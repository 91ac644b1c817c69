"""`ebql keep`: the results of a study in a few small files."""

import shlex
from pathlib import Path

import tyro

from ebql.terminal.console import Console


def keep(study: tyro.conf.Positional[Path], out: Path) -> None:
    """Merge the finished runs of a study into kept results: small tables with their provenance.

    Writes evaluations.csv (a row for each evaluation), provenance.csv (a row for each run) and
    provenance.json (options and versions). Repeat the command as a study grows: runs that are kept stay as
    they are, and a run that contradicts one of them is refused. `ebql.results(DIR)` loads the table,
    `ebql report DIR` draws it, and `ebql sweep STUDY.toml --kept DIR` leaves these runs out, on this machine
    or another.

    Args:
        study: The folder of a study, or any folder that contains runs or kept results.
        out: The folder of the kept results.
    """
    from ebql.analysis.keeping import keep as merged

    tally = merged(study, out)
    line = f"{tally.new} new runs kept, {tally.already} kept before"
    line += f", {tally.unfinished} unfinished and left out" if tally.unfinished else ""
    console = Console(stderr=True)
    console.print(f"{line}; {tally.total} in all  → {out}", highlight=False, markup=False, soft_wrap=True)
    if tally.total:
        report = shlex.join(["ebql", "report", str(out)])
        console.print(f"→ next: {report}", highlight=False, markup=False, soft_wrap=True)

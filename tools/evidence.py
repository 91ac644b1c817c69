"""Renew what the documents say about a kept study: its pictures, and the numbers in Markdown.

    python tools/evidence.py [STUDY]

With the folder of a study, its finished runs are first merged into `results/minatar`. Then the report's
pictures and tables are written there, and the numbers in the documents below are renewed. A test fails if
they do not fit the kept results.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import fill

import numpy as np

from ebql.analysis.comparisons import Correlation
from ebql.analysis.findings import Findings, findings, paired_by_environment
from ebql.analysis.keeping import keep
from ebql.analysis.scores import ScoredRun, ScoredStudy, read_scores
from ebql.analysis.statistics import Interval
from ebql.estimators.intervals import FEWEST_SEEDS, over_seeds
from ebql.report.study.report import StudyReport
from ebql.report.study.words import list_or_range, with_interval

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "results" / "minatar"
BEGIN, END = "<!-- minatar: written by tools/evidence.py -->", "<!-- /minatar -->"
PLANNED = 150
FEWEST = 3
"""The seeds in every compared game from which on single rows quote this study."""
GAMES = ("Breakout", "Asterix", "SpaceInvaders", "Freeway", "Seaquest")
PAIRS = (("EBQL 5", "DQN"), ("EBQL 5", "DoubleDQN"), ("DoubleDQN", "DQN"))
AGENTS = ("DQN", "DoubleDQN", "EBQL 5")
BLOCKS = ("docs/findings.md",)
_WIDTH = 140  # of the documents' lines
ROWS = ("README.md", "docs/which_agent.md")


def main() -> None:
    """Merge, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", nargs="?", type=Path, help="the folder of a study with new finished runs")
    study = parser.parse_args().study
    if study is not None:
        print(keep(study, KEPT))
    scored = read_scores(KEPT)
    StudyReport(scored, "Five MinAtar games", KEPT).write()
    for name, text in documents(scored).items():
        (ROOT / name).write_text(text, encoding="utf-8")


def documents(study: ScoredStudy) -> dict[str, str]:
    """Return each document with the numbers of this study."""
    found = findings(study)
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in (*BLOCKS, *ROWS)}
    for name in BLOCKS:
        before, _, rest = texts[name].partition(BEGIN)
        _, _, after = rest.partition(END)
        texts[name] = f"{before}{BEGIN}\n\n{block(study, found)}\n\n{END}{after}"
    for first, cells in rows(study, found).items():
        for name in ROWS:
            texts[name] = "\n".join(renewed(line, first, cells) for line in texts[name].split("\n"))
    return texts


def renewed(line: str, first: str, cells: Sequence[str]) -> str:
    """Return a row of a table whose first cell is `first` with these last cells; any other line as it is."""
    old = line.strip("|").split(" | ")
    if not line.startswith("| ") or old[0].strip() != first:
        return line
    return f"| {' | '.join([cell.strip() for cell in old[: -len(cells)]] + list(cells))} |"


def block(study: ScoredStudy, found: Findings) -> str:
    """Return the tables of scores, biases, paired differences and correlations."""
    finished = len(study.runs)
    intro = (
        f"{finished} of {PLANNED} planned runs are finished: 300,000 steps of DQN, double DQN and EBQL with "
        'K = 5 ([pictures and tables](../results/minatar), `ebql.results("minatar")`). A score is the mean '
        "of a run's last two evaluations of 20 greedy games. Brackets are Student's 95% intervals over "
        "seeds, not adjusted for their number; with fewer than "
        f"{FEWEST_SEEDS} seeds they list the seeds. Games without a finished run are left out."
    )
    tables = [
        _table(("score", *AGENTS, "seeds"), _game_rows(study, _score)),
        _table(
            ("bias in parts of the return", *AGENTS, "seeds"),
            _game_rows(study, _relative_bias),
        ),
    ]
    if paired := list(_paired_rows(study)):
        tables.append("Differences between runs with the same seed:")
        tables.append(_table(("agents", "game", "score", "bias, Q̂ − return", "in words", "pairs"), paired))
    if correlations := list(_correlation_rows(study, found)):
        tables.append("Does a smaller bias go with a higher score?")
        header = ("within", "mean rank correlation of the size of the bias and the score", "in words")
        tables.append(_table(header, correlations))
    return "\n\n".join([fill(intro, _WIDTH, break_on_hyphens=False), *tables])


def rows(study: ScoredStudy, found: Findings) -> dict[str, tuple[str, ...]]:
    """Return the last cells of rows by their first cell; none while the study has too few seeds."""
    seeds, _ = study.compared_seeds
    if seeds < FEWEST or len(study.compared) < 2 or not set(AGENTS) <= set(study.contenders):
        return {}
    biases = ", ".join(f"{agent} {with_interval(found.relative_bias[agent], sign=True)}" for agent in AGENTS)
    iqm = ", ".join(f"{agent} {with_interval(found.aggregates[agent]['IQM'])}" for agent in AGENTS)
    where = f"{len(study.compared)} games"
    counted = f"{seeds}" if seeds >= FEWEST_SEEDS else f"{seeds}: no interval"
    cautious = f"{seeds} seeds" if seeds >= FEWEST_SEEDS else f"{seeds} seeds: no intervals"
    told_apart = "" if seeds >= FEWEST_SEEDS else "; too few seeds to tell them apart"
    link = f"[MinAtar](findings.md#networks-on-five-minatar-games), {where}, {cautious}"
    return {
        "bias in parts of the return, MinAtar, 300,000 steps": (f"{where}: {biases}", counted),
        "scores, MinAtar, 300,000 steps": (
            f"IQM of normalised scores over {where}: {iqm}{told_apart}",
            counted,
        ),
        "small images, and you use the Q-values themselves": (
            f"bias in parts of the return: {biases}",
            link,
        ),
        "small images, and only the score counts": (f"IQM of normalised scores: {iqm}{told_apart}", link),
    }


def _table(header: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))


def _game_rows(study: ScoredStudy, value: Callable[[ScoredRun], float]) -> Iterator[tuple[str, ...]]:
    sign = "+" if value is _relative_bias else ""
    for game in GAMES:
        runs = [study.scored_runs(f"MinAtar/{game}-v1", agent) for agent in AGENTS]
        counts = sorted(len(own) for own in runs)
        seeds = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
        if any(runs):
            yield game, *(_mean([value(run) for run in own], sign) for own in runs), seeds


def _score(run: ScoredRun) -> float:
    return run.score


def _relative_bias(run: ScoredRun) -> float:
    return run.relative_bias


def _mean(values: Sequence[float], sign: str) -> str:
    if not values:
        return "–"
    form = f"{sign}.2f"
    mean, half = (float(number) for number in over_seeds(np.array(values)))
    if np.isfinite(half):
        return with_interval(Interval(mean, mean - half, mean + half), sign=bool(sign))
    return f"{mean:{form}}".replace("-", "−") + (
        f" ({list_or_range(values, form)})" if len(values) > 1 else ""
    )


def _paired_rows(study: ScoredStudy) -> Iterator[tuple[str, ...]]:
    """Yield the paired differences of games with seeds enough for an interval."""
    for agent, other in PAIRS:
        scores = paired_by_environment(study, agent, other, "score")
        biases = paired_by_environment(study, agent, other, "bias")
        for game in GAMES:
            name = f"MinAtar/{game}-v1"
            if name not in scores or not scores[name].known:
                continue
            seeds = [{run.seed for run in study.scored_runs(name, who)} for who in (agent, other)]
            words = _in_words(scores[name], "scores higher", "scores lower", "no difference in scores found")
            words += ", " + _in_words(
                biases[name], "expects more", "expects less", "no difference in bias found"
            )
            yield (
                f"{agent} − {other}",
                game,
                with_interval(scores[name], sign=True),
                with_interval(biases[name], sign=True),
                words,
                str(len(seeds[0] & seeds[1])),
            )


def _in_words(difference: Interval, more: str, less: str, neither: str) -> str:
    if not difference.excludes(0):
        return neither
    return more if difference.value > 0 else less


def _correlation_rows(study: ScoredStudy, found: Findings) -> Iterator[tuple[str, ...]]:
    named: tuple[tuple[str, Correlation | None], ...] = (
        ("games, over all agents", found.size_of_bias_and_score),
        ("the runs of one agent in one game", found.size_of_bias_and_score_of_agents),
    )
    for where, correlation in named:
        if correlation is None or study.has_few_seeds or not np.isfinite(correlation.low):
            continue
        interval = Interval(correlation.mean, correlation.low, correlation.high)
        words = "we found no clear relation"
        if interval.excludes(0):
            words = f"runs with a smaller bias score {'higher' if correlation.mean < 0 else 'lower'}"
        yield where, with_interval(interval, sign=True), words


if __name__ == "__main__":
    main()

"""Renew what the documents say about kept studies: their pictures, and the numbers in Markdown.

    python tools/evidence.py [STUDY] [--of minatar]

With the folder of a study, its finished runs are first merged into the kept results below `results/` that
--of names. Then the report's pictures and tables are written there, and the numbers of all studies in the
documents below are renewed. A test fails if they do not fit the kept results.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from ebql.analysis.findings import Findings, findings
from ebql.analysis.keeping import keep
from ebql.analysis.scores import ScoredStudy, read_scores
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.kept.files import holds_kept
from ebql.report.images import png
from ebql.report.study.report import StudyReport
from ebql.report.study.words import counted, signed, with_interval
from ebql.runs import write_bytes
from ebql.studies.definition import read_study
from evidence_pictures import all_besides, differences_picture
from evidence_published import PUBLISHED_HEADER, YOUNG_TIAN, Published, published_rows
from evidence_rows import (
    ATARI,
    MINATAR,
    Kept,
    closer_to_0,
    correlation_rows,
    early_rows,
    game_mean_rows,
    game_rows,
    higher_score,
    in_unit,
    median_bias,
    overall_rows,
    paired_rows,
    robust_rows,
    share_rows,
    size_of_bias,
    throughout,
    throughout_rows,
    verdict,
    won_in_words,
)
from evidence_variants import (
    BFLOAT16,
    CONTROLS,
    DIFFERENCES,
    HEADER,
    MEMBERS,
    WHY,
    Beside,
    Variants,
    besides,
    game_name,
    in_each_game,
    joined,
    unpaired_verdicts,
    variant_rows,
)

ROOT = Path(__file__).parent.parent
END = "<!-- /written -->"
BLOCKS = ("docs/findings.md",)
ROWS = ("README.md", "docs/which_agent.md")
CONTROL = "Ensemble-DQN 5"
"""Its target is the maximum of the members' mean: it shows what an ensemble gains without EBQL's rule."""
SCALES = {
    "normalised": "In normalised scores, 0 is random play and 1 the mean of the game's best agent in these "
    "runs; intervals treat this scale, and the choice of games, as fixed.",
    "human-normalised": "In human-normalised scores, 0 is random play and 1 the published human player.",
}
"""What the scales of scores mean."""
_WIDTH = 140  # of the documents' lines


Study = Kept | Variants | Published

STUDIES: dict[str, Study] = {
    kept.name: kept for kept in (MINATAR, ATARI, CONTROLS, MEMBERS, WHY, BFLOAT16, YOUNG_TIAN)
}


def folder_of(kept: Study) -> Path:
    """Return the folder of a kept study."""
    return ROOT / "results" / kept.name


def begin(kept: Study) -> str:
    """Return the line before its block in a document."""
    return f"<!-- {kept.name}: written by tools/evidence.py -->"


class Plan(NamedTuple):
    """What a study file plans."""

    runs: int
    environments: list[str]
    seeds: int


def planned(kept: Study) -> Plan:
    """Return what the file of a kept study plans."""
    runs = read_study(folder_of(kept) / "study.toml", to_run=False).runs
    return Plan(
        len(runs),
        list(dict.fromkeys(run.environment for run in runs)),
        len({seed for run in runs for seed in run.seeds}),
    )


def main() -> None:
    """Merge, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", nargs="?", type=Path, help="the folder of a study with new finished runs")
    parser.add_argument("--of", choices=STUDIES, default=MINATAR.name, help="the kept results to renew")
    options = parser.parse_args()
    kept = STUDIES[options.of]
    if options.study is not None:
        print(keep(options.study, folder_of(kept)))
    studies = read_kept()
    StudyReport(to_draw(kept, studies), kept.title, folder_of(kept)).write()
    for name, text in documents(studies).items():
        (ROOT / name).write_text(text, encoding="utf-8")
    variants = [study for study in STUDIES.values() if isinstance(study, Variants)]
    found = all_besides(MINATAR.agents[-1], studies, variants, MINATAR.name)
    write_bytes(folder_of(MINATAR) / "differences.png", png(differences_picture(found)))


def read_kept() -> dict[str, ScoredStudy]:
    """Return the studies that have kept runs, by name."""
    folders = {name: folder_of(kept) for name, kept in STUDIES.items()}
    return {name: read_scores(folder) for name, folder in folders.items() if holds_kept(folder)}


def to_draw(kept: Study, studies: Mapping[str, ScoredStudy]) -> ScoredStudy:
    """Return the study that a report draws: variants beside their baselines, on the same scale."""
    study = studies[kept.name]
    if not isinstance(kept, Variants):
        return study
    return joined(study, studies[kept.beside], study.agents, [*kept.baselines, *kept.pairs.values()])


def documents(studies: Mapping[str, ScoredStudy]) -> dict[str, str]:
    """Return each document with the numbers of these studies."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in (*BLOCKS, *ROWS)}
    for of, study in studies.items():
        kept = STUDIES[of]
        text, quoted = written(kept, study, studies)
        for name in BLOCKS:
            before, _, rest = texts[name].partition(begin(kept))
            _, _, after = rest.partition(END)
            texts[name] = f"{before}{begin(kept)}\n\n{text}\n\n{END}{after}"
        for first, cells in quoted.items():
            for name in ROWS:
                texts[name] = "\n".join(renewed(line, first, cells) for line in texts[name].split("\n"))
    return texts


def written(
    kept: Study, study: ScoredStudy, studies: Mapping[str, ScoredStudy]
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return the block about a study, and the last cells of rows that quote it by their first cell."""
    if isinstance(kept, Published):
        return published_block(kept, study), {}
    if isinstance(kept, Variants):
        other = studies[kept.beside]
        return variant_block(kept, study, other), control_row(kept, study, other)
    found = findings(study)
    return block(kept, study, found), rows(kept, study, found)


def renewed(line: str, first: str, cells: Sequence[str]) -> str:
    """Return a row of a table whose first cell is `first` with these last cells; any other line as it is."""
    old = line.strip("|").split(" | ")
    if not line.startswith("| ") or old[0].strip() != first:
        return line
    return f"| {' | '.join([cell.strip() for cell in old[: -len(cells)]] + list(cells))} |"


def block(kept: Kept, study: ScoredStudy, found: Findings) -> str:
    """Return the tables of scores, biases, paired differences and correlations."""
    environments = planned(kept).environments
    intro = introduction(
        kept,
        study,
        f"Brackets after means and differences are Student's 95% intervals over seeds, not adjusted for "
        f"their number; with fewer than {FEWEST_SEEDS} seeds they list the seeds. {SCALES[kept.scale]} Games "
        "without a finished run are left out.",
    )
    unit, bias = in_unit(study), study.bias_scale.field
    tables = [
        _table((name, *kept.agents, "seeds"), game_rows(kept, study, environments, field))
        for name, field in (("score", "score"), (f"bias {unit}", bias))
    ]
    if _all_compared(kept, study):
        tables.append(
            f"Over the {len(study.compared)} games that all three agents have played. The IQM is the mean of "
            "the middle half of runs, and its interval comes from a bootstrap:"
        )
        tables.append(_table(("over games", *kept.agents), game_mean_rows(kept, study, found)))
    if overall := list(overall_rows(kept, study)):
        where = f"over {len(study.compared)} games. Scores are {kept.scale}, biases are given {unit}"
        tables.append(f"Mean differences between runs with the same seed, {where}:")
        tables.append(_table(("agents", "score", "bias", "in words"), overall))
    if robust := list(robust_rows(kept, study, found)):
        tables.append(
            fill(
                "A mean over games depends on their scales, so one game can decide it. The same without the "
                "game that adds most to each difference, and, on no scale at all, the probability that a run "
                "scores higher than the other agent's in the same game (with its bootstrap interval):",
                _WIDTH,
            )
        )
        tables.append(_table(("agents", "score", "bias", "probability"), robust))
    if kept is MINATAR and (faster := list(throughout_rows(kept, study, environments))):
        tables.append(
            fill(
                "Which agent learns faster? Differences between scores averaged over all evaluations of a "
                "run, normalised over games and in points in each game. We chose this measure after seeing "
                "the learning curves; the paper says of Atari that EBQL is ahead early in training.",
                _WIDTH,
            )
        )
        header = ("agents", "over games", "without the game that adds most", *map(game_name, environments))
        tables.append(_table(header, faster))
    if paired := list(paired_rows(kept, study, environments)):
        tables.append("The differences in each game:")
        tables.append(_table(("agents", "game", "score", "bias, Q̂ − return", "in words", "pairs"), paired))
    if correlations := list(correlation_rows(study, found)):
        tables.append(
            fill(
                "Does a smaller bias go with a higher score? The score is that of a run's last evaluation, "
                "and the bias that of the one before: in the same episodes, a lucky return raises the score "
                "and lowers the bias. Intervals are Bonett and Wright's.",
                _WIDTH,
            )
        )
        header = (
            "within",
            "mean rank correlation of the absolute bias and the score",
            "in words",
            "in each game",
        )
        tables.append(_table(header, correlations))
    if kept is ATARI and (early := list(early_rows(study))):
        tables.append(
            "The paper's claim that EBQL is ahead early in training, game by game, with the exact binomial "
            "interval over games:"
        )
        tables.append(_table(("share of games in which", "share", "games and seeds", "verdict"), early))
    if kept is ATARI and (shares := list(share_rows(kept, study))):
        tables.append("Which agent is less biased, game by game, with the same interval:")
        tables.append(_table(("share of games in which", "share", "games"), shares))
    return "\n\n".join([intro, *tables])


def variant_block(kept: Variants, study: ScoredStudy, other: ScoredStudy) -> str:
    """Return tables of agents beside each baseline of the other study."""
    intro = introduction(
        kept,
        study,
        f"The first {DIFFERENCES} columns are differences to {' and '.join(kept.baselines)} of "
        f"results/{kept.beside} with the same seed, averaged over games; the next two are the agent's "
        f"own bias. Scores are normalised as in results/{kept.beside}; biases are given {in_unit(other)}. "
        f"Brackets are 95% intervals, from {FEWEST_SEEDS} seeds on, not adjusted for their number.",
    )
    tables, end = [], 1 + DIFFERENCES
    for baseline in kept.baselines:
        header = (HEADER[0], *(f"{name} − {baseline}'s" for name in HEADER[1:end]), *HEADER[end:])
        tables.append(_table(header, list(variant_rows(kept, baseline, study, other))))
        found = [one for one in besides(kept, baseline, study, other) if one.score.known]
        if found:
            tables.append(fill(unpaired_in_words(found), _WIDTH))
            tables.append("In each game, in points:")
            tables.append(_table(*_head_and_rows(in_each_game(found))))
    return "\n\n".join([intro, *tables])


def unpaired_in_words(found: Sequence[Beside]) -> str:
    """Say what is different without pairs."""
    changed = unpaired_verdicts(found)
    told = f"these verdicts are different: {'; '.join(changed)}." if changed else "all verdicts are the same."
    return (
        "Pairs leave out the seeds that only one agent has. With all seeds of both agents, as independent "
        f"samples (Welch's intervals), {told}"
    )


def published_block(kept: Published, study: ScoredStudy) -> str:
    """Return the table of scores beside printed ones."""
    intro = introduction(
        kept,
        study,
        "A score is that of 20 greedy games after so many steps; brackets list the seeds. Printed scores are "
        "those of [one run](https://github.com/jbejjani2022/MinAtar) of Young and Tian's script and ten "
        "greedy games, with their standard error; Young and Tian print curves only.",
    )
    return f"{intro}\n\n{_table(PUBLISHED_HEADER, list(published_rows(kept, study)))}"


def control_row(kept: Variants, study: ScoredStudy, other: ScoredStudy) -> dict[str, tuple[str, ...]]:
    """Return the last cells of the row about the ensemble without EBQL's rule, if there are runs of it."""
    quoted: dict[str, tuple[str, ...]] = {}
    for agent, *differences, _, _, words, games, seeds in variant_rows(kept, kept.baselines[0], study, other):
        if agent == CONTROL:
            named = zip(HEADER[1 : 1 + DIFFERENCES], differences, strict=True)
            told = ", ".join(f"{name} {cell}" for name, cell in named)
            quoted[f"an ensemble without EBQL's rule, {MINATAR.short}"] = (
                f"{agent} − {kept.baselines[0]} over {games} games: {told}; {words}",
                seeds,
            )
    return quoted


def introduction(kept: Study, study: ScoredStudy, how: str) -> str:
    """Return how many runs are finished, of what, how to read the tables, and where the runs are."""
    plan = planned(kept)
    interim = ""
    if FEWEST_SEEDS <= study.compared_seeds[0] < plan.seeds:
        interim = (
            f"**Differences are interim until all {plan.seeds} planned seeds are finished**: we look at them "
            "as seeds are added, so chance has more than one opportunity. "
        )
    text = (
        f"{len(study.runs)} of {plan.runs} planned runs are finished: {kept.runs} {how} {interim}"
        f'[Pictures and tables](../results/{kept.name}), `ebql.results("{kept.name}")`.'
    )
    return fill(text, _WIDTH, break_on_hyphens=False)


def rows(kept: Kept, study: ScoredStudy, found: Findings) -> dict[str, tuple[str, ...]]:
    """Return the last cells of rows by their first cell; none while the study has too few seeds."""
    seeds, _ = study.compared_seeds
    if seeds < kept.fewest_seeds or not _all_compared(kept, study):
        return {}
    biases = ", ".join(f"{agent} {with_interval(found.bias[agent], sign=True)}" for agent in kept.agents)
    iqm = ", ".join(f"{agent} {with_interval(found.aggregates[agent]['IQM'])}" for agent in kept.agents)
    where, enough = f"{len(study.compared)} games", seeds >= FEWEST_SEEDS
    seeds_cell = f"{seeds}" if enough else f"{seeds}: no interval"
    told_apart = verdict(kept, study) if enough else "too few seeds to tell them apart"
    if enough and seeds < (wanted := planned(kept).seeds):
        seeds_cell, told_apart = f"{seeds} of {wanted} planned", f"so far, {told_apart}"
    if kept is MINATAR:
        medians = ", ".join(signed(median_bias(study, agent)) for agent in kept.agents)
        biases = f"{biases}; in the median game {medians}"
    if kept is ATARI:
        told_apart = won_in_words(kept, study, higher_score, "scores higher")
        sizes = ", ".join(f"{size_of_bias(study, agent):.2f}" for agent in kept.agents)
        closer = won_in_words(kept, study, closer_to_0, "is closer to 0")
        biases = f"{biases}; mean absolute bias {sizes}; {closer}"
    quoted: dict[str, tuple[str, ...]] = {
        f"bias {in_unit(study)}, {kept.short}": (f"{where}: {biases}", seeds_cell),
        f"scores, {kept.short}": (
            f"IQM of {kept.scale} scores over {where}: {iqm}; {told_apart}",
            seeds_cell,
        ),
    }
    n_seeds = f"{seeds_cell} seeds" if enough else f"{counted(seeds, 'seed')}: no intervals"
    link = f"({kept.section}), {where}, {n_seeds}"
    if kept is MINATAR and enough:
        faster = (f"{a} − {b} {with_interval(throughout(study, a, b), sign=True)}" for a, b in kept.pairs)
        quoted[f"scores averaged over training, {kept.short}"] = (
            f"differences of {kept.scale} scores over {where}: {', '.join(faster)}",
            seeds_cell,
        )
    if kept is MINATAR:
        quoted["small images, and you use the Q-values themselves"] = (
            f"bias {in_unit(study)}: {biases}",
            f"[MinAtar]{link}",
        )
        quoted["small images, and only the score counts"] = (
            f"IQM of {kept.scale} scores: {iqm}; {told_apart}",
            f"[MinAtar]{link}",
        )
    if kept is ATARI:
        quoted["Atari"] = (
            f"after 100,000 steps {told_apart}; the paper's table was not run",
            f"[Atari]{link}",
        )
    return quoted


def _all_compared(kept: Kept, study: ScoredStudy) -> bool:
    """Return whether all three agents are compared over several games."""
    return len(study.compared) > 1 and set(kept.agents) <= set(study.contenders)


def _head_and_rows(rows: Iterator[tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    return next(rows), list(rows)


def _table(header: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))


if __name__ == "__main__":
    main()

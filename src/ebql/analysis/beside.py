"""A user's runs beside kept results of the same protocol: environment, agent, preset and steps are equal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebql.analysis.keeping import differing_options, same_evaluations
from ebql.analysis.runs import RecordedRun, RunGroup, RunOfTable, grouped, kept_runs
from ebql.analysis.scores import ScoredRun, ScoredStudy, score
from ebql.analysis.statistics import Floats, Interval, combination
from ebql.kept.table import kept_folders

# Versions that do not change what is learnt: the kernel's name, and how pictures are drawn.
_HARMLESS = ("platform", "matplotlib")


class Beside(NamedTuple):
    """An agent's runs in an environment, and the kept ones beside them."""

    environment: str
    agent: str
    yours: RunGroup
    kept: RunGroup
    your_scores: Sequence[ScoredRun]
    kept_scores: Sequence[ScoredRun]
    difference: Interval
    """Your mean score minus the kept one; without an interval if either has too few seeds."""
    marks: Sequence[str]
    """What differs between the two, and how many seeds are equal, in words."""


def beside_kept(study: ScoredStudy, kept: Sequence[RecordedRun] | None = None) -> list[Beside]:
    """Return the agents of a study beside the `kept` runs of the same protocol, by default those shipped.

    Of several kept agents, the one with the fewest different options is taken. Only finished runs count.
    """
    if kept is None:
        kept = [run for folder in kept_folders() for run in kept_runs(folder)]
    found = []
    for group in study.groups:
        runs = [run for run in group.runs if run.finished and not isinstance(run, RunOfTable)]
        protocol = _protocol(runs[0]) if runs else None
        candidates = grouped([run for run in kept if _protocol(run) == protocol])
        if candidates and "steps" in runs[0].config:
            nearest = min(
                candidates, key=lambda own: len(differing_options(runs[0].config, own.runs[0].config))
            )
            found.append(_beside(RunGroup(group.environment, group.label, runs), nearest))
    return found


def _protocol(run: RecordedRun) -> tuple[Any, ...]:
    config = run.config
    return config["environment"], config["agent"], config.get("preset"), config.get("steps")


def _beside(yours: RunGroup, kept: RunGroup) -> Beside:
    mine, theirs = (
        RunGroup(yours.environment, f"{group.label} ({whose})", group.runs)
        for group, whose in ((yours, "yours"), (kept, "kept"))
    )
    scored = score([mine, theirs])
    my_scores, their_scores = (scored.scored_runs(yours.environment, group.label) for group in (mine, theirs))
    difference = combination([_points(my_scores), _points(their_scores)], [1, -1])
    return Beside(
        yours.environment,
        yours.label,
        mine,
        theirs,
        my_scores,
        their_scores,
        difference,
        list(_marks(mine, theirs)),
    )


def _points(runs: Sequence[ScoredRun]) -> Floats:
    return np.array([run.score for run in runs])


def _marks(yours: RunGroup, kept: RunGroup) -> Iterator[str]:
    mine, theirs = yours.runs[0].config, kept.runs[0].config
    for name, (new, old) in differing_options(mine, theirs).items():
        yield f"{name} {new} (kept: {old})"
    versions: tuple[Mapping[str, str], Mapping[str, str]] = mine.get("versions", {}), theirs["versions"]
    for name in versions[0].keys() & versions[1].keys() - set(_HARMLESS):
        if versions[0][name] != versions[1][name]:
            yield f"{name} {versions[0][name]} (kept: {versions[1][name]})"
    commits = [_distinct(run.config.get("commit") for run in group.runs) for group in (yours, kept)]
    if commits[0] != commits[1]:
        yield f"commit {commits[0]} (kept: {commits[1]})"
    if list(yours.seeds) != list(kept.seeds):
        yield f"seeds {_numbers(yours.seeds)} (kept: {_numbers(kept.seeds)})"
    by_seed = {run.seed: run for run in kept.runs}
    shared = [(run, by_seed[run.seed]) for run in yours.runs if run.seed in by_seed]
    if shared:
        equal = sum(same_evaluations(*pair) for pair in shared)
        yield f"equal to nine digits on {equal} of {len(shared)} shared seeds"


def _distinct(commits: Iterator[str | None]) -> str:
    return " or ".join(dict.fromkeys("unknown" if commit is None else commit[:7] for commit in commits))


def _numbers(seeds: Sequence[int]) -> str:
    """Return 0 to 4, or 0, 2, 7."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))

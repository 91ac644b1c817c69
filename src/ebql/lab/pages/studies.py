"""The page of studies: who won, by how much and how surely, down to each run."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ebql.analysis.findings import Findings, findings
from ebql.analysis.scores import ScoredRun, ScoredStudy, read_scores
from ebql.analysis.statistics import Interval
from ebql.errors import InputError
from ebql.estimators.intervals import FEWEST_SEEDS, over_seeds
from ebql.lab.files.index import Index
from ebql.report.palette import colours
from ebql.report.study.words import caveats, further_findings, headline, method


def studies(index: Index) -> dict[str, Any]:
    """Return the folders that hold several runs."""
    found = [{"id": name, "runs": len(_run_ids(index, name))} for name in index.studies]
    return {"folder": index.folder.name, "studies": found}


def study(index: Index, name: str) -> dict[str, Any]:
    """Return the findings of a study; they are computed again only if its runs have grown."""
    if name not in index.studies:  # looked up, never joined before: no name leaves the folder
        raise InputError(f"There is no study {name[:200]!r} below this folder.")
    sizes = [_size(index.runs[run].metrics.path) for run in _run_ids(index, name)]
    return _findings(index.folder, name, tuple(sizes))


def _run_ids(index: Index, name: str) -> list[str]:
    return [run for run in index.runs if name == "." or run.startswith(f"{name}/")]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@lru_cache(maxsize=16)
def _findings(folder: Path, name: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    del sizes  # part of the key only
    scored = read_scores(folder / name)
    found = findings(scored)
    words = headline(scored, found)
    palette = colours(scored.agents)
    ids = {
        (group.environment, group.label, run.seed): run.path.relative_to(folder).as_posix()
        for group in scored.groups
        for run in group.runs
        if "seed" in run.options
    }
    return {
        "headline": words.sentence,
        "sure": words.significant,
        "notes": further_findings(scored, found),
        "caveats": caveats(scored, found),
        "method": method(scored),
        "few": scored.has_few_seeds,
        "unit": scored.unit,
        "bias_name": scored.bias_scale.name,
        "agents": [_agent(scored, found, agent, palette[agent]) for agent in found.ranking or scored.agents],
        "environments": [
            {
                "name": environment,
                "horizon": scored.horizons[environment],
                "compared": environment in scored.compared,
                "agents": [_in_environment(scored, environment, agent, ids) for agent in scored.agents],
            }
            for environment in scored.environments
        ],
    }


def _agent(scored: ScoredStudy, found: Findings, agent: str, colour: str) -> dict[str, Any]:
    """Return an agent's row; below five seeds its intervals are unknown and only its runs are shown."""
    compared = agent in found.aggregates
    best = found.ranking[0] if found.ranking else None
    return {
        "name": agent,
        "colour": colour,
        "iqm": _interval(found.aggregates[agent]["IQM"]) if compared else None,
        "mean": _interval(found.aggregates[agent]["mean"]) if compared else None,
        "behind": _interval(found.lead[agent]) if agent in found.lead else None,
        "beaten": _interval(found.improvement[best, agent]) if best and agent in found.lead else None,
        "bias": _interval(found.bias[agent]) if agent in found.bias else None,
        "speed": scored.costs(agent).speed,
        "scores": [score for own in scored.scores(agent) for score in own.tolist()] if compared else [],
    }


def _in_environment(
    scored: ScoredStudy, environment: str, agent: str, ids: dict[tuple[str, str, int], str]
) -> dict[str, Any]:
    runs: Sequence[ScoredRun] = scored.scored_runs(environment, agent)
    mean, half = over_seeds(np.array([run.score for run in runs])) if runs else (np.nan, np.nan)
    return {
        "name": agent,
        "mean": float(mean),
        "half_width": float(half) if len(runs) >= FEWEST_SEEDS else None,
        "runs": [
            {
                "seed": run.seed,
                "score": run.score,
                "bias": run.bias,
                "id": ids.get((environment, agent, run.seed)),
            }
            for run in runs
        ],
    }


def _interval(interval: Interval) -> dict[str, float | None]:
    ends = (interval.low, interval.high) if interval.known else (None, None)
    return {"value": interval.value, "low": ends[0], "high": ends[1]}

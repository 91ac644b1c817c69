"""Merge the finished runs of a study into kept results, which need no run folders."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ebql.analysis.runs import RecordedRun, read_runs
from ebql.analysis.tables import is_of_tables
from ebql.deep.config.agents import CONFIGS
from ebql.deep.config.presets import PRESETS, preset_config
from ebql.errors import InputError
from ebql.kept.files import WITHOUT_EFFECT, KeptRun, holds_kept, read_kept, write_kept
from ebql.runs import output_folder
from ebql.runs.locking import exclusive
from ebql.runs.metric_names import BIAS_PREFIX, EVALUATION_PREFIX, EVALUATION_RETURN
from ebql.studies.kinds import complete_options

_PATIENCE = 60.0  # seconds to wait for another process that keeps runs in the same folder


class Tally(NamedTuple):
    """How many runs were kept."""

    new: int
    already: int
    """Runs that had been kept before, with the same evaluations."""
    unfinished: int
    """Runs left out: they have not reached their last step, or were never evaluated."""
    total: int
    """Runs that the kept results have now."""


def keep(study: str | Path, out: str | Path) -> Tally:
    """Merge the finished runs below the folder `study` into the kept results in `out`.

    Nothing is written if a run contradicts one that is kept: the same environment, agent and seed with other
    options, another length or other evaluations. A run that was kept before stays as it is.
    """
    runs = read_runs([study])
    if any(map(is_of_tables, runs)):
        raise InputError(
            "Runs of tabular agents cannot be kept: they have no evaluations. Their study writes summary.csv."
        )
    finished = [kept_run(run) for run in runs if run.finished and run.evaluated]
    kept, new = _merged(finished, out)
    if new:
        output_folder(out)
        refusal = f"Another process writes to {str(out)!r}: wait for it."
        with exclusive(Path(out) / ".lock", refusal, _PATIENCE):
            kept, new = _merged(finished, out)  # what another process has written meanwhile, too
            write_kept(out, kept)
    return Tally(new, len(finished) - new, len(runs) - len(finished), len(kept))


def _merged(finished: Sequence[KeptRun], out: str | Path) -> tuple[list[KeptRun], int]:
    """Return the runs kept in `out` with the finished ones, and how many of these are new."""
    kept = {run.key: run for run in read_kept(out)} if holds_kept(out) else {}
    before = len(kept)
    for run in finished:
        if run.key in kept:
            _refuse_conflict(kept[run.key], run)
        kept.setdefault(run.key, run)
    return list(kept.values()), len(kept) - before


def kept_run(run: RecordedRun) -> KeptRun:
    """Return a finished run as kept results hold it."""
    config = run.config
    if not config["environment"]:
        raise InputError(f"{str(run.path)!r} cannot be kept: its environment has no id.")
    if run.changes:
        raise InputError(f"{str(run.path)!r} cannot be kept: {', '.join(run.changes)} was changed by hand.")
    preset = config.get("preset")
    options = {name: value for name, value in run.options.items() if name != "seed"}
    return KeptRun(
        run.environment,
        run.name,
        run.seed,
        config["steps"],
        config["agent"],
        preset,
        ", ".join(f"{name}={value}" for name, value in _differing(config["agent"], preset, options).items()),
        options,
        run.random_return,
        config.get("commit"),
        config.get("versions", {}),
        config.get("date", ""),
        without_folders(config.get("command", "")),
        [_evaluation(record) for record in run.records if EVALUATION_RETURN in record],
    )


def without_folders(command: str) -> str:
    """Return a command with the names of absolute paths alone: kept results are published.

    >>> without_folders("ebql sweep study.toml --out /home/me/runs")
    'ebql sweep study.toml --out runs'
    """
    try:
        words = shlex.split(command)
    except ValueError:  # not a command that a shell would understand
        return command
    return shlex.join(map(_without_folder, words))


def _without_folder(word: str) -> str:
    option, equals, path = word.partition("=")
    if equals and Path(path).is_absolute():  # --out=/home/me/runs
        return f"{option}={Path(path).name}"
    return Path(word).name if Path(word).is_absolute() else word


def _evaluation(record: Mapping[str, Any]) -> dict[str, Any]:
    prefixes = (EVALUATION_PREFIX, BIAS_PREFIX)
    return {name: value for name, value in record.items() if name == "step" or name.startswith(prefixes)}


def _differing(agent: str, preset: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the preset; none if the preset or the agent is unknown here."""
    if agent not in CONFIGS or preset not in PRESETS:
        return {}
    usual = json.loads(json.dumps(preset_config(CONFIGS[agent], preset).to_json()))
    return {name: value for name, value in options.items() if name in usual and usual[name] != value}


def differing_options(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the options in which the runs of two `config.json` differ, with both values.

    The seed and options without an effect on what is learnt do not count.
    """
    mine, theirs = complete_options(one), complete_options(other)
    names = {**mine, **theirs}.keys() - WITHOUT_EFFECT - {"seed"}
    return {
        name: (mine.get(name), theirs.get(name))
        for name in sorted(names)
        if mine.get(name) != theirs.get(name)
    }


def same_evaluations(one: RecordedRun, other: RecordedRun) -> bool:
    """Whether two runs have measured the same, to the digits that are kept."""
    own, others = (
        [_evaluation(record) for record in run.records if EVALUATION_RETURN in record] for run in (one, other)
    )
    return len(own) == len(others) and not any(_first_difference(own, others))


def _first_difference(
    one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the first metric in which evaluations differ, its two values and the step; () if none does."""
    for old, new in zip(one, other, strict=True):
        for name in ("step", *sorted(old.keys() | new.keys())):
            values = _cell(old.get(name)), _cell(new.get(name))
            if values[0] != values[1]:
                return name, *values, f"{old['step']:,}"
    return ()


def _refuse_conflict(kept: KeptRun, run: KeptRun) -> None:
    """Raise an error if two runs of the same key are not the same run."""
    what = f"{run.environment}, {run.agent}, seed {run.seed} is kept with"
    advice = "Give the agent another label, or keep the study elsewhere."
    if kept.name != run.name:
        raise InputError(f"{what} the agent {kept.name}, here it is {run.name}. {advice}")
    for name, (old, new) in differing_options(kept.config, run.config).items():
        raise InputError(f"{what} {name} = {old}, here it is {new}. {advice}")
    if kept.steps != run.steps:
        raise InputError(f"{what} {kept.steps:,} steps, here it has {run.steps:,}. {advice}")
    if len(kept.evaluations) != len(run.evaluations):
        raise InputError(f"{what} {len(kept.evaluations)} evaluations, here {len(run.evaluations)}. {advice}")
    if difference := _first_difference(kept.evaluations, run.evaluations):
        name, old, new, step = difference
        raise InputError(
            f"{what} {name} {old} at step {step}, here it is {new}: code or machine have changed. {advice}"
        )


def _cell(value: object) -> str:
    """Return a value with the digits that are kept."""
    return format(value, ".9g") if isinstance(value, int | float) else str(value)

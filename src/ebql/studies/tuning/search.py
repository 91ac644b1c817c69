"""Trials of a search: each trains one agent with options that Optuna suggests, and may be pruned.

The journal in the folder of the search holds every trial, so that the same command continues it, and any
number of processes can work on it. A process that is killed loses its trial and nothing else.
"""

import json
import logging
import math
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ebql.deep.config.agents import config_type
from ebql.deep.config.presets import preset_config
from ebql.environments.modules import import_modules
from ebql.errors import InputError, UserError
from ebql.runs.metric_names import EVALUATION_RETURN
from ebql.studies.tuning.space import Space

if TYPE_CHECKING:
    from optuna import Study, Trial

JOURNAL = "journal.log"
_POLL_SECONDS = 0.5
_STARTUP_TRIALS = 5  # before the first one may be pruned

Outcome = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Search:
    """A search as every worker process knows it."""

    environment: str
    agent: str
    preset: str
    space: Space
    steps: int
    """Agent steps of a trial that is not pruned."""
    trials: int
    seed: int
    """The seed of the sampler; trial i trains with the seed `seed` + i."""
    folder: Path
    imports: tuple[str, ...] = ()
    """Modules that every worker imports first, which may register environments or agents."""


@dataclass(frozen=True)
class TrialResult:
    """A trial that has ended."""

    number: int
    outcome: Outcome
    options: dict[str, Any]
    score: float | None
    """The mean return of its last evaluation; None if it failed before one."""
    reason: str | None
    """Why it failed."""


def run_search(search: Search, workers: int, tick: Callable[[list[TrialResult]], None]) -> list[TrialResult]:
    """Run trials in `workers` processes until the search has enough; return all that have ended.

    `tick` is called about twice a second with the trials that have ended so far.
    """
    require_optuna()
    search.folder.mkdir(parents=True, exist_ok=True)
    study = open_study(search, 0)
    context = multiprocessing.get_context("spawn")
    missing = max(search.trials - len(results(study)), 0)
    tickets = context.Semaphore(missing)
    active = [
        context.Process(target=work, args=(search, index, tickets))
        for index in range(1, min(workers, missing) + 1)
    ]
    try:
        for process in active:
            process.start()
        died = 0
        while any(process.is_alive() for process in active):
            now_dead = sum(process.exitcode not in (None, 0) for process in active)
            for _ in range(now_dead - died):
                tickets.release()  # another worker may run the trial that was lost
            died = now_dead
            tick(results(study))
            time.sleep(_POLL_SECONDS)
    finally:
        for process in active:
            if process.pid is not None:  # it was started
                process.terminate()
                process.join()
    ended = results(study)
    tick(ended)
    if len(ended) < search.trials:
        raise InputError(
            f"Only {len(ended)} of {search.trials} trials have ended, since all workers have stopped: "
            "repeat the command to continue."
        )
    return ended


def work(search: Search, worker: int, tickets: Semaphore) -> None:
    """Run trials while there are `tickets` and the search has too few: the life of one process.

    The tickets are those of one command. Other commands may work on the same search.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends workers
    warnings.simplefilter("ignore")
    import_modules(search.imports)
    study = open_study(search, worker)
    while len(results(study)) < search.trials and tickets.acquire(block=False):
        study.optimize(lambda trial: score_of(search, trial), n_trials=1, catch=(UserError,))


def _end_with_parent() -> None:
    """Exit when the parent process dies, which ends its workers unless it is killed."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def score_of(search: Search, trial: "Trial") -> float:
    """Train one agent; return the mean return of its last evaluation, or prune the trial."""
    from optuna import TrialPruned

    from ebql.deep.agents import AGENTS

    options: dict[str, Any] = {
        name: dimension.suggest(trial, name) for name, dimension in search.space.items()
    }
    score = float("nan")

    def on_record(record: Mapping[str, Any]) -> None:
        nonlocal score
        if record.get(EVALUATION_RETURN) is None:
            return
        score = float(record[EVALUATION_RETURN])
        trial.report(score, record["step"])
        if record["step"] < search.steps and trial.should_prune():
            raise TrialPruned

    try:
        agent = AGENTS[search.agent](
            search.environment, preset=search.preset, seed=search.seed + trial.number, **options
        )
        agent.learn(search.steps, callback=on_record)
    except UserError as error:
        trial.set_user_attr("reason", str(error))
        raise
    return score


def open_study(search: Search, worker: int) -> "Study":
    """Open the journal of the search, or begin it. A worker's sampler differs from that of the others."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(logging.ERROR)
    storage = JournalStorage(JournalFileBackend(str(search.folder / JOURNAL)))
    study = optuna.create_study(
        storage=storage,
        study_name="ebql",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=_STARTUP_TRIALS),
    )
    _require_same_search(search, study)
    seeds = np.random.SeedSequence((search.seed, worker, len(study.get_trials(deepcopy=False))))
    study.sampler = optuna.samplers.TPESampler(seed=int(seeds.generate_state(1)[0]))
    return study


def _require_same_search(search: Search, study: "Study") -> None:
    """Refuse a folder that holds the trials of another search: their scores could not be compared."""
    about = {
        "environment": search.environment,
        "agent": search.agent,
        "preset": search.preset,
        "steps": search.steps,
        "seed": search.seed,
        "space": repr(sorted(search.space.items())),
    }
    known = study.user_attrs
    for name, value in about.items():
        if name not in known:
            study.set_user_attr(name, value)
        elif known[name] != value:
            difference = "another search space" if name == "space" else f"{name} {known[name]}, not {value}"
            raise InputError(
                f"The folder {str(search.folder)!r} holds a search with {difference}: use another --out."
            )


def results(study: "Study") -> list[TrialResult]:
    """Return the trials that have ended, in their order."""
    from optuna.trial import TrialState

    outcomes: dict[TrialState, Outcome] = {
        TrialState.COMPLETE: "complete",
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: "failed",
    }
    ended = []
    for trial in study.get_trials(deepcopy=False, states=tuple(outcomes)):
        values = trial.intermediate_values
        score = trial.value if trial.state == TrialState.COMPLETE else None
        if score is None and values and trial.state == TrialState.PRUNED:
            score = values[max(values)]
        options = {name: _plain(value) for name, value in trial.params.items()}
        ended.append(
            TrialResult(trial.number, outcomes[trial.state], options, score, trial.user_attrs.get("reason"))
        )
    return ended


def best_of(ended: list[TrialResult]) -> TrialResult:
    """Return the complete trial with the highest score; raise an error that says why there is none."""
    scores = [
        -math.inf if trial.score is None or trial.outcome != "complete" else trial.score for trial in ended
    ]
    if max(scores, default=-math.inf) == -math.inf:
        reason = next((trial.reason for trial in ended if trial.reason), "all were pruned.")
        raise InputError(f"No trial was completed: {reason}")
    return ended[scores.index(max(scores))]


def best_study(search: Search, best: TrialResult, n_ended: int) -> str:
    """Return a study, as TOML, that compares the best options of `n_ended` trials with the preset's.

    Its seeds are fresh.
    """
    first = search.seed + 100_000
    seeds = ", ".join(str(first + i) for i in range(5))
    config = preset_config(config_type(search.agent), search.preset)
    label = config.label()
    options = "\n".join(f"{name} = {_toml(value)}" for name, value in sorted(best.options.items()))
    return f"""\
# The best of {n_ended} trials on {search.environment} scored {best.score:.5g}. That score is
# optimistic: it is the largest of many. This study compares its options with the preset's own values,
# on seeds that the search never used.
environments = [{_toml(search.environment)}]
preset = {_toml(search.preset)}
steps = {search.steps}
seeds = [{seeds}]

[[agent]]
name = {_toml(search.agent)}
label = {_toml(label)}

[[agent]]
name = {_toml(search.agent)}
label = {_toml(f"{label}, tuned")}
{options}
"""


def require_optuna() -> None:
    """Raise an error that names the command to install Optuna, if it is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise InputError('Tuning needs Optuna: pip install "ebql[tune]"') from error


def _plain(value: Any) -> Any:
    """Return the value of an option; choices are stored as JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def _toml(value: Any) -> str:
    """Return a number, text, truth value or list as TOML, whose notation for these is JSON's."""
    return json.dumps(value, ensure_ascii=False)

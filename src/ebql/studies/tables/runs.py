"""A run of tables: thousands of seeds of one agent in one world, a batch of seeds at a time.

Its folder keeps what each seed measured (`seeds.npz`), and the means over seeds (`curves.csv`). A broken
run goes on after its last batch, and one whose study asks for more seeds learns only those.
"""

import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ebql.analysis.statistics import interval_ends, over_seeds
from ebql.errors import InputError
from ebql.runs import MetricsLog, RunFolder, write_bytes, write_csv
from ebql.studies.definition import Run
from ebql.studies.kinds import rate, table_agent
from ebql.studies.tables.worlds import METRICS, TableWorld, table_world
from ebql.tabular import learn

Floats = NDArray[np.float64]

CURVE_HEADER = ("environment", "agent", "metric", "episode", "seeds", "mean", "low", "high")
# `return` is what the agent earned while it learnt, discounted; table_worlds defines the others.
MEASURES = ("return", *METRICS)

_SEEDS = "seeds.npz"
_BATCH_NUMBERS = 20_000_000  # values recorded in one batch: 160 MB


class SummaryRow(NamedTuple):
    """A measure's mean over seeds with its 95% interval, averaged over whole runs or at their end.

    The ends of the interval are None with fewer than `FEWEST_SEEDS` seeds.
    """

    environment: str
    agent: str
    metric: str
    average: str
    seeds: int
    mean: float
    low: float | None
    high: float | None


class SeedCurves(NamedTuple):
    """What S seeds measured at R episodes."""

    seeds: NDArray[np.int64]
    """(S,)"""
    episodes: NDArray[np.int64]
    """Episodes done at each record, (R,)."""
    metrics: dict[str, Floats]
    """Each of `MEASURES`, (S, R)."""

    def of(self, seeds: Sequence[int]) -> "SeedCurves":
        """Return those of these seeds; a study may ask for fewer than were learnt."""
        wanted = np.isin(self.seeds, seeds)
        return SeedCurves(
            self.seeds[wanted], self.episodes, {name: values[wanted] for name, values in self.metrics.items()}
        )

    def joined(self, other: "SeedCurves") -> "SeedCurves":
        """Return these seeds followed by others, measured at the same episodes."""
        metrics = {name: np.concatenate([self.metrics[name], other.metrics[name]]) for name in MEASURES}
        return SeedCurves(np.concatenate([self.seeds, other.seeds]), self.episodes, metrics)


def read_seed_curves(folder: str | Path) -> SeedCurves | None:
    """Read what the seeds of a run of tables measured so far; None if none is done."""
    path = Path(folder) / _SEEDS
    if not path.exists():
        return None
    with _arrays(path) as arrays:
        return SeedCurves(arrays["seeds"], arrays["episodes"], {name: arrays[name] for name in MEASURES})


def seeds_done(folder: str | Path) -> NDArray[np.int64]:
    """Return the seeds of a run of tables that are done, (S,), without reading their curves."""
    path = Path(folder) / _SEEDS
    if not path.exists():
        return np.empty(0, np.int64)
    with _arrays(path) as arrays:
        seeds: NDArray[np.int64] = arrays["seeds"]
        return seeds


@contextmanager
def _arrays(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            yield arrays
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except (ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(
            f"{str(path)!r} is damaged: delete its folder, and its seeds are learnt anew."
        ) from error


def learn_tables(run: Run, path: str | Path, threads: int) -> None:
    """Learn the seeds that the run's folder does not have yet."""
    about = {
        "floor": run.floor,
        "agent": run.agent,
        "label": run.label,
        "environment": run.environment,
        "options": run.options,
    }
    is_new = not (Path(path) / "config.json").exists()
    folder = RunFolder.create(path, about) if is_new else RunFolder.open(path)
    world = table_world(run.environment)
    with (
        folder.locked(),
        MetricsLog.continued(folder.metrics_path) as metrics,
        MetricsLog.continued(folder.timing_path) as timing,
    ):
        done = read_seed_curves(path)
        known = set() if done is None else set(done.seeds.tolist())
        began = time.perf_counter()
        for batch in _batches([seed for seed in run.seeds if seed not in known], run, world):
            new = learn_seeds(run, batch, threads)
            done = new if done is None else done.joined(new)
            _write(folder.path / _SEEDS, done)
            write_csv(folder.path / "curves.csv", CURVE_HEADER, curve_rows(run, done))
            last = {name: float(done.metrics[name][:, -1].mean()) for name in MEASURES}
            metrics.append({"step": len(done.seeds), **last})
            now = time.perf_counter()
            timing.append({"step": len(done.seeds), "seconds": now - began, "time": time.time()})
            began = now


def curve_rows(run: Run, curves: SeedCurves) -> Iterator[tuple[object, ...]]:
    """Yield each measure's mean over seeds and its 95% interval at each record."""
    for name in MEASURES:
        mean, half = over_seeds(curves.metrics[name])
        for episode, centre, width in zip(curves.episodes, mean, half, strict=True):
            numbers = len(curves.seeds), float(centre), *interval_ends(float(centre), float(width))
            yield run.environment, run.label, name, int(episode), *numbers


def summary_rows(run: Run, curves: SeedCurves) -> Iterator[SummaryRow]:
    """Yield each measure's mean over seeds and its 95% interval, over the whole run and at its end."""
    for name in MEASURES:
        values = curves.metrics[name]
        for average, own in (("whole run", values.mean(1)), ("end", values[:, -1])):
            mean, half = map(float, over_seeds(own))
            numbers = len(curves.seeds), mean, *interval_ends(mean, half)
            yield SummaryRow(run.environment, run.label, name, average, *numbers)


def compile_tables(runs: Iterable[Run]) -> None:
    """Compile what the runs need, unless it is cached: processes that start together would each do so."""
    agents = [(run, table_agent(run.agent, run.options)) for run in runs]
    for run, agent in {agent.plain: (run, agent) for run, agent in agents}.values():
        learn(table_world(run.environment).followed, agent, episodes=1, max_steps=1)


def learn_seeds(run: Run, seeds: Sequence[int], threads: int) -> SeedCurves:
    """Let some seeds of a run learn, and measure them."""
    options, world = run.options, table_world(run.environment)
    history = learn(
        world.followed,
        table_agent(run.agent, options),
        episodes=options["episodes"],
        seeds=seeds,
        epsilon=rate("epsilon", options["epsilon"]),
        learning_rate=rate("learning_rate", options["learning_rate"]),
        discount=options["discount"],
        max_steps=options["max_steps"],
        record_every=options["record_every"],
        threads=threads,
    )
    measures = world.measures(history.decision_values, options["discount"])
    returns = _between(history.returns, history.recorded_at)
    return SeedCurves(np.array(seeds, np.int64), history.recorded_at, {"return": returns, **measures})


def _between(returns: Floats, recorded_at: NDArray[np.int64]) -> Floats:
    """Average the episodes' returns, (S, E), between each record and the one before; (S, R)."""
    sums = np.concatenate([np.zeros((len(returns), 1)), returns.cumsum(1)], axis=1)
    edges = np.concatenate([[0], recorded_at])
    averages: Floats = np.diff(sums[:, edges], axis=1) / np.diff(edges)
    return averages


def _batches(seeds: Sequence[int], run: Run, world: TableWorld) -> Iterator[Sequence[int]]:
    episodes, every = run.options["episodes"], run.options["record_every"]
    numbers = max(episodes, -(-episodes // every) * len(world.states) * world.mdp.n_actions)
    size = max(1, min(100, _BATCH_NUMBERS // numbers))
    for first in range(0, len(seeds), size):
        yield seeds[first : first + size]


def _write(path: Path, curves: SeedCurves) -> None:
    content = io.BytesIO()
    np.savez(content, seeds=curves.seeds, episodes=curves.episodes, **curves.metrics)  # type: ignore[arg-type]
    write_bytes(path, content.getvalue())

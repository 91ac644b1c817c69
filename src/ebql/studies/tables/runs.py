"""A tabular run: one agent in one environment with thousands of seeds, a batch of seeds at a time.

Its folder holds the measurements of every seed (`seeds.npz`) and their means (`curves.csv`). An interrupted
run continues after its last batch. If the study adds seeds, only the new ones learn.
"""

import io
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError
from ebql.estimators.intervals import interval_ends, over_seeds
from ebql.runs import MetricsLog, RunFolder, noted_versions, write_bytes, write_csv
from ebql.runs.files import decoded
from ebql.runs.seals import ACCEPT, SEAL, arrays_seal
from ebql.studies.model import Run
from ebql.studies.tables.agents import rate, table_agent
from ebql.studies.tables.worlds import METRICS, TableWorld, table_world
from ebql.tabular import learn

Floats = NDArray[np.float64]

CURVE_HEADER = ("environment", "agent", "metric", "episode", "seeds", "mean", "low", "high")
# `return` is the discounted return while learning; `ebql.studies.tables.worlds` defines the others.
MEASURES = ("return", *METRICS)

_SEEDS = "seeds.npz"
_VALUES_PER_BATCH = 20_000_000  # values recorded in one batch: 160 MB


class SeedCurves(NamedTuple):
    """The measurements of S seeds at R episodes."""

    seeds: NDArray[np.int64]
    """(S,)"""
    episodes: NDArray[np.int64]
    """Episodes completed at each record, (R,)."""
    metrics: dict[str, Floats]
    """Each of `MEASURES`, (S, R)."""

    def of(self, seeds: Sequence[int]) -> "SeedCurves":
        """Return the curves of these seeds alone; a study may want fewer than have learnt."""
        wanted = np.isin(self.seeds, seeds)
        return SeedCurves(
            self.seeds[wanted], self.episodes, {name: values[wanted] for name, values in self.metrics.items()}
        )

    def joined(self, other: "SeedCurves") -> "SeedCurves":
        """Return these seeds followed by the others, measured at the same episodes."""
        metrics = {name: np.concatenate([self.metrics[name], other.metrics[name]]) for name in MEASURES}
        return SeedCurves(np.concatenate([self.seeds, other.seeds]), self.episodes, metrics)


def read_seed_curves(folder: str | Path, *, accept_changes: bool = False) -> SeedCurves | None:
    """Read the curves of the finished seeds of a tabular run; None if there are none.

    Raises an error if the file was changed after it was written, unless changes are accepted.
    """
    path = Path(folder) / _SEEDS
    if not path.exists():
        return None
    with _arrays(path) as arrays:
        content = {name: arrays[name] for name in ("seeds", "episodes", *MEASURES)}
        seal = str(arrays[SEAL]) if SEAL in arrays else None  # files written by version 0.1 have none
    if seal is not None and seal != arrays_seal(content) and not accept_changes:
        raise InputError(f"{str(path)!r} was changed after it was written. {ACCEPT}")
    curves = SeedCurves(content.pop("seeds"), content.pop("episodes"), content)
    if any(values.shape != (len(curves.seeds), len(curves.episodes)) for values in content.values()):
        raise _damaged(path)
    return curves


def seeds_done(folder: str | Path) -> NDArray[np.int64]:
    """Return the finished seeds of a tabular run, (S,), without reading their curves."""
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
    except (ValueError, KeyError, EOFError, BadZipFile, zlib.error, NotImplementedError) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> InputError:
    return InputError(f"{str(path)!r} is damaged: delete its folder to learn its seeds again.")


def learn_tables(run: Run, path: str | Path, threads: int, *, accept_changes: bool = False) -> None:
    """Let the seeds learn that the run's folder does not hold yet.

    `seeds.npz` is written last: the seeds in it are done. What a killed process wrote about other seeds is
    written again, so the final files do not depend on interruptions.
    """
    about = {
        "kind": run.kind,
        "label": run.label,
        "agent": run.agent,
        "environment": run.environment,
        "options": run.options,
    }
    is_new = not (Path(path) / "config.json").exists()
    folder = RunFolder.create(path, about) if is_new else RunFolder.open(path, accept_changes=accept_changes)
    world = table_world(run.environment)
    with folder.locked(), ExitStack() as logs:
        if folder.changed:
            folder = folder.updated()  # with a note that it was changed
        if not is_new:
            folder = noted_versions(folder, folder.last_step())
        curves = read_seed_curves(path, accept_changes=accept_changes)
        position = 0 if curves is None else _position(folder, len(curves.seeds))
        metrics = logs.enter_context(folder.metrics(position, accept_changes=accept_changes))
        if curves is not None and folder.last_step() != len(curves.seeds):
            folder = folder.accepting_lost_metrics(len(curves.seeds), accept_changes=accept_changes)
        timing = logs.enter_context(MetricsLog.continued(folder.timing_path))
        finished = set() if curves is None else set(curves.seeds.tolist())
        started = time.perf_counter()
        for batch in _batches([seed for seed in run.seeds if seed not in finished], run, world):
            new = learn_seeds(run, batch, threads)
            curves = new if curves is None else curves.joined(new)
            write_csv(folder.path / "curves.csv", CURVE_HEADER, curve_rows(run, curves))
            last = {name: float(curves.metrics[name][:, -1].mean()) for name in MEASURES}
            metrics.append({"step": len(curves.seeds), **last})
            metrics.position()  # flushes it to disk
            now = time.perf_counter()
            timing.append({"step": len(curves.seeds), "seconds": now - started, "time": time.time()})
            # Last, because the seeds count as finished from here on: the other files must be complete.
            _write(folder.path / _SEEDS, curves)
            started = now


def _position(folder: RunFolder, n_seeds: int) -> int:
    """Return the length in bytes of the metrics up to the record of so many seeds."""
    content = folder.metrics_path.read_bytes() if folder.metrics_path.exists() else b""
    position = 0
    for line in content.splitlines(keepends=True):
        if not line.endswith(b"\n"):  # a crash has cut it short
            break
        try:
            if decoded(line)["step"] > n_seeds:
                break
        except (ValueError, KeyError, TypeError):  # damaged; the log itself says so
            pass
        position += len(line)
    return position


def curve_rows(run: Run, curves: SeedCurves) -> Iterator[tuple[object, ...]]:
    """Yield each measure's mean over seeds with its 95% interval at each record."""
    for name in MEASURES:
        means, half_widths = over_seeds(curves.metrics[name])
        for episode, mean, half_width in zip(curves.episodes, means, half_widths, strict=True):
            numbers = len(curves.seeds), float(mean), *interval_ends(float(mean), float(half_width))
            yield run.environment, run.label, name, int(episode), *numbers


def compile_tables(runs: Iterable[Run]) -> None:
    """Compile what the runs need, unless it is cached: processes that start together would each do so."""
    agents = [(run, table_agent(run.agent, run.options)) for run in runs]
    for run, agent in {agent.plain: (run, agent) for run, agent in agents}.values():
        learn(table_world(run.environment).followed, agent, episodes=1, max_steps=1)


def learn_seeds(run: Run, seeds: Sequence[int], threads: int) -> SeedCurves:
    """Let some seeds of a run learn, and return their curves."""
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
    returns = _mean_between_records(history.returns, history.recorded_at)
    return SeedCurves(np.array(seeds, np.int64), history.recorded_at, {"return": returns, **measures})


def _mean_between_records(returns: Floats, recorded_at: NDArray[np.int64]) -> Floats:
    """Average the returns of E episodes, (S, E), over the episodes since the last record; (S, R)."""
    sums = np.concatenate([np.zeros((len(returns), 1)), returns.cumsum(1)], axis=1)
    edges = np.concatenate([[0], recorded_at])
    averages: Floats = np.diff(sums[:, edges], axis=1) / np.diff(edges)
    return averages


def _batches(seeds: Sequence[int], run: Run, world: TableWorld) -> Iterator[Sequence[int]]:
    episodes, every = run.options["episodes"], run.options["record_every"]
    values_per_seed = max(episodes, -(-episodes // every) * len(world.states) * world.mdp.n_actions)
    size = max(1, min(100, _VALUES_PER_BATCH // values_per_seed))
    for first in range(0, len(seeds), size):
        yield seeds[first : first + size]


def _write(path: Path, curves: SeedCurves) -> None:
    content: dict[str, Any] = {"seeds": curves.seeds, "episodes": curves.episodes, **curves.metrics}
    file = io.BytesIO()
    content[SEAL] = np.array(arrays_seal(content))
    np.savez(file, **content)
    write_bytes(path, file.getvalue())

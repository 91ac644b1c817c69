"""The files of kept results, of which every row can be traced back to its run.

| file | what |
|---|---|
| `evaluations.csv` | a row for each evaluation: environment, agent, seed, step, and what was measured |
| `provenance.csv` | a row for each run: its steps, preset, options, commit, versions, date and command |
| `provenance.json` | the complete options and the versions, once each, under the names in `provenance.csv` |

Rows are sorted, and floats have nine significant digits: the same runs give the same bytes, in whatever order
they were kept. Rows of `evaluations.csv` whose run `provenance.csv` lacks are ignored: it is written last.
"""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ebql.errors import InputError
from ebql.runs import output_folder, write_csv, write_json
from ebql.runs.files import decoded, unquoted
from ebql.runs.metric_names import (
    BIAS_MEAN,
    BIAS_METHOD,
    BIAS_PREFIX,
    EVALUATION_EPISODES,
    EVALUATION_LENGTH,
    EVALUATION_PREFIX,
    EVALUATION_RETURN,
    EVALUATION_RETURN_STD,
)

EVALUATIONS, PROVENANCE, DETAILS = "evaluations.csv", "provenance.csv", "provenance.json"
WITHOUT_EFFECT = frozenset({"device", "threads", "log_period", "checkpoint_period"})
"""Options that do not affect what is learnt, up to rounding."""

METRICS = {
    "return": EVALUATION_RETURN,
    "return_std": EVALUATION_RETURN_STD,
    "length": EVALUATION_LENGTH,
    "episodes": EVALUATION_EPISODES,
    "bias": BIAS_MEAN,
    **{f"bias_{name}": f"{BIAS_PREFIX}{name}" for name in ("standard_error", "absolute", "normalised")},
    "bias_deviation": f"{BIAS_PREFIX}deviation",
    **{name: f"{BIAS_PREFIX}{name}" for name in ("value", "discounted_return", "spread", "agreement")},
    **{name: f"{BIAS_PREFIX}{name}" for name in ("states", "dropped", "method", "limit", "horizon")},
    "bootstrapped": f"{BIAS_PREFIX}bootstrapped",
}
"""The column of each metric of an evaluation; metrics of the users' own keep their names."""
_RUN_KEY = ("environment", "agent", "seed")
_COLUMNS = {metric: column for column, metric in METRICS.items()}


@dataclass(frozen=True)
class KeptRun:
    """A finished run: what was run, where it came from, and its evaluations."""

    environment: str
    agent: str
    """The agent as reports call it: the label of its study, or else its name with its number of members."""
    seed: int
    steps: int
    """Agent steps."""
    name: str
    """The agent's name on the command line."""
    preset: str | None
    differing: str
    """The options that differ from the preset, in words; empty if none does or there is no preset."""
    options: Mapping[str, Any]
    """Every option, without the seed."""
    random_return: float | None
    """The mean return of the first training episodes, if nearly all their actions were random."""
    commit: str | None
    versions: Mapping[str, str]
    date: str
    command: str
    evaluations: Sequence[Mapping[str, Any]]
    """Records of `metrics.jsonl` that hold an evaluation, in the order of their steps."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What a row is found by: environment, agent and seed."""
        return self.environment, self.agent, self.seed

    @property
    def config(self) -> dict[str, Any]:
        """The run as its `config.json` described it."""
        return {
            "kind": "deep",
            "label": self.agent,
            "agent": self.name,
            "environment": self.environment,
            "preset": self.preset,
            "options": {"seed": self.seed, **self.options},
            "steps": self.steps,
            "command": self.command,
            "date": self.date,
            "versions": self.versions,
            "commit": self.commit,
        }


def holds_kept(folder: str | Path) -> bool:
    """Whether kept results are in this folder."""
    return (Path(folder) / PROVENANCE).is_file()


def read_kept(folder: str | Path) -> list[KeptRun]:
    """Read kept results; files that are not what `write_kept` writes raise a one-line error."""
    folder = Path(folder)
    if not holds_kept(folder):
        raise InputError(f"There are no kept results in {str(folder)!r}: it has no {PROVENANCE}.")
    evaluations: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for line, row in _rows(folder / EVALUATIONS):
        key, record = _understood(folder / EVALUATIONS, line, _evaluation, row)
        evaluations.setdefault(key, []).append(record)
    details = _details(folder / DETAILS)
    return [
        _understood(folder / PROVENANCE, line, _run, row, details, evaluations)
        for line, row in _rows(folder / PROVENANCE)
    ]


def write_kept(folder: str | Path, runs: Iterable[KeptRun]) -> None:
    """Write kept results, sorted by environment, agent and seed."""
    folder = output_folder(folder)
    ordered = sorted(runs, key=lambda run: run.key)
    metrics = dict.fromkeys(name for run in ordered for record in run.evaluations for name in record)
    own = sorted(name for name in metrics if name not in _COLUMNS and name != "step")
    write_csv(
        folder / EVALUATIONS,
        (*_RUN_KEY, "step", *METRICS, *own),
        (
            (*run.key, record["step"], *(record.get(metric) for metric in (*METRICS.values(), *own)))
            for run in ordered
            for record in run.evaluations
        ),
    )
    details: dict[str, dict[str, Any]] = {"options": {}, "versions": {}}
    rows = []
    for run in ordered:
        names = {kind: _digest(getattr(run, kind)) for kind in details}
        for kind, name in names.items():
            details[kind][name] = getattr(run, kind)
        rows.append([names.get(column, getattr(run, column)) for column in _PROVENANCE_COLUMNS])
    write_json(folder / DETAILS, {kind: dict(sorted(own.items())) for kind, own in details.items()})
    write_csv(folder / PROVENANCE, _PROVENANCE_COLUMNS, rows)


_PROVENANCE_COLUMNS = tuple(field.name for field in fields(KeptRun) if field.name != "evaluations")


def _digest(content: Mapping[str, Any]) -> str:
    """Return a short name for JSON values: equal ones have the same, whatever their order."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file by column, with their line numbers."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row or None in row.values():
                    raise _damaged(path, reader.line_num, "it has too few or too many cells")
                yield reader.line_num, {name: unquoted(cell) for name, cell in row.items()}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not CSV in UTF-8"
        raise InputError(f"Cannot read {str(path)!r}: {reason}.") from error


def _details(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        content = decoded(path.read_bytes())
        return {kind: dict(content[kind]) for kind in ("options", "versions")}
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{str(path)!r} is damaged: it must hold options and versions.") from error


def _understood(path: Path, line: int, read: Any, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except KeyError as error:
        raise _damaged(path, line, f"{error.args[0]!r} is missing") from error
    except (ValueError, TypeError) as error:
        raise _damaged(path, line, str(error)) from error


def _damaged(path: Path, line: int, reason: str) -> InputError:
    return InputError(f"{str(path)!r}, line {line}: {reason}. Restore the file, or keep the runs again.")


def _evaluation(row: Mapping[str, str]) -> tuple[tuple[str, str, int], dict[str, Any]]:
    key = row["environment"], row["agent"], int(row["seed"])
    measured = {
        METRICS.get(name, name): cell for name, cell in row.items() if name not in (*_RUN_KEY, "step")
    }
    own = (name for name in measured if name not in _COLUMNS)
    if unknown := [name for name in own if not name.startswith(EVALUATION_PREFIX)]:
        raise ValueError(f"no metric has the name {unknown[0]!r}")
    return key, {"step": int(row["step"])} | {name: _value(name, cell) for name, cell in measured.items()}


def _value(metric: str, cell: str) -> str | int | float | None:
    """Return a cell as JSON had the value: whole numbers are ints, an empty cell is None."""
    if not cell or metric == BIAS_METHOD:
        return cell or None
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _run(
    row: Mapping[str, str],
    details: Mapping[str, Mapping[str, Any]],
    evaluations: Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]],
) -> KeptRun:
    key = row["environment"], row["agent"], int(row["seed"])
    if key not in evaluations:
        raise ValueError(f"{EVALUATIONS} has no evaluation of this run")
    return KeptRun(
        *key,
        steps=int(row["steps"]),
        name=row["name"],
        preset=row["preset"] or None,
        differing=row["differing"],
        options=details["options"][row["options"]],
        random_return=float(row["random_return"]) if row["random_return"] else None,
        commit=row["commit"] or None,
        versions=details["versions"][row["versions"]],
        date=row["date"],
        command=row["command"],
        evaluations=evaluations[key],
    )

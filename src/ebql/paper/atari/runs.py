"""Our runs on Atari games as cells of table 1 and curves of figure 6."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.analysis import statistics
from ebql.analysis.human_scores import game_of, normalized
from ebql.analysis.runs import NOT_IN_LABELS, RecordedRun, RunGroup, grouped, read_runs
from ebql.analysis.statistics import Interval, estimate
from ebql.deep.config.agents import config_type
from ebql.deep.config.presets import preset_config
from ebql.errors import InputError
from ebql.estimators.intervals import over_seeds
from ebql.paper.atari import published
from ebql.paper.atari.scores import AGENTS, FULL, GAMES, PRESET, environment_id
from ebql.runs.metric_names import BIAS_MEAN, EVALUATION_RETURN

Floats = NDArray[np.float64]

# Options that do not affect what is learnt, such as the evaluation period and the compression of frames.
_BOOKKEEPING = NOT_IN_LABELS | {"evaluation_period", "compress"}

SMOOTHED_OVER = 5
"""Points of the moving average of figure 6."""


class Cell(NamedTuple):
    """The score of one agent on one game: the mean over seeds of each seed's last evaluation."""

    game: str
    agent: str
    """The agent's label, with its options if agents of the same name differ in them on this game."""
    seeds: int
    steps: tuple[int, int]
    """The fewest and the most agent steps over seeds."""
    mean: float
    half_width: float
    """Of the 95% interval; infinite with fewer than `FEWEST_SEEDS` seeds."""
    lowest: float
    """The score of the worst seed."""
    highest: float
    """The score of the best seed."""
    bias: float | None
    """The mean over seeds of the last evaluation's bias, in the rewards learnt from; None if not measured."""
    preset: str
    departures: tuple[str, ...]
    """Options in which the runs differ from the paper's preset."""

    @property
    def complete(self) -> bool:
        """Whether the cell follows the paper's protocol: all its seeds, steps and options."""
        return self.seeds >= FULL.seeds and self.steps[0] >= FULL.steps and not self.departures


class NormalizedCurve(NamedTuple):
    """The human-normalised score of one agent over agent steps: one line in each panel of figure 6."""

    agent: str
    games: tuple[str, ...]
    seeds: int
    """The number of seeds of the game with the fewest."""
    steps: NDArray[np.int64]
    """Agent steps, (T,), up to the last step that all seeds of all games have reached."""
    mean: Floats
    """The mean over games of each game's mean over seeds, (T,)."""
    median: Floats

    @property
    def is_short(self) -> bool:
        """Whether the curve has too few points to be smoothed."""
        return len(self.steps) < SMOOTHED_OVER

    def smoothed(self) -> "NormalizedCurve":
        """Return the curve smoothed as in the paper: each point is averaged with the four before it.

        A short curve stays as it is: its average would be far from its end.
        """
        if self.is_short:
            return self
        return self._replace(mean=moving_average(self.mean), median=moving_average(self.median))


def atari_groups(paths: Iterable[str | Path], *, accept_changes: bool = False) -> list[RunGroup]:
    """Read the evaluated runs on games of the table, and group them over seeds."""
    runs = read_runs(paths, accept_changes=accept_changes)
    ours = [_with_full_id(run, game) for run in runs if (game := game_of(run.environment))]
    if not ours:
        seen = ", ".join(sorted({run.environment for run in runs}))
        raise InputError(f"None of these runs is on a game of table 1; they are on {seen}.")
    evaluated = [run for run in ours if any(EVALUATION_RETURN in record for record in run.records)]
    if not evaluated:
        raise InputError(f"None of these {len(ours)} Atari runs has been evaluated yet.")
    return grouped(evaluated)


def cell(group: RunGroup) -> Cell:
    """Return the cell of table 1 of one agent on one game."""
    last = _last_evaluations(group)
    steps = [int(record["step"]) for record in last]
    scores = np.array(last_scores(group))
    mean, half_width = over_seeds(scores)
    biases = [bias for record in last if (bias := record.get(BIAS_MEAN)) is not None]
    return Cell(
        game_of_group(group),
        group.label,
        len(last),
        (min(steps), max(steps)),
        float(mean),
        float(half_width),
        float(scores.min()),
        float(scores.max()),
        fmean(biases) if biases else None,
        group.runs[0].config.get("preset") or "none",
        departures(group.runs[0]),
    )


def departures(run: RecordedRun) -> tuple[str, ...]:
    """Return the options in which a run differs from the paper's preset, and which affect learning."""
    wanted = preset_config(config_type(run.config["agent"]), PRESET).to_json()
    return tuple(
        name
        for name, value in wanted.items()
        if name not in _BOOKKEEPING and _plain(run.options.get(name, value)) != _plain(value)
    )


def cells_of(cells: Sequence[Cell], agent: str) -> dict[str, Cell]:
    """Return one agent's cells by game."""
    return {cell.game: cell for cell in cells if cell.agent == agent}


def at_published_length(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of runs as long as those of the sample-efficiency literature."""
    return [cell for cell in cells if cell.steps == (published.STEPS, published.STEPS)]


def shared_games(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the games that all agents of the table have, ignoring agents without any cell."""
    columns = [own for agent in AGENTS if (own := cells_of(cells, agent))]
    return tuple(game for game in GAMES if columns and all(game in own for own in columns))


def normalized_curves(groups: Sequence[RunGroup]) -> list[NormalizedCurve]:
    """Return a curve for each agent over the games that all agents of the table have, if they were run.

    Other agents are included if they have all these games too. If no game is shared, each agent's curve is
    over its own games.
    """
    by_agent: dict[str, dict[str, RunGroup]] = {}
    for group in groups:
        by_agent.setdefault(group.label, {})[game_of_group(group)] = group
    deciding = [own for agent, own in by_agent.items() if agent in AGENTS] or list(by_agent.values())
    shared = [game for game in GAMES if all(game in own for own in deciding)]
    curves = [
        _curve(agent, {game: own[game] for game in GAMES if game in (shared or own)})
        for agent, own in by_agent.items()
        if all(game in own for game in shared)
    ]
    return [curve for curve in curves if len(curve.steps)]


class Aggregate(NamedTuple):
    """The human-normalised scores of one agent over the games that all agents of the table have."""

    agent: str
    games: int
    seeds: int
    """The number of seeds of the game with the fewest."""
    mean: Interval
    median: Interval
    iqm: Interval


def aggregates(groups: Sequence[RunGroup]) -> list[Aggregate]:
    """Return each agent's aggregates, of its last evaluations; empty if the agents share no game."""
    games = shared_games([cell(group) for group in groups])
    by_agent: dict[str, list[Floats]] = {}
    for game in games:
        for group in groups:
            if game_of_group(group) == game and group.label in AGENTS:
                scores = [normalized(game, score) for score in last_scores(group)]
                by_agent.setdefault(group.label, []).append(np.array(scores))
    return [
        Aggregate(
            agent,
            len(own),
            min(map(len, own)),
            *(estimate(own, statistic) for statistic in (statistics.mean, statistics.median, statistics.iqm)),
        )
        for agent, own in by_agent.items()
    ]


def last_scores(group: RunGroup) -> list[float]:
    """Return the return of the last evaluation of each run."""
    return [float(record[EVALUATION_RETURN]) for record in _last_evaluations(group)]


def _last_evaluations(group: RunGroup) -> list[Mapping[str, Any]]:
    return [
        next(record for record in reversed(run.records) if EVALUATION_RETURN in record) for run in group.runs
    ]


def moving_average(values: Floats, points: int = SMOOTHED_OVER) -> Floats:
    """Return the mean of each value and the `points` − 1 values before it; of fewer at the start."""
    return np.array([values[max(0, end - points) : end].mean() for end in range(1, len(values) + 1)])


def _curve(agent: str, groups: Mapping[str, RunGroup]) -> NormalizedCurve:
    returns = {game: _normalized_returns(group) for game, group in groups.items()}
    seeds = min(len(group.runs) for group in groups.values())
    grid = np.array(sorted({int(step) for steps, _ in returns.values() for step in steps}), np.int64)
    first = max((steps[0] for steps, _ in returns.values() if len(steps)), default=0)
    last = min((steps[-1] if len(steps) else -1 for steps, _ in returns.values()), default=-1)
    grid = grid[(grid >= first) & (grid <= last)]
    # Games are evaluated at slightly different steps: use the latest evaluation of each.
    values = np.array(
        [
            normalized_at[np.searchsorted(steps, grid, side="right") - 1]
            for steps, normalized_at in returns.values()
        ]
    ).reshape(len(returns), -1)
    return NormalizedCurve(agent, tuple(groups), seeds, grid, values.mean(0), np.median(values, 0))


def _normalized_returns(group: RunGroup) -> tuple[NDArray[np.int64], Floats]:
    """Return the steps that all seeds have reached, and the normalised mean over seeds at each."""
    curve = group.curve(EVALUATION_RETURN)
    reached = ~np.isnan(curve.values).any(0)
    game = game_of_group(group)
    means = curve.values[:, reached].mean(0)
    return curve.steps[reached], np.array([normalized(game, float(mean)) for mean in means])


def _with_full_id(run: RecordedRun, game: str) -> RecordedRun:
    # `pong` and `ALE/Pong-v5` are the same game.
    return replace(run, config={**run.config, "environment": environment_id(game)})


def game_of_group(group: RunGroup) -> str:
    """Return the game of the table that these runs are on."""
    game = game_of(group.environment)
    assert game is not None  # atari_groups keeps games of the table only
    return game


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value

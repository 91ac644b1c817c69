"""What one table learnt in one world under one regime, for every seed; finished ones are kept on disk.

All studies of tables are made of these outcomes. Each is written to a file of its own, so that an interrupted
study continues where it stopped, and studies that share an outcome compute it once.
"""

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, meta_chain
from ebql.paper.chains.curves import META_CHAIN, Regime, learn_under
from ebql.paper.family.worlds import GRADED_CHAIN, arms_world, graded_meta_chain
from ebql.runs import versions, write_bytes
from ebql.tabular import Agent, Group, History, Metric, group_mean, measure

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

RECORD_EVERY = 50
ARMS = (2, 4, 8, 16, 32)
WORLDS: dict[str, MDP] = {
    META_CHAIN: meta_chain(),
    GRADED_CHAIN: graded_meta_chain(),
    **{f"{arms} arms": arms_world(arms) for arms in ARMS},
}


class Part(NamedTuple):
    """What is to be learnt: an agent in a world, one of `WORLDS`, under a regime."""

    world: str
    regime: Regime
    agent: Agent

    @property
    def file_name(self) -> str:
        """The name of its file; agents and regimes are checked when it is read."""
        words = (self.world, self.regime.slug, self.agent.label)
        return "_".join(re.sub(r"[^0-9A-Za-z.]+", "-", word).strip("-") for word in words) + ".npz"

    @property
    def name(self) -> str:
        """The name in the progress line."""
        return f"{self.agent.label} · {self.world} · {self.regime.name}"


class Outcome(NamedTuple):
    """The results of one part: arrays (seeds,), but for the two of the learning curve."""

    rate: Floats  # greedy correct-action rate, over decisions and the whole run
    squared_error: Floats  # of the risky action's value, over decisions and the whole run
    bias_max: Floats  # final bias of a state's value, over decisions
    bias_risky: Floats  # final bias of the risky action's value, over decisions
    bias_risky_positive: Floats  # … over the decisions where risk pays; NaN if there are none
    bias_risky_negative: Floats  # … over those where it does not
    mean_return: Floats  # per episode
    spread: Floats  # standard deviation over members of the risky action's final value
    mean_split: Floats  # number of selecting members, mean over updates; NaN unless the split is adaptive
    episodes: NDArray[np.int64]  # (R,), episodes completed
    bias_over_time: Floats  # (R,), `bias_max` as it develops, mean over seeds


class Outcomes:
    """Computes outcomes, or reads those that `folder` holds from an earlier, interrupted study."""

    def __init__(self, folder: Path | None, progress: Progress, *, seeds: int, episodes: int) -> None:
        """Without a folder nothing is kept. `progress` is called after each outcome."""
        self.folder, self.progress = folder, progress
        self.seeds, self.episodes = seeds, episodes
        self._version = versions()["ebql"]

    def of(self, parts: Iterable[Part]) -> dict[Part, Outcome]:
        """Return the outcomes of all parts."""
        return {part: self._get(part) for part in parts}

    def _get(self, part: Part) -> Outcome:
        outcome = self._kept(part)
        if outcome is None:
            outcome = run_part(part, self.seeds, self.episodes)
            self._keep(part, outcome)
        self.progress(part.name)
        return outcome

    def missing(self, parts: Iterable[Part]) -> list[Part]:
        """Return the different parts that are yet to be computed."""
        return [part for part in dict.fromkeys(parts) if self._kept(part) is None]

    def _kept(self, part: Part) -> Outcome | None:
        if self.folder is None:
            return None
        try:
            path = self.folder / part.file_name
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                if str(arrays["about"]) == self._about(part):
                    return Outcome(*(arrays[name] for name in Outcome._fields))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            pass  # missing, damaged or of an older version: it is computed again
        return None

    def _keep(self, part: Part, outcome: Outcome) -> None:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = io.BytesIO()
            np.savez(file, about=np.array(self._about(part)), **outcome._asdict())
            write_bytes(self.folder / part.file_name, file.getvalue())

    def _about(self, part: Part) -> str:
        """Return everything that the outcome depends on; a file with another text is computed again."""
        return f"ebql {self._version}, {self.seeds} seeds, {self.episodes} episodes, {part!r}"


def run_part(part: Part, seeds: int, episodes: int) -> Outcome:
    """Train the agent with each seed, and measure what it learnt."""
    mdp = WORLDS[part.world]
    history = learn_under(
        part.regime, mdp, part.agent, seeds=seeds, episodes=episodes, record_every=RECORD_EVERY
    )
    metrics = measure(history)
    bias_max = metrics[Metric.BIAS_MAX].mean(-1)
    risky = metrics[Metric.BIAS_RISKY]
    return Outcome(
        rate=metrics[Metric.GREEDY_CORRECT].mean((1, 2)),
        squared_error=(risky**2).mean((1, 2)),
        bias_max=bias_max[:, -1],
        bias_risky=risky[:, -1].mean(-1),
        bias_risky_positive=_of_group(risky[:, -1:], mdp, Group.POSITIVE),
        bias_risky_negative=_of_group(risky[:, -1:], mdp, Group.NEGATIVE),
        mean_return=history.returns.mean(1),
        spread=_spread(history, mdp),
        mean_split=history.mean_splits,
        episodes=history.recorded_at,
        bias_over_time=bias_max.mean(0),
    )


def core_minutes(parts: Iterable[Part], seeds: int, episodes: int) -> float:
    """Estimate the processor time of all parts from short runs of each agent in each world."""
    per_episode: dict[tuple[str, Agent], float] = {}
    total = 0.0
    for part in parts:
        key = part.world, part.agent
        if key not in per_episode:
            run_part(part, 1, 1)  # compiles, if it must
            # The difference of two runs leaves out what a run costs however short it is.
            per_episode[key] = max(0.0, _seconds(part, _TRIAL) - _seconds(part, 1)) / _TRIAL
        total += per_episode[key] * seeds * episodes
    return total / 60


_TRIAL = 4000  # episodes


def _seconds(part: Part, episodes: int) -> float:
    begun = process_time()
    run_part(part, 1, episodes)
    return process_time() - begun


def _of_group(final: Floats, mdp: MDP, group: Group) -> Floats:
    means = [decision.mean for decision in mdp.decisions]
    if not any(mean > 0 if group == Group.POSITIVE else mean < 0 for mean in means):
        return np.full(len(final), np.nan)
    return group_mean(final, mdp, group)[:, 0]


def _spread(history: History, mdp: MDP) -> Floats:
    states = [decision.state for decision in mdp.decisions]
    risky = [decision.risky_action for decision in mdp.decisions]
    spread: Floats = history.tables[:, :, states, risky].std(1).mean(-1)
    return spread

"""Workloads: small runs of each kind of agent, through the code that a sweep calls for each run.

A workload takes a few hundredths of a second, yet saves several checkpoints, evaluates and logs. `go_on`
starts it or continues it; `result` is everything that must be equal to the bit, whatever happened on the
way.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ebql.runs import CheckpointStore
from ebql.studies.kinds import KINDS
from ebql.studies.model import AgentEntry, Run
from ebql.studies.tasks import Task, perform, progress

_SMALL: dict[str, Any] = {
    "hidden": [4],
    "batch_size": 4,
    "replay_size": 32,
    "learning_starts": 8,
    "target_period": 8,
    "epsilon_steps": 16,
    "log_period": 6,
    "checkpoint_period": 10,
    "evaluation_period": 12,
    "evaluation_episodes": 1,
}
_FRAMES = _SMALL | {
    "torso": "mlp",
    "evaluation_period": 0,
    "atari_protocol": "machado",
    "compress": False,
    "replay_size": 24,
}
_FRAMES_PER_SEGMENT = 8  # so that checkpoints share sealed segments, as those of long runs do


@dataclass(frozen=True)
class Workload:
    """One kind of agent on one environment."""

    name: str
    kind: str
    agent: str
    environment: str
    length: int
    options: Mapping[str, Any]
    share: float = 1.0
    """The part of the cases that it gets; a slow workload gets fewer."""

    @property
    def is_deep(self) -> bool:
        """Whether it trains networks, which have checkpoints; a table saves its seeds."""
        return self.kind == "deep"

    def run(self, length: int | None = None) -> Run:
        """Return the run as a study would plan it; a deep one may be made longer."""
        preset = "plain" if self.is_deep else None
        entry = AgentEntry(self.agent, self.agent, preset, dict(self.options))
        seeds = (3,) if self.is_deep else tuple(range(120))
        run = KINDS[self.kind].runs(entry, self.environment, seeds, self.length)[0]
        return run if length is None else replace(run, length=length)

    def go_on(self, folder: str | Path, length: int | None = None) -> None:
        """Start the run in `folder`, or continue it to its end."""
        _shorten_segments()
        perform(Task(self.run(length), str(folder), 1, ("ebql", "sweep", "crash.toml")))

    def saved(self, folder: str | Path) -> int:
        """Return how many agent steps (tables: seeds) are saved."""
        return progress(self.run(), folder)

    def result(self, folder: str | Path) -> dict[str, str]:
        """Return a digest of each file, or part of one, that must not depend on what happened on the way."""
        folder = Path(folder)
        config = json.loads((folder / "config.json").read_bytes())
        about = {key: config[key] for key in ("kind", "label", "agent", "environment", "options")}
        digests = {"config": _digest(json.dumps(about, sort_keys=True).encode())}
        names = ["metrics.jsonl"] if self.is_deep else ["metrics.jsonl", "seeds.npz", "curves.csv"]
        if self.is_deep:
            last = max(path.name for path in (folder / "checkpoints").iterdir() if path.name.isdigit())
            names += [f"checkpoints/{last}/{path.name}" for path in (folder / "checkpoints" / last).iterdir()]
        return digests | {name: _digest((folder / name).read_bytes()) for name in sorted(names)}


def after_each_save(told: Callable[[CheckpointStore, int], object]) -> None:
    """Call `told` after each checkpoint that is reported as saved; for a child, which ends with its work."""
    save = CheckpointStore.save

    def noted(store: CheckpointStore, step: int, *content: Any) -> None:
        save(store, step, *content)
        told(store, step)

    setattr(CheckpointStore, "save", noted)  # noqa: B010 - an assignment would need the exact signature


def leftovers(folder: str | Path) -> list[str]:
    """Return the temporary files and folders that a finished run should not leave behind."""
    return sorted(
        str(path.relative_to(folder))
        for path in Path(folder).rglob(".*")
        if path.name.endswith((".partial", ".old"))
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@cache
def _shorten_segments() -> None:
    """Seal a segment of frames every few frames; a real one holds thousands."""
    from ebql.deep.replay.frames import FrameReplay

    defaults = FrameReplay.__init__.__kwdefaults__
    assert defaults is not None
    defaults["segment"] = _FRAMES_PER_SEGMENT


def _deep(name: str, agent: str, environment: str, length: int, **options: Any) -> Workload:
    return Workload(name, "deep", agent, environment, length, {**_SMALL, **options})


_TABLE = {"discount": 0.9, "max_steps": 20, "record_every": 5}

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _deep("dqn-probe", "dqn", "ebql/ProbeDiscount-v0", 30),
        _deep("ebql-chain", "ebql", "ebql/MetaChain-v0", 30, ensemble_size=3, data="masked", n_step=2),
        _deep("rainbow-cartpole", "rainbow", "CartPole-v1", 30, atoms=5, n_step=3),
        _deep("ddqn-frozenlake", "double-dqn", "FrozenLake-v1", 30, envs=2, prioritized=True),
        _deep("ebql-minatar", "ebql", "MinAtar/Breakout-v1", 30, ensemble_size=2, torso="mlp"),
        Workload("dqn-frames", "deep", "dqn", "ALE/Pong-v5", 40, _FRAMES, share=0.3),
        Workload("ebql-table", "tabular", "ebql", "ebql/MetaChain-v0", 10, {"ensemble_size": 3, **_TABLE}),
        Workload("q-table", "tabular", "q-learning", "FrozenLake-v1", 10, _TABLE),
    )
}

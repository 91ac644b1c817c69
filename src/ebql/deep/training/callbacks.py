"""Callbacks: what a run calls after a step, an update, an evaluation, a checkpoint, and at its end."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ebql.errors import InputError, InputTypeError, RunError
from ebql.runs import read_metrics
from ebql.runs.metric_names import EVALUATION_PREFIX, EVALUATION_RETURN

if TYPE_CHECKING:
    from ebql.deep.agent import Agent
    from ebql.deep.evaluation.evaluation import Evaluation

Record = Mapping[str, Any]
Metric = Callable[["Agent", "Evaluation"], float | None]

_EVENTS = ("on_step", "on_update", "on_evaluation", "on_checkpoint", "on_end")


class Callback:
    """Override what you need. Each method sees the agent and a record; returning False stops the run.

    A stopped run saves a checkpoint first, and can be resumed. Methods that are not overridden cost nothing.

    >>> from ebql import DQN
    >>> class Impatient(Callback):
    ...     def on_update(self, agent, record):
    ...         return record["updates"] < 10  # False stops the run
    >>> agent = DQN("CartPole-v1", learning_starts=100, update_period=1, evaluation_period=0, seed=0)
    >>> agent.learn(1_000, callback=Impatient()).steps
    109
    """

    def on_step(self, agent: "Agent", record: Record) -> bool | None:
        """After every step of the environments; the record has step, updates and the last loss."""

    def on_update(self, agent: "Agent", record: Record) -> bool | None:
        """After every step with updates; the record has step, updates and the last loss."""

    def on_evaluation(self, agent: "Agent", record: Record) -> bool | None:
        """After every evaluation; the record is what the run writes down."""

    def on_checkpoint(self, agent: "Agent", record: Record) -> bool | None:
        """After every checkpoint of a run with a folder; the record has step and folder."""

    def on_end(self, agent: "Agent", record: Record) -> None:
        """After the last step, or when a callback stopped the run; the record has step and stopped."""

    def metrics(self, agent: "Agent", evaluation: "Evaluation") -> Mapping[str, float | None]:
        """Return metrics of your own, which join the evaluation's record as `evaluation/NAME`."""
        del agent, evaluation
        return {}


class StopAtScore(Callback):
    """Stops the run once an evaluation reaches a score, by default its mean return.

    >>> from ebql import DQN
    >>> agent = DQN("CartPole-v1", evaluation_period=100, evaluation_episodes=2, seed=0)
    >>> agent.learn(1_000, callback=StopAtScore(1.0)).steps  # any episode earns more
    100
    """

    def __init__(self, score: float, metric: str = EVALUATION_RETURN) -> None:
        self._score, self._metric = score, metric

    def on_evaluation(self, agent: "Agent", record: Record) -> bool:
        """Stop if the score is reached."""
        del agent
        return _measured(record, self._metric) < self._score


class KeepBest(Callback):
    """Saves the agent whenever an evaluation beats all earlier ones of the run.

    The file is `path`, by default `best.safetensors` in the run's folder. A resumed run compares with the
    evaluations before it, too.

    >>> from ebql import DQN
    >>> agent = DQN("CartPole-v1", evaluation_period=100, evaluation_episodes=2, seed=0)
    >>> _ = agent.learn(200, out="runs/cartpole", callback=KeepBest())
    >>> DQN.load("runs/cartpole/best.safetensors").steps in (100, 200)
    True
    """

    def __init__(self, path: str | Path | None = None, metric: str = EVALUATION_RETURN) -> None:
        self._path, self._metric = path, metric
        self._best: float | None = None

    def on_evaluation(self, agent: "Agent", record: Record) -> None:
        """Save the agent if this is the best evaluation."""
        path = self._path
        if path is None:
            if agent.folder is None:
                raise InputError("KeepBest needs a path, or a run with a folder: learn(…, out=DIR).")
            path = agent.folder / "best"
        score = _measured(record, self._metric)
        if self._best is None:
            self._best = self._best_before(agent, record["step"])
        if score > self._best:
            self._best = score
            agent.save(path)

    def _best_before(self, agent: "Agent", step: int) -> float:
        """Return the best score of the run before this agent step."""
        if agent.folder is None:
            return -math.inf
        # The run has looked for changes when it opened the log, and the user may have accepted some.
        records = read_metrics(agent.folder / "metrics.jsonl", accept_changes=True)
        earlier = (record.get(self._metric) for record in records if record["step"] < step)
        return max((score for score in earlier if score is not None), default=-math.inf)


class Measure(Callback):
    """Adds metrics of your own to every evaluation: `Measure(wins=lambda agent, evaluation: …)`.

    They are written as `evaluation/wins` beside the others, and drawn by `ebql curves` and `ebql report`.

    >>> from ebql import DQN
    >>> longest = Measure(longest=lambda agent, evaluation: max(evaluation.lengths))
    >>> agent = DQN("CartPole-v1", evaluation_period=100, evaluation_episodes=2, seed=0)
    >>> _ = agent.learn(100, out="runs/measured", callback=longest)
    >>> 8 <= read_metrics("runs/measured/metrics.jsonl")[-1]["evaluation/longest"] <= 500
    True
    """

    def __init__(self, **functions: Metric) -> None:
        for name, function in functions.items():
            if not callable(function):
                raise InputTypeError(f"The metric {name} must be a function, not {function!r}.")
        self._functions = functions

    def metrics(self, agent: "Agent", evaluation: "Evaluation") -> dict[str, float | None]:
        """Return the value of each function."""
        return {name: function(agent, evaluation) for name, function in self._functions.items()}


Listener = Callback | Callable[[Record], bool | None]
"""A callback, or a function that is called with every record of metrics."""


Listeners = Listener | Sequence[Listener] | None


class Callbacks:
    """The callbacks of a run, as the run calls them."""

    def __init__(self, agent: "Agent", given: Listeners) -> None:
        listeners = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
        self._agent = agent
        self._functions: list[Callable[[Record], bool | None]] = []
        self._hooks: dict[str, list[Callable[[Agent, Record], bool | None]]] = {e: [] for e in _EVENTS}
        self._measuring: list[Callable[[Agent, Evaluation], Mapping[str, float | None]]] = []
        for listener in listeners:
            self.add(listener)
        self.stopped = False
        """Whether a callback has asked the run to stop."""
        self.see_steps = bool(self._hooks["on_step"] or self._hooks["on_update"])
        """Whether the run has anything to call after a step."""

    def add(self, listener: Any) -> None:
        """Call this one as well."""
        hooks = {event: getattr(listener, event, None) for event in (*_EVENTS, "metrics")}
        if isinstance(listener, type) or not any(hooks.values()):
            if isinstance(listener, type) or not callable(listener):
                raise InputTypeError(
                    "callback must be a function, an object with a method such as on_evaluation, or a list "
                    f"of them, not {listener!r}."
                )
            self._functions.append(listener)
            return
        own = {
            event: hook
            for event, hook in hooks.items()
            if hook is not None and getattr(hook, "__func__", hook) is not getattr(Callback, event)
        }
        if (measure := own.pop("metrics", None)) is not None:
            self._measuring.append(measure)
        for event, hook in own.items():
            self._hooks[event].append(hook)

    def record(self, record: Record) -> None:
        """Pass a record of metrics to the functions."""
        for function in self._functions:
            self._stop_on_false(function(record))

    def call(self, event: str, record: Record) -> None:
        """Call all methods for this event."""
        for hook in self._hooks[event]:
            self._stop_on_false(hook(self._agent, record))

    def step(self, record: Record, *, updated: bool) -> None:
        """Call the methods for a step, and for its updates if there were any."""
        self.call("on_step", record)
        if updated:
            self.call("on_update", record)

    def evaluate(self) -> dict[str, Any]:
        """Evaluate the agent as its config says, and return the evaluation's record."""
        evaluation = self._agent.evaluate(self._agent.config.evaluation_episodes)
        return {**evaluation.to_json(), **self.metrics(evaluation)}

    def metrics(self, evaluation: "Evaluation") -> dict[str, float | None]:
        """Return the user's own metrics of an evaluation under the names of its record."""
        found: dict[str, float | None] = {}
        for measure in self._measuring:
            for name, value in measure(self._agent, evaluation).items():
                found[f"{EVALUATION_PREFIX}{name}"] = _checked(name, value)
        taken = found.keys() & evaluation.to_json().keys()
        if taken:
            raise InputError(f"The metric {min(taken)} exists already: give yours another name.")
        return found

    def _stop_on_false(self, answer: object) -> None:
        if isinstance(answer, bool | np.bool_) and not answer:
            self.stopped = True


def _measured(record: Record, metric: str) -> float:
    """Return a metric of an evaluation's record; −∞ if it was measured without a result."""
    if metric not in record:
        known = ", ".join(name for name in record if name != "step")
        raise InputError(f"Evaluations have no metric {metric!r}. They have: {known}.")
    value = record[metric]
    return -math.inf if value is None else float(value)


def _checked(name: str, value: Any) -> float | None:
    """Return a metric as a number that JSON can hold."""
    if value is None:
        return None
    if not isinstance(value, Real | np.bool_) or not math.isfinite(value):
        raise RunError(f"The metric {name} must be a finite number or None, not {value!r}.")
    return float(value)

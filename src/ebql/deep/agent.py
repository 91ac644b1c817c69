"""The agents, with the verbs that people know: learn, predict, evaluate, save, load."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from ebql.deep import files
from ebql.deep.bias import Bias, measured_bias
from ebql.deep.building import build_learner, torch_settings
from ebql.deep.config import AgentConfig, DoubleDQNConfig, DQNConfig, EBQLConfig
from ebql.deep.evaluation import Evaluation, evaluated
from ebql.deep.learner import greedy_actions
from ebql.deep.observations import ObservationSpec
from ebql.deep.playing import Trace, play
from ebql.deep.presets import preset_config, preset_of
from ebql.deep.replay import Array
from ebql.deep.running import Callback, Recorder, kept_after_failure, run
from ebql.deep.training import Training
from ebql.environments import Environment, Lanes, make_environment, make_lanes
from ebql.errors import InputError
from ebql.runs import RunFolder, write_json

_EVALUATION_LANES = 10


class Agent:
    """A Q-learning agent; what makes it DQN, double DQN or EBQL is its config's bootstrap rule.

    `environment` is an id, a Gymnasium `Env`, a function that makes one, or a `VectorEnv`. Options are
    those of the agent's config, over the values of a preset (found by the environment's id, unless
    named). Periodic evaluations need an environment of their own: they make one from an id, a function
    or an environment's spec, or take `evaluation_environment`.
    """

    config_type: ClassVar[type[AgentConfig]]

    def __init__(
        self,
        environment: Environment,
        *,
        preset: str | None = None,
        evaluation_environment: Environment | None = None,
        **options: Any,
    ) -> None:
        name = environment if isinstance(environment, str) else _id_of(environment)
        config = preset_config(self.config_type, preset or preset_of(name)).override(**options)
        lanes = make_lanes(environment, config.envs)
        spec = ObservationSpec.of(lanes.observation_space)
        self._set_up(config, spec, lanes.n_actions, environment, lanes, evaluation_environment)

    def _set_up(
        self,
        config: AgentConfig,
        spec: ObservationSpec,
        n_actions: int,
        environment: Environment | None,
        lanes: Lanes | None = None,
        evaluation_environment: Environment | None = None,
    ) -> None:
        self.config, self.spec, self.n_actions = config, spec, n_actions
        self._environment, self._lanes = environment, lanes
        self._evaluation_environment = evaluation_environment
        self._learner = build_learner(config, spec, n_actions)
        self._training: Training | None = None
        self._rng = np.random.default_rng(config.seed)

    @property
    def ensemble_size(self) -> int:
        """The number of members K."""
        return self._learner.ensemble.size

    @property
    def steps(self) -> int:
        """The agent steps learnt from so far."""
        return self._training.step if self._training is not None else 0

    def learn(self, steps: int, *, out: str | Path | None = None, callback: Callback | None = None) -> Self:
        """Learn for this many more agent steps; with `out`, as a run that can be resumed.

        `callback` is called with each record of metrics. A second `learn` goes on where the first ended.
        """
        if steps <= 0:
            raise InputError(f"steps must be positive, not {steps}.")
        with torch_settings(self.config):
            training = self._prepare()
            until = training.step + steps
            if out is None:
                run(training, until, self._evaluation(), callback=callback)
                return self
            about = {**self._about(), "steps": until}
            folder = RunFolder.create(out, about)
            with folder.locked():
                recorder = Recorder(folder, position=0, step=training.step)
                recorder.checkpoint(training)
                self._run(folder, recorder, until, callback)
        return self

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        *,
        steps: int | None = None,
        environment: Environment | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Go on with the run in `folder` from its last checkpoint to its end, or to `steps` in all.

        The environment is made again from its id; one that was given as an object must be given again.
        """
        run_folder = RunFolder.open(folder)
        about = run_folder.config
        with run_folder.locked():
            checkpoint = run_folder.checkpoints.load_latest()
            agent = cls._of(about, environment)
            until = steps or about["steps"]
            if until > about["steps"]:  # so that another resume goes on to the new end
                write_json(run_folder.path / "config.json", {**about, "steps": until})
            with torch_settings(agent.config):
                training, position = agent._prepare(), 0
                if checkpoint is not None:  # None: killed before the first one, so begin again
                    training.restore(checkpoint.tensors, checkpoint.state, checkpoint.arrays)
                    position = checkpoint.state["metrics_position"]
                if training.step < until:
                    recorder = Recorder(run_folder, position, training.step)
                    agent._run(run_folder, recorder, until, callback)
        return agent

    def _run(self, folder: RunFolder, recorder: Recorder, until: int, callback: Callback | None) -> None:
        try:
            with kept_after_failure(folder):
                run(self._prepare(), until, self._evaluation(), recorder, callback)
        finally:
            recorder.close()

    def predict(
        self,
        observation: Array,
        state: tuple[Array, ...] | None = None,
        episode_start: Array | None = None,  # noqa: ARG002 - Stable-Baselines3's signature
        deterministic: bool = False,
    ) -> tuple[Any, tuple[Array, ...] | None]:
        """Return the action for one observation, or actions (rows,) for many, and `state` as it came.

        Greedy on the members' mean; unless `deterministic`, random with the probability
        `evaluation_epsilon`. The signature is Stable-Baselines3's, whose tools so work on these agents.
        """
        observations, single = self._rows(observation)
        actions: NDArray[np.int64] = greedy_actions(self._values(observations)).cpu().numpy()
        if not deterministic and self.config.evaluation_epsilon > 0:
            explore = self._rng.random(len(actions)) < self.config.evaluation_epsilon
            actions = np.where(explore, self._rng.integers(0, self.n_actions, len(actions)), actions)
        return (actions[0] if single else actions), state

    def q_values(self, observation: Array) -> NDArray[np.float32]:
        """Return the members' action values, (K, A) of one observation or (rows, K, A) of many."""
        observations, single = self._rows(observation)
        values: NDArray[np.float32] = self._values(observations).cpu().numpy()
        return values[0] if single else values

    def evaluate(
        self, episodes: int = 20, *, environment: Environment | None = None, seed: int | None = None
    ) -> Evaluation:
        """Play episodes with the current policy; equal seeds give equal episodes."""
        return evaluated(self._play(episodes, environment, seed, self.config.evaluation_epsilon), self.config)

    def measure_bias(
        self,
        environment: Environment | None = None,
        *,
        episodes: int = 20,
        tolerance: float = 0.01,
        seed: int | None = None,
    ) -> Bias:
        """Compare the members' values with what the greedy policy then earns, over whole episodes.

        States of which a time limit cuts more than the share `tolerance` of the return are dropped.
        """
        traces = self._play(episodes, environment, seed, epsilon=0.0)
        return measured_bias(traces, self.config.discount, self.config.reward_clip, tolerance)

    def save(self, path: str | Path) -> Path:
        """Save weights, optimiser and options in one safetensors file; return its path."""
        about = {**self._about(), "trained_steps": self.steps, "updates": self._learner.updates}
        return files.save(path, about, self._learner.state())

    @classmethod
    def load(cls, path: str | Path, *, environment: Environment | None = None) -> Self:
        """Load an agent from a saved file, or from the last checkpoint of a run's folder.

        A loaded agent predicts at once. To learn or evaluate it needs its environment, which it makes
        from its id, unless it is given.
        """
        about, tensors = files.load(path)
        agent = cls._of(about, environment)
        agent._learner.restore(tensors)
        agent._learner.updates = int(about.get("updates", 0))
        return agent

    @classmethod
    def _of(cls, about: Mapping[str, Any], environment: Environment | None) -> Self:
        """Build the agent that `about` describes, refusing another kind of agent."""
        kind = AGENTS[about["agent"]]
        if not issubclass(kind, cls):
            raise InputError(
                f"This is a {about['agent']} agent, not {cls.config_type.name}: use {kind.__name__}."
            )
        agent = kind.__new__(kind)
        agent._set_up(
            kind.config_type.from_json(about["options"]),
            ObservationSpec.from_json(about["observation"]),
            about["n_actions"],
            environment if environment is not None else about["environment"],
        )
        return agent

    def _about(self) -> dict[str, Any]:
        return {
            "agent": self.config.name,
            "environment": self._environment if isinstance(self._environment, str) else None,
            "observation": asdict(self.spec),
            "n_actions": self.n_actions,
            "options": self.config.to_json(),
        }

    def _prepare(self) -> Training:
        """Return the training in progress; the first time, begin it."""
        if self._training is None:
            if self._lanes is None:
                self._lanes = make_lanes(self._known_environment(), self.config.envs)
                self._require_same(self._lanes)
            self._training = Training(self.config, self._learner, self._lanes, self.spec)
        return self._training

    def _known_environment(self) -> Environment:
        if self._environment is None:
            raise InputError("This agent's environment was a Python object: give it as `environment`.")
        return self._environment

    def _require_same(self, lanes: Lanes) -> None:
        spec = ObservationSpec.of(lanes.observation_space)
        if (spec, lanes.n_actions) != (self.spec, self.n_actions):
            raise InputError(
                f"The agent knows observations {self.spec.shape} {self.spec.dtype} and {self.n_actions} "
                f"actions; this environment has {spec.shape} {spec.dtype} and {lanes.n_actions}."
            )

    def _evaluation(self) -> Callable[[], dict[str, Any]] | None:
        """Return what evaluates the policy during a run, or None if nothing should or can."""
        if not self.config.evaluation_period or self._evaluation_source() is None:
            return None
        return lambda: self.evaluate(self.config.evaluation_episodes).to_json()

    def _evaluation_source(self) -> Environment | None:
        """Return what a fresh environment for evaluations can be made from."""
        if self._evaluation_environment is not None:
            return self._evaluation_environment
        environment = self._environment
        if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
            return _maker_of_more(environment)
        return environment

    def _play(
        self, episodes: int, environment: Environment | None, seed: int | None, epsilon: float
    ) -> list[Trace]:
        if episodes < 1:
            raise InputError(f"episodes must be at least 1, not {episodes}.")
        source = environment if environment is not None else self._evaluation_source()
        if source is None:
            raise InputError("Evaluation needs an environment: give it as `environment`.")
        if isinstance(source, gymnasium.Env | gymnasium.vector.VectorEnv):
            lanes = make_lanes(source)
        else:
            lanes = make_lanes(source, min(episodes, _EVALUATION_LANES))
        self._require_same(lanes)
        if seed is None:  # fresh episodes at each evaluation, the same ones whenever the run is repeated
            words = np.random.SeedSequence(self.config.seed, spawn_key=(self.steps,)).generate_state(1)
            seed = int(words[0])
        try:
            return play(lambda rows: self._values(rows).cpu().numpy(), lanes, episodes, seed, epsilon)
        finally:
            if lanes is not self._lanes and source is not environment:
                lanes.close()

    def _values(self, observations: Array) -> torch.Tensor:
        with torch.inference_mode():
            return self._learner.values(observations)

    def _rows(self, observation: Array) -> tuple[Array, bool]:
        """Return observations with an axis of rows, and whether there was one observation without it."""
        array = np.asarray(observation, dtype=self.spec.dtype)
        if array.shape == self.spec.shape:
            return array[None], True
        if array.shape[1:] == self.spec.shape:
            return np.ascontiguousarray(array), False
        raise InputError(f"The agent knows observations of shape {self.spec.shape}, not {array.shape}.")


class DQN(Agent):
    """Deep Q-learning (Mnih et al., 2015): the target network's own maximum is the target."""

    config_type = DQNConfig


class DoubleDQN(Agent):
    """Double DQN (van Hasselt et al., 2016): the online network selects, the target network evaluates."""

    config_type = DoubleDQNConfig


class EBQL(Agent):
    """Deep Ensemble Bootstrapped Q-Learning (Peer et al., 2021): one member selects, the others evaluate.

    >>> agent = EBQL("CartPole-v1", ensemble_size=5, seed=0).learn(50_000)  # doctest: +SKIP
    """

    config_type = EBQLConfig


AGENTS: dict[str, type[Agent]] = {kind.config_type.name: kind for kind in (DQN, DoubleDQN, EBQL)}


def _id_of(environment: Environment) -> str | None:
    spec = getattr(environment, "spec", None)
    return None if spec is None else spec.id


def _maker_of_more(
    environment: "gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv[Any, Any, Any]",
) -> Callable[[], gymnasium.Env[Any, Any]] | None:
    """Return what makes one more environment like this one, if its spec says how."""
    spec = environment.spec
    if spec is None:
        return None
    if isinstance(environment, gymnasium.Env):
        return lambda: gymnasium.make(spec)
    vector_only = ("num_envs", "vectorization_mode")
    options = {name: value for name, value in spec.kwargs.items() if name not in vector_only}
    return lambda: make_environment(spec.id, **options)

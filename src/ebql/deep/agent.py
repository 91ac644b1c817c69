"""The agents, with the verbs that people know: learn, predict, evaluate, save, load."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from ebql.deep import saving as files
from ebql.deep.building import build_lanes, build_learner, torch_settings
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig, config_type
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.presets import preset_config, preset_of
from ebql.deep.evaluation.bias import TOLERANCE, Bias, horizon, measured_bias
from ebql.deep.evaluation.evaluation import Evaluation, evaluated
from ebql.deep.evaluation.rollout import Trace, play_past_limit, played_seed
from ebql.deep.networks.observations import ObservationSpec, first_not_finite
from ebql.deep.policy import Actions, aggregate, epsilon_greedy, greedy_actions
from ebql.deep.replay.ring import Array
from ebql.deep.run_loop import Callback, Heartbeat, Recorder, kept_after_failure, run
from ebql.deep.trainer import Training
from ebql.environments import Environment, Lanes, is_atari
from ebql.environments.lanes.seeded import checked_seed
from ebql.environments.lanes.spaces import LaneSpaces
from ebql.environments.sources import canonical, environment_factory, id_of, is_same
from ebql.errors import InputError, whole_number
from ebql.runs import RunFolder, write_json

_EVALUATION_LANES = 10
_BIAS_STEPS = 5_000  # of an episode played for the bias alone: an Atari game that is stuck lasts 27,000


class Agent:
    """A Q-learning agent; what makes it DQN, EBQL or one of `ebql.deep.agents` is its config.

    `environment` is an id, a Gymnasium `Env`, a function that makes one, or a `VectorEnv`. Options are
    those of the agent's config, over the values of a preset (found by the environment's id, unless
    named). Periodic evaluations need an environment of their own: they make one from an id, a function
    or an environment's spec, or take `evaluation_environment`.
    """

    config_type: ClassVar[type[AgentConfig]]

    _lanes: Lanes | None
    _evaluation_environment: Environment | None

    def __init__(
        self,
        environment: Environment,
        *,
        preset: str | None = None,
        evaluation_environment: Environment | None = None,
        **options: Any,
    ) -> None:
        environment = canonical(environment)
        name = id_of(environment)
        if is_same(environment, evaluation_environment):
            raise InputError("The evaluation_environment must be another object than the environment.")
        preset = preset or preset_of(name, self.config_type)
        config = preset_config(self.config_type, preset).override(**options)
        config.check_exploration()
        if name is not None and is_atari(name) and not isinstance(environment, str):
            raise InputError(f"Give an Atari game by its id, {name!r}: so its protocol is the agent's.")
        lanes = build_lanes(config, environment, config.envs)
        spec = ObservationSpec.of(lanes.observation_space)
        self._set_up(config, spec, lanes.n_actions, lanes.first_action, environment, preset)
        self._lanes, self._evaluation_environment = lanes, evaluation_environment

    def _set_up(
        self,
        config: AgentConfig,
        spec: ObservationSpec,
        n_actions: int,
        first_action: int,
        environment: Environment | None,
        preset: str | None,
    ) -> None:
        self.config, self.spec = config, spec
        self.n_actions, self.first_action = n_actions, first_action
        self._environment, self._preset = environment, preset
        self._lanes = None
        self._evaluation_environment = None
        self._trained_steps = 0
        self._learner = build_learner(config, spec, n_actions)
        self._training: Training | None = None
        self._rng = np.random.default_rng(config.seed)

    @property
    def ensemble_size(self) -> int:
        """The number of members K."""
        return self._learner.ensemble.size

    @property
    def steps(self) -> int:
        """The agent steps learnt from so far, those before a `save` and `load` included."""
        return self._training.step if self._training is not None else self._trained_steps

    def learn(
        self,
        steps: int,
        *,
        out: str | Path | None = None,
        label: str | None = None,
        callback: Callback | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> Self:
        """Learn for this many more agent steps; with `out`, as a run that can be resumed.

        Reports call the agent by the `label` of its run. `callback` is called with each record of metrics,
        `heartbeat` with the agent step about once a second. A second `learn` continues where the first ended.
        """
        if steps <= 0:
            raise InputError(f"steps must be positive, not {steps}.")
        with torch_settings(self.config):
            training = self._prepare()
            until = training.step + steps
            if out is None:
                run(training, until, self._evaluation(), callback=callback, heartbeat=heartbeat)
                return self
            about = {"kind": "deep", "label": label, **self._about(), "steps": until}
            folder = RunFolder.create(out, about)
            with folder.locked():
                recorder = Recorder(folder, position=0, step=training.step)
                recorder.checkpoint(training)
                self._run(folder, recorder, until, callback, heartbeat)
        return self

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        *,
        steps: int | None = None,
        environment: Environment | None = None,
        callback: Callback | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> Self:
        """Go on with the run in `folder` from its last checkpoint to its end, or to `steps` in all.

        The environment is made again from its id; one that was given as an object must be given again.
        """
        run_folder = files.open_run(folder)
        about = run_folder.config
        with run_folder.locked():
            checkpoint = run_folder.checkpoints.load_latest()
            if checkpoint is None and run_folder.last_step():
                raise InputError(
                    f"The checkpoints of the run {str(folder)!r} were deleted: it can't be trained further."
                )
            agent = cls._of(about, environment)
            until = about["steps"] if steps is None else steps
            with torch_settings(agent.config):
                training, position = agent._prepare(), 0
                if checkpoint is not None:  # None: killed before the first one, so begin again
                    training.restore(checkpoint.tensors, checkpoint.state, checkpoint.arrays)
                    position = checkpoint.state["metrics_position"]
                if steps is not None and steps <= training.step:
                    where = "finished at" if training.step >= about["steps"] else "at"
                    raise InputError(f"The run is already {where} step {training.step}: give more steps.")
                if until > about["steps"]:  # so that another resume goes on to the new end
                    write_json(run_folder.path / "config.json", {**about, "steps": until})
                if training.step < until:
                    recorder = Recorder(run_folder, position, training.step)
                    agent._run(run_folder, recorder, until, callback, heartbeat)
        return agent

    def _run(
        self,
        folder: RunFolder,
        recorder: Recorder,
        until: int,
        callback: Callback | None,
        heartbeat: Heartbeat | None,
    ) -> None:
        try:
            with kept_after_failure(folder):
                run(self._prepare(), until, self._evaluation(), recorder, callback, heartbeat)
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

        Actions are the environment's own, of a `Discrete(n, start=s)` from s on. They are greedy on the
        members' mean, of Maxmin their minimum; unless `deterministic`, random with the probability
        `evaluation_epsilon`. The signature is Stable-Baselines3's, whose tools so work on these agents.
        """
        observations, single = self._rows(observation)
        values, pessimistic = self._values(observations), self._learner.ensemble.pessimistic
        greedy: Actions = greedy_actions(values, pessimistic=pessimistic).cpu().numpy()
        epsilon = 0.0 if deterministic else self.config.evaluation_epsilon
        actions = epsilon_greedy(greedy, len(greedy), self.n_actions, epsilon, self._rng)
        actions = actions + self.first_action
        return (actions[0] if single else actions), state

    def q_values(self, observation: Array) -> NDArray[np.float32]:
        """Return the members' action values, (K, A) of one observation or (rows, K, A) of many."""
        observations, single = self._rows(observation)
        values: NDArray[np.float32] = self._values(observations).cpu().numpy()
        return values[0] if single else values

    def together(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what members say together, (…, A), of their values (…, K, A): the mean, or the minimum."""
        return aggregate(values, -2, pessimistic=self._learner.ensemble.pessimistic)

    def evaluate(
        self, episodes: int = 20, *, environment: Environment | None = None, seed: int | None = None
    ) -> Evaluation:
        """Play episodes with the current policy; equal seeds give equal episodes.

        The score is that of a policy that explores with `evaluation_epsilon`. The bias is always that of the
        greedy policy, which Q-learning estimates: with an ε above 0, greedy episodes are played for it.
        """
        epsilon = self.config.evaluation_epsilon
        if epsilon == 0:
            traces, limit = self._play(episodes, environment, seed)
            return evaluated(traces, self._bias(traces, limit))
        scored, _ = self._play(episodes, environment, seed, epsilon=epsilon)
        traces, limit = self._play(episodes, environment, seed, max_steps=_BIAS_STEPS)
        return evaluated(scored, self._bias(traces, limit))

    def measure_bias(
        self,
        environment: Environment | None = None,
        *,
        episodes: int = 20,
        tolerance: float = TOLERANCE,
        seed: int | None = None,
    ) -> Bias:
        """Compare the members' values with what the greedy policy then earns.

        Where a time limit would cut returns, episodes go on past it until the share `tolerance` of the value
        is left. Where the environment does not allow that, states too close to the limit are dropped; if none
        is left, returns are completed with the agent's own estimate. `Bias.explanation` says what was done.
        """
        if not 0 <= tolerance <= 1:
            raise InputError(f"tolerance must lie between 0 and 1, not {tolerance}.")
        traces, limit = self._play(episodes, environment, seed, tolerance=tolerance)
        return self._bias(traces, limit, tolerance)

    def _bias(self, traces: list[Trace], limit: int | None, tolerance: float = TOLERANCE) -> Bias:
        return measured_bias(traces, self.config.discount, self.config.reward_clip, tolerance, limit=limit)

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
        if environment is not None:
            agent.require_fit(build_lanes(agent.config, agent._known_environment(), 1))
        agent._learner.restore(tensors)
        agent._learner.updates = int(about.get("updates", 0))
        agent._trained_steps = int(about.get("trained_steps", 0))
        return agent

    @classmethod
    def _of(cls, about: Mapping[str, Any], environment: Environment | None) -> Self:
        """Build the agent that `about` describes, refusing another kind of agent."""
        from ebql.deep.agents import AGENTS  # which are made of this class

        kind = AGENTS[config_type(about["agent"]).name]
        if not issubclass(kind, cls):
            raise InputError(
                f"This is a {about['agent']} agent, not {cls.config_type.name}: use {kind.__name__}."
            )
        agent = kind.__new__(kind)
        agent._set_up(
            kind.config_type.from_json(about["options"]),
            ObservationSpec.from_json(about["observation"]),
            about["n_actions"],
            about.get("first_action", 0),  # not in files of before
            canonical(environment) if environment is not None else about["environment"],
            about.get("preset"),
        )
        return agent

    def _about(self) -> dict[str, Any]:
        return {
            "agent": self.config.name,
            "environment": self._environment if isinstance(self._environment, str) else None,
            "observation": asdict(self.spec),
            "n_actions": self.n_actions,
            "first_action": self.first_action,
            "preset": self._preset,
            "options": self.config.to_json(),
        }

    def _prepare(self) -> Training:
        """Return the training in progress; the first time, begin it."""
        if self._training is None:
            if self._lanes is None:
                self._lanes = build_lanes(self.config, self._known_environment(), self.config.envs)
                self.require_fit(self._lanes)
            self._training = Training(self.config, self._learner, self._lanes, self.spec)
            self._training.step = self._trained_steps
        return self._training

    def _known_environment(self) -> Environment:
        if self._environment is None:
            raise InputError("This agent's environment was a Python object: give it as `environment`.")
        return self._environment

    def require_fit(self, spaces: Lanes | LaneSpaces) -> None:
        """Refuse an environment whose observations or actions are not those that the agent knows."""
        spec = ObservationSpec.of(spaces.observation_space)
        here = (spec, spaces.n_actions, spaces.first_action)
        if here != (self.spec, self.n_actions, self.first_action):
            raise InputError(
                f"The agent knows observations {self.spec.shape} {self.spec.dtype} and {self.n_actions} "
                f"actions from {self.first_action} on; this environment has {spec.shape} {spec.dtype} and "
                f"{spaces.n_actions} from {spaces.first_action} on."
            )

    def _evaluation(self) -> Callable[[], dict[str, Any]] | None:
        """Return what evaluates the policy during a run, or None if nothing should or can."""
        if not self.config.evaluation_period:
            return None
        if self._evaluation_source() is None:
            warnings.warn(
                "No periodic evaluations: another environment like this one cannot be made from its spec. "
                "Give a function that makes it, or an evaluation_environment.",
                stacklevel=3,
            )
            return None
        return lambda: self.evaluate(self.config.evaluation_episodes).to_json()

    def _evaluation_source(self) -> Environment | None:
        """Return what a fresh environment for evaluations can be made from."""
        if self._evaluation_environment is not None:
            return self._evaluation_environment
        environment = self._environment
        if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
            self._evaluation_environment = environment_factory(environment)  # tried once, if it works
            return self._evaluation_environment
        return environment

    def _play(
        self,
        episodes: int,
        environment: Environment | None,
        seed: int | None,
        *,
        epsilon: float = 0.0,
        tolerance: float = TOLERANCE,
        max_steps: int | None = None,
    ) -> tuple[list[Trace], int | None]:
        """Play episodes; return their traces and the steps after which they are cut, if that is known.

        Greedy episodes go on past a time limit, where they can, until the share `tolerance` is left.
        """
        episodes = whole_number("episodes", episodes, 1)
        source = environment if environment is not None else self._evaluation_source()
        if source is None:
            raise InputError("Evaluation needs an environment: give it as `environment`.")
        if self._trains_in(source):
            source = environment_factory(source)
            if source is None:
                raise InputError("The agent trains in this environment: give another one to evaluate in.")
        given = isinstance(source, gymnasium.Env | gymnasium.vector.VectorEnv)
        lanes = build_lanes(self.config, source, 1 if given else min(episodes, _EVALUATION_LANES))
        self.require_fit(lanes)
        if seed is None:  # fresh episodes at each evaluation, the same ones whenever the run is repeated
            words = np.random.SeedSequence(self.config.seed, spawn_key=(self.steps,)).generate_state(1)
            seed = int(words[0])
        else:
            seed = played_seed(checked_seed(whole_number("seed", seed, 0)))
        try:
            return play_past_limit(
                lambda rows: self._values(rows).cpu().numpy(),
                lanes,
                episodes,
                seed,
                epsilon,
                pessimistic=self._learner.ensemble.pessimistic,
                extra_steps=horizon(self.config.discount, tolerance) if epsilon == 0 else None,
                max_steps=max_steps,
            )
        finally:
            if not given:  # what the caller made, the caller closes
                lanes.close()

    def _trains_in(self, environment: Environment) -> bool:
        """Whether to play here would move the environment under a training in progress."""
        return self._training is not None and is_same(environment, self._environment)

    def _values(self, observations: Array) -> torch.Tensor:
        with torch.inference_mode():
            return self._learner.values(observations)

    def _rows(self, observation: Array) -> tuple[Array, bool]:
        """Return observations with an axis of rows, and whether there was one observation without it."""
        # A copy: torch wants neither negative strides nor memory that it may not write to.
        array = np.array(observation, dtype=self.spec.dtype, order="C")
        single = array.shape == self.spec.shape
        if single:
            array = array[None]
        if array.shape[1:] != self.spec.shape:
            raise InputError(f"The agent knows observations of shape {self.spec.shape}, not {array.shape}.")
        if (found := first_not_finite(array)) is not None:
            row, wrong = found
            which = "The observation" if single else f"The observation in row {row}"
            raise InputError(f"{which} has the value {wrong}: observations must be finite.")
        return array, single


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

"""The base class of all agents: learn, predict, evaluate, save and load."""

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from gymnasium import Space
from numpy.typing import NDArray

from ebql.deep import saving
from ebql.deep.building import Blueprint, build_lanes, torch_settings, torch_threads
from ebql.deep.config.agents import config_type
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.foreign_words import in_our_words, refuse_foreign_words
from ebql.deep.config.presets import chosen_config, preset_config
from ebql.deep.evaluation.bias import TOLERANCE, Bias
from ebql.deep.evaluation.evaluation import Evaluation
from ebql.deep.evaluation.player import Player
from ebql.deep.evaluation.sources import EvaluationSources
from ebql.deep.keywords import signature_with_options
from ebql.deep.networks.own import MakeEncoder, MakeNetwork, OwnModules
from ebql.deep.networks.spaces import Spaces
from ebql.deep.policy import Actions, aggregate, epsilon_greedy, greedy_actions
from ebql.deep.replay.ring import Array
from ebql.deep.sharing.export import write_onnx
from ebql.deep.sharing.hub import fetch
from ebql.deep.targets import Rule
from ebql.deep.training.callbacks import Callbacks, Listeners
from ebql.deep.training.datasets import DataSource, read_data
from ebql.deep.training.offline import OfflineTraining
from ebql.deep.training.run_loop import Heartbeat, Recorder, run
from ebql.deep.training.starting import StoppedRun, new_run, progress_line
from ebql.deep.training.tracking import Tracker, Tracking
from ebql.deep.training.trainer import Learning, Training
from ebql.environments import Environment, Lanes, is_atari
from ebql.environments.sources import given, id_of
from ebql.errors import InputError, whole_number

if TYPE_CHECKING:
    from ebql.deep.agents import DQN, EBQL, DoubleDQN

__all__ = ["DQN", "EBQL", "Agent", "DoubleDQN"]

_ACTIONS = 2**31 + 3
"""A spawn key of the seed for the random actions of `predict`.

Gymnasium makes the same generator of a seed as NumPy: an environment that is reset with the agent's seed
would draw the same numbers.
"""


class Agent:
    """A Q-learning agent. Its config makes it DQN, EBQL or another agent of `ebql.deep.agents`.

    `environment` is an id, a Gymnasium `Env`, a function that makes one, or a `VectorEnv`. `options` are
    those of the agent's config; they override the values of `config`, or of the `preset`, which by default is
    chosen by the environment's id. Evaluations during training need a second environment: they use
    `evaluation_environment`, or make one from the id, the function or the environment's spec. `ebql train
    --help` explains every option.

    >>> from ebql import DQN
    >>> agent = DQN("CartPole-v1", evaluation_period=0, seed=0).learn(200)
    >>> agent.q_values([[0.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]]).shape  # (rows, K, actions)
    (2, 1, 2)
    >>> path = agent.save("cartpole.safetensors")
    >>> Agent.load(path).steps
    200
    """

    config_type: ClassVar[type[AgentConfig]]
    rule: ClassVar[Rule | None] = None
    """The bootstrap rule of an agent of your own, which `ebql.register` gives the name in its config."""
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        """Show every option of the config in `help` and in completion."""
        if "config_type" in vars(cls):
            cls.__signature__ = signature_with_options(Agent.__init__, cls.config_type)

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Explain words of Stable-Baselines3 before Python refuses them."""
        refuse_foreign_words(*arguments, **options)
        return super().__new__(cls)

    def __init__(
        self,
        environment: Environment,
        *,
        config: AgentConfig | None = None,
        preset: str | None = None,
        evaluation_environment: Environment | None = None,
        encoder: MakeEncoder | None = None,
        network: MakeNetwork | None = None,
        **options: Any,
    ) -> None:
        environment = given(environment)
        name = id_of(environment)
        evaluation = EvaluationSources(environment, evaluation_environment)
        config, preset = chosen_config(self.config_type, config, preset, name)
        config = config.override(**options)
        config.check_exploration()
        if name is not None and is_atari(name) and not isinstance(environment, str):
            raise InputError(f"Pass Atari games by id, here {name!r}: the agent sets up the protocol itself.")
        lanes = build_lanes(config, environment, config.envs)
        own = OwnModules(encoder, network)
        self._set_up(Blueprint(config, Spaces.of(lanes), environment, preset, own), evaluation, lanes)

    @classmethod
    def for_spaces(
        cls, observation_space: Space[Any], action_space: Space[Any], *, preset: str = "plain", **options: Any
    ) -> Self:
        """Return an agent without an environment, which learns from data alone (`learn_offline`)."""
        spaces = Spaces.without_lanes(observation_space, action_space)
        config = preset_config(cls.config_type, preset).override(**options)
        agent = cls.__new__(cls)
        agent._set_up(Blueprint(config, spaces, None, preset, OwnModules()), EvaluationSources(None), None)
        return agent

    def _set_up(self, blueprint: Blueprint, evaluation: EvaluationSources, lanes: Lanes | None) -> None:
        self._blueprint, self.config, self.spaces = blueprint, blueprint.config, blueprint.spaces
        self.spec, self.n_actions = self.spaces.observations, self.spaces.n_actions
        self.first_action, self.joint_actions = self.spaces.first_action, self.spaces.joint_actions
        self._learner = blueprint.learner()
        self._lanes, self._evaluation_sources = lanes, evaluation
        self._training: Learning | None = None
        self._trained_steps = 0
        self.folder: Path | None = None
        """The folder of the run that the agent was trained in last, if it had one."""
        self._rng = np.random.default_rng(np.random.SeedSequence(self.config.seed, spawn_key=(_ACTIONS,)))

    @property
    def ensemble_size(self) -> int:
        """K, the number of members."""
        return self._learner.ensemble.size

    @property
    def steps(self) -> int:
        """The agent steps trained so far, including those before a `save` and `load`.

        An update of `learn_offline` counts as one step.
        """
        return self._training.step if self._training is not None else self._trained_steps

    @in_our_words
    def learn(
        self,
        steps: int,
        *,
        out: str | Path | None = None,
        label: str | None = None,
        callback: Listeners = None,
        heartbeat: Heartbeat | None = None,
        progress: bool = False,
        track: Tracking | Tracker | None = None,
    ) -> Self:
        """Learn for this many more agent steps; with `out`, as a run that can be resumed.

        Reports call the agent by the `label` of its run. `callback` is a function that is called with each
        record of metrics, a `Callback`, or a list of them. `heartbeat` is called with the agent step about
        once a second. `progress` shows the command line's progress line. `track` sends the metrics to "wandb"
        or "trackio", or to a `Tracking` with a project and a name. A second `learn` continues where the first
        ended.
        """
        steps = whole_number("steps", steps, 1)
        callbacks, tracking = Callbacks(self, callback), Tracking.of(track)
        with torch_settings(self.config):
            training, evaluates = self._prepare(), self._evaluates()
            until = training.step + steps
            with (
                progress_line(progress, callbacks, heartbeat, self._blueprint.title, until, out) as beat,
                new_run(out, training, until, {"label": label, **self._about()}) as recorder,
            ):
                self._run(training, until, evaluates, callbacks, recorder, beat, tracking)
        return self

    @in_our_words
    def learn_offline(
        self,
        data: DataSource,
        updates: int,
        *,
        out: str | Path | None = None,
        label: str | None = None,
        callback: Listeners = None,
        heartbeat: Heartbeat | None = None,
        track: Tracking | Tracker | None = None,
    ) -> Self:
        """Learn with this many updates from `data` alone; with `out`, as a run that can be resumed.

        `data` is a mapping of arrays, an npz file, a run's folder, or a Minari dataset or its id;
        `docs/offline.md` says what each must hold. A step is an update: target, log, evaluation and
        checkpoint periods count updates. Evaluations are played in the agent's environment, if it has one.
        """
        updates, tracking = whole_number("updates", updates, 1), Tracking.of(track)
        with torch_settings(self.config):
            read = read_data(data, self.config, self.spaces)
            training, evaluates = self._prepare_offline(read.replay), self._evaluates()
            until = training.step + updates
            about = {"label": label, "data": read.about, **self._about()}
            with new_run(out, training, until, about) as recorder:
                callbacks = Callbacks(self, callback)
                self._run(training, until, evaluates, callbacks, recorder, heartbeat, tracking)
        return self

    @classmethod
    @in_our_words
    def resume(
        cls,
        folder: str | Path,
        *,
        steps: int | None = None,
        environment: Environment | None = None,
        evaluation_environment: Environment | None = None,
        encoder: MakeEncoder | None = None,
        network: MakeNetwork | None = None,
        accept_changes: bool = False,
        callback: Listeners = None,
        heartbeat: Heartbeat | None = None,
        track: Tracking | Tracker | None = None,
    ) -> Self:
        """Resume the run in `folder` from its last checkpoint, to its end or to `steps` agent steps in all.

        Environments are made again from their ids. If the run was started with an environment object or a
        function, in training or for evaluations, or with an encoder or a network, pass them again. If its
        files were changed by hand, it is refused unless you `accept_changes`; the run then records that you
        did.
        """
        if steps is not None:
            steps = whole_number("steps", steps, 1)
        own, tracking = OwnModules(encoder, network), Tracking.of(track)
        with StoppedRun.opened(folder, accept_changes=accept_changes) as stopped:
            own.require(stopped.description.get("own", {}), "resume(folder")
            agent = cls._from_description(stopped.description, environment, evaluation_environment, own)
            with torch_settings(agent.config):
                training = stopped.restored(agent._prepare, agent._prepare_offline)
                until = stopped.end(training.step, steps)
                if training.step < until:
                    evaluates = agent._evaluates()
                    with stopped.continued(training, until) as recorder:
                        callbacks = Callbacks(agent, callback)
                        agent._run(training, until, evaluates, callbacks, recorder, heartbeat, tracking)
        return agent

    def _run(
        self,
        training: Learning,
        until: int,
        evaluates: bool,
        callbacks: Callbacks,
        recorder: Recorder | None,
        heartbeat: Heartbeat | None,
        tracking: Tracking | None,
    ) -> None:
        """Train until the step `until`."""
        self.folder = None if recorder is None else recorder.folder.path
        with nullcontext() if tracking is None else tracking.sending(self.folder, self._about()) as send:
            if send is not None:
                callbacks.add(send)
            run(training, until, callbacks.evaluate if evaluates else None, callbacks, recorder, heartbeat)

    def predict(
        self,
        observation: Array,
        state: tuple[Array, ...] | None = None,
        episode_start: Array | None = None,  # noqa: ARG002 - Stable-Baselines3's signature
        deterministic: bool = False,
        action_masks: Array | None = None,
    ) -> tuple[Any, tuple[Array, ...] | None]:
        """Return the action for one observation, or actions (rows,) for many, and `state` unchanged.

        Actions are greedy on the members' mean, for Maxmin on their minimum. Unless `deterministic`, they are
        random with probability `evaluation_epsilon`. They are numbered as in the environment, so those of
        `Discrete(n, start=s)` start at s. With `action_masks`, (A,) or (rows, A), only actions whose entry is
        true are taken; masks of joint actions have an entry for each value of each part. The signature is
        that of Stable-Baselines3 and sb3-contrib, so that their tools work on these agents.
        """
        observations, single = self.spec.rows(observation)
        values, pessimistic = self._values(observations), self._learner.ensemble.pessimistic
        legal = self.spaces.checked_masks(action_masks, len(values))
        greedy: Actions = greedy_actions(values, pessimistic=pessimistic, legal=legal).cpu().numpy()
        epsilon = 0.0 if deterministic else self.config.evaluation_epsilon
        actions = epsilon_greedy(greedy, len(greedy), self.n_actions, epsilon, self._rng, legal)
        own = self.spaces.own(actions)
        return (own[0] if single else own), state

    def q_values(self, observation: Array) -> NDArray[np.float32]:
        """Return the members' action values, (K, A) for one observation or (rows, K, A) for many."""
        observations, single = self.spec.rows(observation)
        values: NDArray[np.float32] = self._values(observations).cpu().numpy()
        return values[0] if single else values

    def together(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the members' mean, (…, A), of their values (…, K, A); for Maxmin, their minimum."""
        return aggregate(values, -2, pessimistic=self._learner.ensemble.pessimistic)

    @in_our_words
    def evaluate(
        self, episodes: int = 20, *, environment: Environment | None = None, seed: int | None = None
    ) -> Evaluation:
        """Play episodes with the current policy; equal seeds give equal episodes.

        The score is that of the policy with `evaluation_epsilon`. The bias is always that of the greedy
        policy, whose values Q-learning estimates. If ε is above 0, greedy episodes are played to measure it.
        """
        return self._player(environment, seed).evaluate(episodes)

    @in_our_words
    def measure_bias(
        self,
        environment: Environment | None = None,
        *,
        episodes: int = 20,
        tolerance: float = TOLERANCE,
        seed: int | None = None,
    ) -> Bias:
        """Compare the ensemble's values with the returns of the greedy policy.

        Episodes continue past a time limit until the discount has fallen to `tolerance`, so that returns are
        complete. If the environment does not allow that, states too close to the limit are dropped. If none
        is left, returns are completed with the agent's own estimates. `Bias.explanation` says what was done.
        """
        return self._player(environment, seed).measure_bias(episodes, tolerance)

    def save(self, path: str | Path) -> Path:
        """Save weights, optimiser and options in one safetensors file; return its path."""
        progress = {"trained_steps": self.steps, "updates": self._learner.updates}
        return saving.save(path, {**self._about(), **progress}, self._learner.state())

    def export(self, path: str | Path, *, action_masks: bool = False) -> Path:
        """Write the greedy policy as an ONNX file, which runs without this package; return its path.

        It maps `observation` (rows, …) to the members' `values` (rows, K, A) and to the `action` that
        `predict` returns if it is deterministic. A structured observation has an input for each of its
        arrays. With `action_masks`, a further input `action_mask` (rows, A) says which actions are legal.
        """
        about = {"agent": self.config.name, "trained_steps": str(self.steps)}
        return write_onnx(path, self._learner, self.spaces, about, action_masks=action_masks)

    @classmethod
    @in_our_words
    def load(
        cls,
        path: str | Path,
        *,
        environment: Environment | None = None,
        evaluation_environment: Environment | None = None,
        encoder: MakeEncoder | None = None,
        network: MakeNetwork | None = None,
        accept_changes: bool = False,
    ) -> Self:
        """Load an agent from a saved file, or from the last checkpoint in a run's folder.

        A loaded agent can predict without an environment. To learn or evaluate, it makes its environment from
        its id, or uses `environment`; the same holds of an `evaluation_environment`. An agent with an encoder
        or a network of your own needs it again: a file holds weights, not code. A file that was changed by
        hand is refused unless you `accept_changes`.
        """
        description, tensors = saving.load(path, accept_changes=accept_changes)
        own = OwnModules(encoder, network)
        own.require(description.get("own", {}), "load(path")
        agent = cls._from_description(description, environment, evaluation_environment, own)
        if environment is not None:
            agent._blueprint.lanes(1)  # refuses an environment that does not fit
        agent._learner.restore(tensors)
        agent._learner.updates = int(description.get("updates", 0))
        agent._trained_steps = int(description.get("trained_steps", 0))
        return agent

    @classmethod
    @in_our_words
    def from_hub(
        cls,
        source: str | Path,
        *,
        revision: str | None = None,
        environment: Environment | None = None,
        evaluation_environment: Environment | None = None,
    ) -> Self:
        """Load an agent that `ebql publish` wrote: `user/name` on the Hugging Face Hub, or a folder."""
        path = fetch(source, revision)
        return cls.load(path, environment=environment, evaluation_environment=evaluation_environment)

    @classmethod
    def _from_description(
        cls,
        description: Mapping[str, Any],
        environment: Environment | None,
        evaluation_environment: Environment | None,
        own: OwnModules,
    ) -> Self:
        """Build the agent that a saved file or a run describes; refuse one of another class."""
        from ebql.deep.agents import AGENTS  # its classes derive from this one

        kind = AGENTS[config_type(description["agent"]).name]
        if not issubclass(kind, cls):
            raise InputError(
                f"This is a {description['agent']} agent, not {cls.config_type.name}: use {kind.__name__}."
            )
        agent = kind.__new__(kind)
        blueprint = Blueprint.from_json(description, environment, own)
        evaluation = EvaluationSources.from_json(description, blueprint.environment, evaluation_environment)
        agent._set_up(blueprint, evaluation, None)
        return agent

    def _about(self) -> dict[str, Any]:
        """Return the description that `_from_description` rebuilds the agent from."""
        return {**self._blueprint.to_json(), **self._evaluation_sources.to_json()}

    def _prepare(self) -> Training:
        """Return the training in the environment; start it on the first call, or after one from data."""
        if isinstance(self._training, Training):
            return self._training
        if self._lanes is None:
            self._lanes = self._blueprint.lanes(self.config.envs)
        self._training = Training(self.config, self._learner, self._lanes, self.spec, self.steps)
        return self._training

    def _prepare_offline(self, data: Mapping[str, Array]) -> OfflineTraining:
        """Return a new training from this data."""
        self._training = OfflineTraining(self.config, self._learner, self.spec, data, self.steps)
        return self._training

    def _evaluates(self) -> bool:
        """Return whether the agent is evaluated while it trains; refuse environments that cannot be right."""
        if self.config.evaluation_period == 0:
            return False
        return self._evaluation_sources.allow_training(self.config, self._lanes)

    def _player(self, environment: Environment | None, seed: int | None) -> Player:
        """Return a player of the current policy, in `environment` if given."""
        in_training = self._lanes if isinstance(self._training, Training) else None
        lanes = partial(
            self._evaluation_sources.lanes, self.config, self.spaces, environment, in_training=in_training
        )
        seed = Player.seed_of(seed, self.config, self.steps)
        return Player(self.config, lambda rows: self._values(rows).cpu().numpy(), lanes, seed)

    def _values(self, observations: Array) -> torch.Tensor:
        with torch_threads(self.config), torch.inference_mode():
            return self._learner.values(observations)


def __getattr__(name: str) -> Any:
    """Import the agents of the paper from `ebql.deep.agents`, whose classes derive from `Agent`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ebql.deep import agents

    return getattr(agents, name)

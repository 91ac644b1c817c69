"""The base class of all agents: learn, predict, evaluate, save and load."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, fields, replace
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from ebql.deep import saving
from ebql.deep.building import build_lanes, build_learner, torch_settings, torch_threads
from ebql.deep.config.agents import config_type
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.foreign_words import in_our_words, refuse_foreign_words
from ebql.deep.config.presets import preset_config, preset_of
from ebql.deep.evaluation.bias import TOLERANCE, Bias
from ebql.deep.evaluation.evaluation import Evaluation
from ebql.deep.evaluation.player import Player
from ebql.deep.evaluation.sources import EvaluationSources
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.own import MakeEncoder, MakeNetwork, OwnModules
from ebql.deep.policy import Actions, aggregate, epsilon_greedy, greedy_actions
from ebql.deep.replay.ring import Array
from ebql.deep.sharing.hub import fetch
from ebql.deep.targets import Rule
from ebql.deep.training.callbacks import Callbacks, Listeners, shown
from ebql.deep.training.datasets import DataSource, Spaces, read_data
from ebql.deep.training.offline import OfflineTraining
from ebql.deep.training.run_loop import Heartbeat, Recorder, failure_report, run
from ebql.deep.training.trainer import Learning, Training, part_of
from ebql.environments import Environment, Lanes, is_atari
from ebql.environments.lanes.joint_actions import JointActions
from ebql.environments.lanes.spaces import LaneSpaces, supported_actions, supported_observations
from ebql.environments.sources import given, id_of
from ebql.errors import InputError, InputTypeError, whole_number
from ebql.runs import Checkpoint, RunFolder, noted_versions

if TYPE_CHECKING:
    from ebql.deep.agents import DQN, EBQL, DoubleDQN

__all__ = ["DQN", "EBQL", "Agent", "DoubleDQN"]


class Agent:
    """A Q-learning agent. Its config makes it DQN, EBQL or another agent of `ebql.deep.agents`.

    `environment` is an id, a Gymnasium `Env`, a function that makes one, or a `VectorEnv`. `options` are
    those of the agent's config; they override the values of `config`, or of the `preset`, which by default is
    chosen by the environment's id. Evaluations during training need a second environment: they use
    `evaluation_environment`, or make one from the id, the function or the environment's spec. `ebql train
    --help` explains every option.
    """

    config_type: ClassVar[type[AgentConfig]]
    rule: ClassVar[Rule | None] = None
    """The bootstrap rule of an agent of your own, which `ebql.register` gives the name in its config."""
    __signature__: ClassVar[Signature]

    joint_actions: JointActions | None
    """The combinations that the action numbers stand for; None if the action space is Discrete."""
    _lanes: Lanes | None

    def __init_subclass__(cls) -> None:
        """Show every option of the config in `help` and in completion."""
        if "config_type" in vars(cls):
            cls.__signature__ = _signature(cls.config_type)

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
        evaluation_sources = EvaluationSources(environment, evaluation_environment)
        config, preset = self._configured(config, preset, name)
        config = config.override(**options)
        config.check_exploration()
        if name is not None and is_atari(name) and not isinstance(environment, str):
            raise InputError(
                f"Pass Atari games by id, here {name!r}: the agent sets up the Atari protocol itself."
            )
        lanes = build_lanes(config, environment, config.envs)
        spec = ObservationSpec.of(lanes.observation_space)
        own = OwnModules(encoder, network)
        self._set_up(config, spec, lanes.n_actions, lanes.first_action, environment, preset, own)
        self.joint_actions = lanes.joint_actions
        self._lanes, self._evaluation_sources = lanes, evaluation_sources

    def _configured(
        self, config: AgentConfig | None, preset: str | None, name: str | None
    ) -> tuple[AgentConfig, str | None]:
        """Return the config that the options override, and the preset that it comes from, if any."""
        if config is None:
            preset = preset or preset_of(name, self.config_type)
            return preset_config(self.config_type, preset), preset
        if type(config) is not self.config_type:
            raise InputTypeError(f"config must be {self.config_type.__name__}, not {type(config).__name__}.")
        if preset is not None:
            raise InputError("Pass a config or a preset, not both: a config has a value for every option.")
        return config, None

    @classmethod
    def for_spaces(
        cls,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        *,
        preset: str = "plain",
        **options: Any,
    ) -> Self:
        """Return an agent without an environment, which learns from data alone (`learn_offline`)."""
        spec = ObservationSpec.of(supported_observations(observation_space))
        actions = supported_actions(action_space)
        agent = cls.__new__(cls)
        config = preset_config(cls.config_type, preset).override(**options)
        agent._set_up(config, spec, int(actions.n), int(actions.start), None, preset, OwnModules())
        return agent

    def _set_up(
        self,
        config: AgentConfig,
        spec: ObservationSpec,
        n_actions: int,
        first_action: int,
        environment: Environment | None,
        preset: str | None,
        own: OwnModules,
    ) -> None:
        self.config, self.spec = config, spec
        self.n_actions, self.first_action = n_actions, first_action
        self.joint_actions = None
        self._environment, self._preset = environment, preset
        self._lanes = None
        self._evaluation_sources = EvaluationSources(environment)
        self._trained_steps = 0
        self.folder: Path | None = None
        """The folder of the run that the agent was trained in last, if it had one."""
        self._own = own
        self._learner = build_learner(config, spec, n_actions, own)
        self._training: Learning | None = None
        self._rng = np.random.default_rng(config.seed)

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
    ) -> Self:
        """Learn for this many more agent steps; with `out`, as a run that can be resumed.

        Reports call the agent by the `label` of its run. `callback` is a function that is called with each
        record of metrics, a `Callback`, or a list of them. `heartbeat` is called with the agent step about
        once a second. `progress` shows the command line's progress line. A second `learn` continues where the
        first ended.
        """
        if steps <= 0:
            raise InputError(f"steps must be positive, not {steps}.")
        callbacks = Callbacks(self, callback)
        with torch_settings(self.config):
            training = self._prepare()
            until = training.step + steps
            environment = self._known_environment()
            title = f"{self.config.name} on {id_of(environment) or 'an environment of its own'}"
            with shown(callbacks, heartbeat, progress, title, until, out) as beat:
                self._start(training, until, out, {"label": label}, callbacks, beat)
        return self

    def learn_offline(
        self,
        data: DataSource,
        updates: int,
        *,
        out: str | Path | None = None,
        label: str | None = None,
        callback: Listeners = None,
        heartbeat: Heartbeat | None = None,
    ) -> Self:
        """Learn with this many updates from `data` alone; with `out`, as a run that can be resumed.

        `data` is a mapping of arrays, an npz file, a run's folder, or a Minari dataset or its id;
        `docs/offline.md` says what each must hold. A step is an update: target, log, evaluation and
        checkpoint periods count updates. Evaluations are played in the agent's environment, if it has one.
        """
        updates = whole_number("updates", updates, 1)
        with torch_settings(self.config):
            spaces = Spaces(self.spec, self.n_actions, self.first_action)
            read = read_data(data, self.config, spaces)
            training = OfflineTraining(self.config, self._learner, self.spec, read.replay, self.steps)
            self._training = training
            about = {"label": label, "data": read.about}
            self._start(training, training.step + updates, out, about, Callbacks(self, callback), heartbeat)
        return self

    def _start(
        self,
        training: Learning,
        until: int,
        out: str | Path | None,
        about: Mapping[str, Any],
        callbacks: Callbacks,
        heartbeat: Heartbeat | None,
    ) -> None:
        """Train until the step `until`; with `out`, as a new run."""
        self.folder = None
        if out is None:
            run(training, until, self._evaluation(callbacks), callbacks, heartbeat=heartbeat)
            return
        description = {"kind": "deep", **about, **self._about(), "steps": until}
        with (
            RunFolder.begun(out, description) as folder,
            closing(Recorder(folder, position=0, step=training.step)) as recorder,
        ):
            recorder.checkpoint(training)
            self._run(training, folder, recorder, until, callbacks, heartbeat)

    @classmethod
    def resume(
        cls,
        folder: str | Path,
        *,
        steps: int | None = None,
        environment: Environment | None = None,
        encoder: MakeEncoder | None = None,
        network: MakeNetwork | None = None,
        accept_changes: bool = False,
        callback: Listeners = None,
        heartbeat: Heartbeat | None = None,
    ) -> Self:
        """Resume the run in `folder` from its last checkpoint, to its end or to `steps` agent steps in all.

        The environment is made again from its id. If the run was started with an environment object or a
        function, or with an encoder or a network, pass them again. If its files were changed by hand, it is
        refused unless you `accept_changes`; the run then records that you did.
        """
        own = OwnModules(encoder, network)
        run_folder = saving.open_run(folder, accept_changes=accept_changes)
        with run_folder.locked():
            description = run_folder.config
            checkpoint = run_folder.checkpoints.load_latest()
            if checkpoint is None and run_folder.last_step():
                raise InputError(
                    f"The checkpoints of the run {str(folder)!r} were deleted: it can't be trained further."
                )
            own.require(description.get("own", {}), "resume(folder")
            agent = cls._from_description(description, environment, own)
            until = description["steps"] if steps is None else steps
            with torch_settings(agent.config):
                training, position = agent._restorable(description, checkpoint), 0
                if checkpoint is not None:  # None: killed before the first checkpoint, so start afresh
                    training.restore(checkpoint.tensors, checkpoint.state, checkpoint.arrays)
                    position = checkpoint.state["metrics_position"]
                if steps is not None and steps <= training.step:
                    where = "finished at" if training.step >= description["steps"] else "at"
                    raise InputError(f"The run is already {where} step {training.step}: ask for more steps.")
                if until > description["steps"]:  # so that another resume continues to the new end
                    run_folder = run_folder.updated(steps=until)
                if training.step < until:
                    if run_folder.changed:
                        run_folder = run_folder.updated()  # with a note that it was changed
                    run_folder = noted_versions(run_folder, training.step)
                    recorder = Recorder(run_folder, position, training.step, accept_changes=accept_changes)
                    with closing(recorder):
                        if checkpoint is None:  # or a second kill would leave records without one
                            recorder.checkpoint(training)
                        callbacks = Callbacks(agent, callback)
                        agent._run(training, run_folder, recorder, until, callbacks, heartbeat)
        return agent

    def _restorable(self, description: Mapping[str, Any], checkpoint: Checkpoint | None) -> Learning:
        """Return the training that a run's checkpoint is restored to."""
        if "data" not in description:
            return self._prepare()
        if checkpoint is None:
            raise InputError("The run was stopped before it had saved its data: start it again.")
        data = part_of(checkpoint.arrays, "replay")
        self._training = OfflineTraining(self.config, self._learner, self.spec, data)
        return self._training

    def _run(
        self,
        training: Learning,
        folder: RunFolder,
        recorder: Recorder,
        until: int,
        callbacks: Callbacks,
        heartbeat: Heartbeat | None,
    ) -> None:
        self.folder = folder.path
        with failure_report(folder):
            run(training, until, self._evaluation(callbacks), callbacks, recorder, heartbeat)

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
        true are taken. The signature is that of Stable-Baselines3 and sb3-contrib, so that their tools work
        on these agents.
        """
        observations, single = self.spec.rows(observation)
        values, pessimistic = self._values(observations), self._learner.ensemble.pessimistic
        legal = self._checked_masks(action_masks, len(values))
        greedy: Actions = greedy_actions(values, pessimistic=pessimistic, legal=legal).cpu().numpy()
        epsilon = 0.0 if deterministic else self.config.evaluation_epsilon
        actions = epsilon_greedy(greedy, len(greedy), self.n_actions, epsilon, self._rng, legal)
        actions = (
            actions + self.first_action if self.joint_actions is None else self.joint_actions.own(actions)
        )
        return (actions[0] if single else actions), state

    def _checked_masks(self, masks: Array | None, n_rows: int) -> NDArray[np.bool_] | None:
        """Return masks (rows, A) of bool; refuse another shape, and a row that leaves no action."""
        if masks is None:
            return None
        legal = np.atleast_2d(np.asarray(masks).astype(bool))
        if legal.shape != (n_rows, self.n_actions):
            raise InputError(f"action_masks must have shape ({n_rows}, {self.n_actions}), not {legal.shape}.")
        if not legal.any(1).all():
            raise InputError(f"The action mask of row {legal.any(1).argmin()} leaves no action.")
        return legal

    def q_values(self, observation: Array) -> NDArray[np.float32]:
        """Return the members' action values, (K, A) for one observation or (rows, K, A) for many."""
        observations, single = self.spec.rows(observation)
        values: NDArray[np.float32] = self._values(observations).cpu().numpy()
        return values[0] if single else values

    def together(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the members' mean, (…, A), of their values (…, K, A); for Maxmin, their minimum."""
        return aggregate(values, -2, pessimistic=self._learner.ensemble.pessimistic)

    def evaluate(
        self, episodes: int = 20, *, environment: Environment | None = None, seed: int | None = None
    ) -> Evaluation:
        """Play episodes with the current policy; equal seeds give equal episodes.

        The score is that of the policy with `evaluation_epsilon`. The bias is always that of the greedy
        policy, whose values Q-learning estimates. If ε is above 0, greedy episodes are played to measure it.
        """
        return self._player(environment, seed).evaluate(episodes)

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

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        environment: Environment | None = None,
        encoder: MakeEncoder | None = None,
        network: MakeNetwork | None = None,
        accept_changes: bool = False,
    ) -> Self:
        """Load an agent from a saved file, or from the last checkpoint in a run's folder.

        A loaded agent can predict without an environment. To learn or evaluate, it makes its environment from
        its id, or uses `environment`. An agent with an encoder or a network of your own needs it again: a
        file holds weights, not code. A file that was changed by hand is refused unless you `accept_changes`.
        """
        description, tensors = saving.load(path, accept_changes=accept_changes)
        own = OwnModules(encoder, network)
        own.require(description.get("own", {}), "load(path")
        agent = cls._from_description(description, environment, own)
        if environment is not None:
            agent.require_fit(build_lanes(agent.config, agent._known_environment(), 1))
        agent._learner.restore(tensors)
        agent._learner.updates = int(description.get("updates", 0))
        agent._trained_steps = int(description.get("trained_steps", 0))
        return agent

    @classmethod
    def from_hub(
        cls, source: str | Path, *, revision: str | None = None, environment: Environment | None = None
    ) -> Self:
        """Load an agent that `ebql publish` wrote: `user/name` on the Hugging Face Hub, or a folder."""
        return cls.load(fetch(source, revision), environment=environment)

    @classmethod
    def _from_description(
        cls, description: Mapping[str, Any], environment: Environment | None, own: OwnModules
    ) -> Self:
        """Build the agent that a saved file or a run describes; refuse one of another class."""
        from ebql.deep.agents import AGENTS  # its classes derive from this one

        kind = AGENTS[config_type(description["agent"]).name]
        if not issubclass(kind, cls):
            raise InputError(
                f"This is a {description['agent']} agent, not {cls.config_type.name}: use {kind.__name__}."
            )
        agent = kind.__new__(kind)
        agent._set_up(
            kind.config_type.from_json(description["options"]),
            ObservationSpec.from_json(description["observation"]),
            description["n_actions"],
            description.get("first_action", 0),  # missing in files written by version 0.1
            given(environment) if environment is not None else description["environment"],
            description.get("preset"),
            own,
        )
        if joint := description.get("joint_actions"):
            agent.joint_actions = JointActions.from_json(joint)
        return agent

    def _about(self) -> dict[str, Any]:
        """Return the description that `_from_description` rebuilds the agent from."""
        own, joint = self._own.described(), self.joint_actions
        return {
            "agent": self.config.name,
            "environment": self._environment if isinstance(self._environment, str) else None,
            "observation": self.spec.to_json(),
            "n_actions": self.n_actions,
            "first_action": self.first_action,
            "preset": self._preset,
            "options": self.config.to_json(),
            **({} if joint is None else {"joint_actions": asdict(joint)}),
            **({"own": own} if own else {}),
        }

    def _prepare(self) -> Training:
        """Return the training in the environment; start it on the first call, or after one from data."""
        if isinstance(self._training, Training):
            return self._training
        if self._lanes is None:
            self._lanes = build_lanes(self.config, self._known_environment(), self.config.envs)
            self.require_fit(self._lanes)
        steps, training = self.steps, Training(self.config, self._learner, self._lanes, self.spec)
        self._training, training.step = training, steps
        return training

    def _known_environment(self) -> Environment:
        if self._environment is None:
            raise InputError("This agent's environment was a Python object: pass it again as `environment`.")
        return self._environment

    def require_fit(self, spaces: Lanes | LaneSpaces) -> None:
        """Refuse an environment whose observations or actions differ from those the agent was made for."""
        spec = ObservationSpec.of(spaces.observation_space)
        if not self.spec.gets_channel:  # flattened, as in files written by version 0.1
            spec = replace(spec, gets_channel=False)
        found = (spec, spaces.n_actions, spaces.first_action, spaces.joint_actions)
        if found != (self.spec, self.n_actions, self.first_action, self.joint_actions):
            raise InputError(
                f"The agent expects observations {self.spec.shape} {self.spec.dtype} and {self.n_actions} "
                f"actions starting at {self.first_action}; this environment has {spec.shape} {spec.dtype} "
                f"and {spaces.n_actions} starting at {spaces.first_action}."
            )

    def _evaluation(self, callbacks: Callbacks) -> Callable[[], dict[str, Any]] | None:
        """Return the function that evaluates during a run; None if evaluations are off or impossible."""
        if not self.config.evaluation_period or self._environment is None:
            return None
        if self._evaluation_sources.default() is None:
            warnings.warn(
                "Training without evaluations: the environment's spec does not allow making a second one. "
                "Pass a function that makes the environment, or an evaluation_environment.",
                stacklevel=3,
            )
            return None

        def evaluated() -> dict[str, Any]:
            evaluation = self.evaluate(self.config.evaluation_episodes)
            return {**evaluation.to_json(), **callbacks.metrics(evaluation)}

        return evaluated

    def _player(self, environment: Environment | None, seed: int | None) -> Player:
        """Return a player of the current policy, in `environment` if given."""
        seed = Player.seed_of(seed, self.config, self.steps)
        return Player(
            self.config,
            lambda rows: self._values(rows).cpu().numpy(),
            lambda episodes: self._evaluation_lanes(episodes, environment),
            seed,
        )

    @contextmanager
    def _evaluation_lanes(self, episodes: int, environment: Environment | None) -> Iterator[Lanes]:
        is_training = isinstance(self._training, Training)
        lanes = self._evaluation_sources.lanes(self.config, episodes, environment, is_training=is_training)
        with torch_threads(self.config), lanes as opened:
            self.require_fit(opened)
            yield opened

    def _values(self, observations: Array) -> torch.Tensor:
        with torch_threads(self.config), torch.inference_mode():
            return self._learner.values(observations)


def _signature(config: type[AgentConfig]) -> Signature:
    """Return the signature of an agent's class with every option of its config."""
    _, *own, _ = signature(Agent.__init__).parameters.values()
    options = (
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(config)
    )
    return Signature([*own, *options])


def __getattr__(name: str) -> Any:
    """Import the agents of the paper from `ebql.deep.agents`, whose classes derive from `Agent`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("ebql.deep.agents"), name)

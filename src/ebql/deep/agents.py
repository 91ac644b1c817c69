"""All agents by name: those of the paper, Rainbow, and related algorithms for comparison.

`ebql agents` lists them. Their options are in `ebql.deep.config`, their equations in `docs/algorithms.md`.
"""

import re
from collections.abc import Iterator
from typing import TypeVar, Unpack

from ebql.deep.agent import Agent
from ebql.deep.config import agents as configs
from ebql.deep.config.agents import CONFIGS
from ebql.deep.config.base import AgentConfig
from ebql.deep.keywords import (
    AgentOptions,
    AveragedDQNOptions,
    EBQLOptions,
    EnsembleOptions,
    REDQOptions,
    SunriseOptions,
    WeightedDoubleDQNOptions,
)
from ebql.deep.targets import RULES
from ebql.environments import Environment
from ebql.errors import InputError, InputTypeError, unknown_name

A = TypeVar("A", bound=type[Agent])

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class DQN(Agent):
    """Deep Q-learning (Mnih et al., 2015): the target is the maximum of the target network."""

    config_type = configs.DQNConfig

    def __init__(self, environment: Environment, **options: Unpack[AgentOptions]) -> None:
        super().__init__(environment, **options)


class DoubleDQN(Agent):
    """Double DQN (van Hasselt et al., 2016): the online network selects, the target network evaluates."""

    config_type = configs.DoubleDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[AgentOptions]) -> None:
        super().__init__(environment, **options)


class EBQL(Agent):
    """Deep Ensemble Bootstrapped Q-Learning (Peer et al., 2021): one member selects, the others evaluate.

    >>> agent = EBQL("CartPole-v1", ensemble_size=5, evaluation_period=0, seed=0).learn(200)
    >>> agent.q_values([0.0, 0.0, 0.0, 0.0]).shape  # (K, actions)
    (5, 2)
    >>> action, _ = agent.predict([0.0, 0.0, 0.0, 0.0], deterministic=True)
    >>> int(action) in (0, 1)
    True
    """

    config_type = configs.EBQLConfig

    def __init__(self, environment: Environment, **options: Unpack[EBQLOptions]) -> None:
        super().__init__(environment, **options)


class Rainbow(Agent):
    """Rainbow (Hessel et al., 2018); each part can be turned off: `Rainbow(…, dueling=False)`.

    With `ensemble_size=5`, one member selects and the others evaluate, as in EBQL.
    """

    config_type = configs.RainbowConfig

    def __init__(self, environment: Environment, **options: Unpack[EBQLOptions]) -> None:
        super().__init__(environment, **options)


class RainbowEBQL(Agent):
    """Rainbow with EBQL's members: the target is the mean distribution of the evaluating members."""

    config_type = configs.RainbowEBQLConfig

    def __init__(self, environment: Environment, **options: Unpack[EBQLOptions]) -> None:
        super().__init__(environment, **options)


class QRDQN(Agent):
    """QR-DQN (Dabney et al., 2018): DQN on quantiles of the return, by quantile regression."""

    config_type = configs.QRDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[AgentOptions]) -> None:
        super().__init__(environment, **options)


class IQN(Agent):
    """IQN (Dabney et al., 2018b): quantiles of the return as a function of their fraction."""

    config_type = configs.IQNConfig

    def __init__(self, environment: Environment, **options: Unpack[AgentOptions]) -> None:
        super().__init__(environment, **options)


class AveragedDQN(Agent):
    """Averaged-DQN (Anschel et al., 2017): the target is the maximum of the mean of past target networks."""

    config_type = configs.AveragedDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[AveragedDQNOptions]) -> None:
        super().__init__(environment, **options)


class EnsembleDQN(Agent):
    """Ensemble-DQN (Anschel et al., 2017): the target is the maximum of the members' mean."""

    config_type = configs.EnsembleDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[EnsembleOptions]) -> None:
        super().__init__(environment, **options)


class MaxminDQN(Agent):
    """Maxmin DQN (Lan et al., 2020): the target is the maximum of the members' minimum."""

    config_type = configs.MaxminDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[EnsembleOptions]) -> None:
        super().__init__(environment, **options)


class WeightedDoubleDQN(Agent):
    """Weighted double DQN (Zhang et al., 2017): a weighted mean of Q-learning and double Q-learning."""

    config_type = configs.WeightedDoubleDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[WeightedDoubleDQNOptions]) -> None:
        super().__init__(environment, **options)


class ClippedDoubleDQN(Agent):
    """Clipped double DQN (Fujimoto et al., 2018, for discrete actions): the lowest estimate evaluates."""

    config_type = configs.ClippedDoubleDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[EnsembleOptions]) -> None:
        super().__init__(environment, **options)


class CrossDQN(Agent):
    """Cross DQN (Wang and Vinel, 2020): one member selects, another random member evaluates."""

    config_type = configs.CrossDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[EnsembleOptions]) -> None:
        super().__init__(environment, **options)


class REDQ(Agent):
    """REDQ (Chen et al., 2021) for discrete actions: the maximum of the minimum of a few random members."""

    config_type = configs.REDQConfig

    def __init__(self, environment: Environment, **options: Unpack[REDQOptions]) -> None:
        super().__init__(environment, **options)


class BootstrappedDQN(Agent):
    """Bootstrapped DQN (Osband et al., 2016): each member has its own target; one acts per episode."""

    config_type = configs.BootstrappedDQNConfig

    def __init__(self, environment: Environment, **options: Unpack[EnsembleOptions]) -> None:
        super().__init__(environment, **options)


class RandomisedPriors(Agent):
    """Randomised prior functions (Osband et al., 2018): a fixed random network is added to each member."""

    config_type = configs.RandomisedPriorsConfig

    def __init__(self, environment: Environment, **options: Unpack[EnsembleOptions]) -> None:
        super().__init__(environment, **options)


class Sunrise(Agent):
    """SUNRISE (Lee et al., 2021): weighted backups and upper confidence bounds."""

    config_type = configs.SunriseConfig

    def __init__(self, environment: Environment, **options: Unpack[SunriseOptions]) -> None:
        super().__init__(environment, **options)


def agent_type(config: type[AgentConfig]) -> type[Agent]:
    """Return the agent class with this config: one of the above, or a new one named after the config."""
    for kind in _subclasses(Agent):
        if kind.__dict__.get("config_type") is config:
            return kind
    new: type[Agent] = type(config.label(), (Agent,), {"config_type": config, "__doc__": config.__doc__})
    return new


def _subclasses(kind: type[Agent]) -> Iterator[type[Agent]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


AGENTS: dict[str, type[Agent]] = {name: agent_type(config) for name, config in CONFIGS.items()}
_OUR_AGENTS, _OUR_RULES = frozenset(AGENTS), frozenset(RULES)


def __getattr__(name: str) -> type[Agent]:
    """Return an agent whose class was made from its config, by the name of that class."""
    for agent in AGENTS.values():
        if agent.__name__ == name:
            return agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(agent: A) -> A:
    """Register your own agent under its config's name, and return it; also a decorator: `@ebql.register`.

    From then on it can be loaded, resumed, swept and named on the command line. Its `rule`, if it has one,
    becomes the bootstrap rule that its config names. Registering a name again replaces the earlier agent;
    built-in names are refused.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> @dataclass(frozen=True)
    ... class PatientConfig(configs.EBQLConfig):
    ...     name: ClassVar[str] = "patient-ebql"
    ...     target_period: int = 5_000
    >>> @register
    ... class PatientEBQL(Agent):
    ...     config_type = PatientConfig
    >>> AGENTS["patient-ebql"]("CartPole-v1", preset="plain").config.target_period
    5000
    """
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise InputTypeError(f"register takes a subclass of Agent, not {agent!r}.")
    config = getattr(agent, "config_type", None)
    name, rule = getattr(config, "name", None), getattr(config, "rule", None)
    if config is None or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"{agent.__name__} needs a config with a name of lower-case letters, digits and dashes, "
            f"not {name!r}: config_type = MyConfig."
        )
    if name in _OUR_AGENTS:
        raise InputError(f"There is an agent {name!r} already: give {config.__name__} a name of its own.")
    if agent.rule is not None:
        if not isinstance(rule, str) or rule in _OUR_RULES:
            raise InputError(
                f"{agent.__name__} has a rule of its own, so {config.__name__} must give it a new name, "
                f"not {rule!r}: rule: ClassVar[str] = {name!r}."
            )
        RULES[rule] = agent.rule
    elif rule not in RULES:
        raise unknown_name(f"rule of {config.__name__}", str(rule), RULES)
    CONFIGS[name], AGENTS[name] = config, agent
    return agent

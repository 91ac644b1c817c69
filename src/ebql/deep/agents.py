"""All agents by name: those of the paper, Rainbow, and the relatives they are compared with.

`ebql agents` lists them, `ebql.deep.config` has their options, and `docs/algorithms.md` their equations.
"""

from collections.abc import Iterator

from ebql.deep.agent import DQN as DQN
from ebql.deep.agent import EBQL as EBQL
from ebql.deep.agent import Agent
from ebql.deep.agent import DoubleDQN as DoubleDQN
from ebql.deep.config import agents as configs
from ebql.deep.config.agents import CONFIGS
from ebql.deep.config.base import AgentConfig


class Rainbow(Agent):
    """Rainbow (Hessel et al., 2018); each part is a switch: `Rainbow(…, dueling=False)`.

    `Rainbow(…, ensemble_size=5)` selects with one member and evaluates with the others, as EBQL does.
    """

    config_type = configs.RainbowConfig


class RainbowEBQL(Agent):
    """Rainbow with EBQL's members; a member's target is the other members' mean distribution."""

    config_type = configs.RainbowEBQLConfig


class AveragedDQN(Agent):
    """Averaged-DQN (Anschel et al., 2017): the target is the mean of the network's last copies."""

    config_type = configs.AveragedDQNConfig


class EnsembleDQN(Agent):
    """Ensemble-DQN (Anschel et al., 2017): the members' mean selects and evaluates."""

    config_type = configs.EnsembleDQNConfig


class MaxminDQN(Agent):
    """Maxmin DQN (Lan et al., 2020): the maximum of the members' minimum."""

    config_type = configs.MaxminDQNConfig


class WeightedDoubleDQN(Agent):
    """Weighted double DQN (Zhang et al., 2017): between Q-learning and double Q-learning."""

    config_type = configs.WeightedDoubleDQNConfig


class ClippedDoubleDQN(Agent):
    """Clipped double DQN (Fujimoto et al., 2018, for discrete actions): the least word counts."""

    config_type = configs.ClippedDoubleDQNConfig


class CrossDQN(Agent):
    """Cross DQN (Wang and Vinel, 2020): a member selects, one random other evaluates."""

    config_type = configs.CrossDQNConfig


class REDQ(Agent):
    """REDQ's target (Chen et al., 2021) for discrete actions: the minimum of a random few."""

    config_type = configs.REDQConfig


class BootstrappedDQN(Agent):
    """Bootstrapped DQN (Osband et al., 2016): members learn apart, and one acts an episode."""

    config_type = configs.BootstrappedDQNConfig


class RandomisedPriors(Agent):
    """Randomised prior functions (Osband et al., 2018): each member explores by a prior of its own."""

    config_type = configs.RandomisedPriorsConfig


class Sunrise(Agent):
    """SUNRISE (Lee et al., 2021): weighted backups and upper confidence bounds."""

    config_type = configs.SunriseConfig


def agent_type(config: type[AgentConfig]) -> type[Agent]:
    """Return the agent with these options: one of the classes above, or a new one named after them."""
    for kind in _subclasses(Agent):
        if kind.__dict__.get("config_type") is config:
            return kind
    made: type[Agent] = type(config.label(), (Agent,), {"config_type": config, "__doc__": config.__doc__})
    return made


def _subclasses(kind: type[Agent]) -> Iterator[type[Agent]]:
    for own in kind.__subclasses__():
        yield own
        yield from _subclasses(own)


AGENTS: dict[str, type[Agent]] = {name: agent_type(config) for name, config in CONFIGS.items()}

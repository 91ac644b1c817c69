"""All agents by name: those of the paper, Rainbow, and the neighbours they are compared with.

`ebql agents` lists them, `ebql.deep.config` has their options, and `docs/algorithms.md` their equations.
"""

from ebql.deep.agent import DQN, EBQL, Agent, DoubleDQN
from ebql.deep.config import agents as family


class Rainbow(Agent):
    """Rainbow (Hessel et al., 2018); each part is a switch: `Rainbow(…, dueling=False)`.

    `Rainbow(…, ensemble_size=5)` selects with one member and evaluates with the others, as EBQL does.
    """

    config_type = family.RainbowConfig


class RainbowEBQL(Agent):
    """Rainbow with EBQL's members; a member's target is the other members' mean distribution."""

    config_type = family.RainbowEBQLConfig


class AveragedDQN(Agent):
    """Averaged-DQN (Anschel et al., 2017): the target is the mean of the network's last copies."""

    config_type = family.AveragedDQNConfig


class EnsembleDQN(Agent):
    """Ensemble-DQN (Anschel et al., 2017): the members' mean selects and evaluates."""

    config_type = family.EnsembleDQNConfig


class MaxminDQN(Agent):
    """Maxmin DQN (Lan et al., 2020): the maximum of the members' minimum."""

    config_type = family.MaxminDQNConfig


class WeightedDoubleDQN(Agent):
    """Weighted double DQN (Zhang et al., 2017): between Q-learning and double Q-learning."""

    config_type = family.WeightedDoubleDQNConfig


class ClippedDoubleDQN(Agent):
    """Clipped double DQN (Fujimoto et al., 2018, for discrete actions): the least word counts."""

    config_type = family.ClippedDoubleDQNConfig


class CrossDQN(Agent):
    """Cross DQN (Wang and Vinel, 2020): a member selects, one random other evaluates."""

    config_type = family.CrossDQNConfig


class REDQ(Agent):
    """REDQ's target (Chen et al., 2021) for discrete actions: the minimum of a random few."""

    config_type = family.REDQConfig


class BootstrappedDQN(Agent):
    """Bootstrapped DQN (Osband et al., 2016): members learn apart, and one acts an episode."""

    config_type = family.BootstrappedDQNConfig


class RandomisedPriors(Agent):
    """Randomised prior functions (Osband et al., 2018): each member explores by a prior of its own."""

    config_type = family.RandomisedPriorsConfig


class Sunrise(Agent):
    """SUNRISE (Lee et al., 2021): weighted backups and upper confidence bounds."""

    config_type = family.SunriseConfig


AGENTS: dict[str, type[Agent]] = {
    kind.config_type.name: kind
    for kind in (
        DQN,
        DoubleDQN,
        EBQL,
        Rainbow,
        RainbowEBQL,
        AveragedDQN,
        EnsembleDQN,
        MaxminDQN,
        WeightedDoubleDQN,
        ClippedDoubleDQN,
        CrossDQN,
        REDQ,
        BootstrappedDQN,
        RandomisedPriors,
        Sunrise,
    )
}

"""Ensemble Bootstrapped Q-Learning: estimate the value of the best action without fooling yourself.

One idea at three levels: some members select an action, other members evaluate it. `ebql.estimators` has
the statistics, `ebql.tabular` the tabular agents, and `ebql.deep` the deep agents, which can be imported
from here.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebql.deep.agent import DQN, EBQL, Agent, DoubleDQN
    from ebql.deep.agents import (
        IQN,
        QRDQN,
        REDQ,
        AveragedDQN,
        BootstrappedDQN,
        ClippedDoubleDQN,
        CrossDQN,
        EnsembleDQN,
        MaxminDQN,
        Rainbow,
        RainbowEBQL,
        RandomisedPriors,
        Sunrise,
        WeightedDoubleDQN,
        register,
    )
    from ebql.kept.table import results
    from ebql.neighbours.measuring import measure_bias

    # Their classes are made from their configs.
    WeightedDQN: type[Agent]
    TEDQN: type[Agent]
    KEDQN: type[Agent]
    OrderDQN: type[Agent]
    AdaptiveOrderDQN: type[Agent]
    AdaEQ: type[Agent]
    RobustDQN: type[Agent]
    CandidateDQN: type[Agent]
    SmoothedDQN: type[Agent]
    MeanQ: type[Agent]
    DeepDoubleQ: type[Agent]

__version__ = version("ebql")
__all__ = [
    "DQN",
    "EBQL",
    "IQN",
    "KEDQN",
    "QRDQN",
    "REDQ",
    "TEDQN",
    "AdaEQ",
    "AdaptiveOrderDQN",
    "AveragedDQN",
    "BootstrappedDQN",
    "CandidateDQN",
    "ClippedDoubleDQN",
    "CrossDQN",
    "DeepDoubleQ",
    "DoubleDQN",
    "EnsembleDQN",
    "MaxminDQN",
    "MeanQ",
    "OrderDQN",
    "Rainbow",
    "RainbowEBQL",
    "RandomisedPriors",
    "RobustDQN",
    "SmoothedDQN",
    "Sunrise",
    "WeightedDQN",
    "WeightedDoubleDQN",
    "__version__",
    "measure_bias",
    "register",
    "results",
]

_MODULES = {"measure_bias": "ebql.neighbours.measuring", "results": "ebql.kept.table"}


def __getattr__(name: str) -> Any:
    """Import what needs torch on first use, so that the other packages do not need it."""
    if name not in __all__:
        raise AttributeError(f"module 'ebql' has no attribute {name!r}")
    module = _MODULES.get(name, "ebql.deep.agents")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors", "tensorboardX"):
            raise
        raise ImportError(f'{name} needs {error.name}: pip install "ebql[deep]"', name=error.name) from error

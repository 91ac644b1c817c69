"""Ensemble Bootstrapped Q-Learning: the value of the best action, estimated without fooling yourself.

Three floors, one rule. `ebql.estimators` holds the statistics (who picks the best arm, who measures
it), `ebql.tabular` the tables, and `ebql.deep` the networks, whose agents are importable from here.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebql.deep.agent import DQN, EBQL, DoubleDQN
    from ebql.deep.agents import (
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
    )

__version__ = version("ebql")
__all__ = [
    "DQN",
    "EBQL",
    "REDQ",
    "AveragedDQN",
    "BootstrappedDQN",
    "ClippedDoubleDQN",
    "CrossDQN",
    "DoubleDQN",
    "EnsembleDQN",
    "MaxminDQN",
    "Rainbow",
    "RainbowEBQL",
    "RandomisedPriors",
    "Sunrise",
    "WeightedDoubleDQN",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import the agents when they are asked for: the other floors need no torch."""
    if name not in __all__:
        raise AttributeError(f"module 'ebql' has no attribute {name!r}")
    try:
        return getattr(import_module("ebql.deep.agents"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors", "tensorboardX"):
            raise
        raise ImportError(f'{name} needs {error.name}: pip install "ebql[deep]"', name=error.name) from error

"""Deep agents: DQN, double DQN and EBQL, which differ by one function in `targets`, and their relatives."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebql.deep.agent import Agent
    from ebql.deep.agents import (
        DQN,
        EBQL,
        REDQ,
        AveragedDQN,
        BootstrappedDQN,
        ClippedDoubleDQN,
        CrossDQN,
        DoubleDQN,
        EnsembleDQN,
        MaxminDQN,
        Rainbow,
        RainbowEBQL,
        RandomisedPriors,
        Sunrise,
        WeightedDoubleDQN,
        register,
    )

__all__ = [
    "DQN",
    "EBQL",
    "REDQ",
    "Agent",
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
    "register",
]


def __getattr__(name: str) -> Any:
    """Import an agent on first use, so that configs can be read without torch."""
    if name not in __all__:
        raise AttributeError(f"module 'ebql.deep' has no attribute {name!r}")
    return getattr(import_module("ebql.deep.agents"), name)

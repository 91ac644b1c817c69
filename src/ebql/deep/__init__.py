"""Deep agents: DQN, double DQN and EBQL, which differ by one function in `targets`, and their relatives."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebql.deep.agent import Agent
    from ebql.deep.agents import (
        DQN,
        EBQL,
        IQN,
        QRDQN,
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
    from ebql.deep.training.callbacks import Callback, KeepBest, Measure, StopAtScore
    from ebql.deep.training.tracking import Tracking

__all__ = [
    "DQN",
    "EBQL",
    "IQN",
    "QRDQN",
    "REDQ",
    "Agent",
    "AveragedDQN",
    "BootstrappedDQN",
    "Callback",
    "ClippedDoubleDQN",
    "CrossDQN",
    "DoubleDQN",
    "EnsembleDQN",
    "KeepBest",
    "MaxminDQN",
    "Measure",
    "Rainbow",
    "RainbowEBQL",
    "RandomisedPriors",
    "StopAtScore",
    "Sunrise",
    "Tracking",
    "WeightedDoubleDQN",
    "register",
]


def __getattr__(name: str) -> Any:
    """Import an agent or a callback on first use, so that configs can be read without torch."""
    if name not in __all__:
        raise AttributeError(f"module 'ebql.deep' has no attribute {name!r}")
    modules = ("ebql.deep.agents", "ebql.deep.training.callbacks", "ebql.deep.training.tracking")
    return next(getattr(module, name) for module in map(import_module, modules) if hasattr(module, name))

"""EBQL and the measured bias for people who train with Stable-Baselines3."""

try:
    import stable_baselines3  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "stable_baselines3":
        raise
    message = 'ebql.sb3 needs stable_baselines3: pip install "ebql[sb3]"'
    raise ImportError(message, name=error.name) from error

from ebql.sb3.algorithm import EBQL
from ebql.sb3.callback import BiasCallback
from ebql.sb3.policies import EnsemblePolicy

__all__ = ["EBQL", "BiasCallback", "EnsemblePolicy"]

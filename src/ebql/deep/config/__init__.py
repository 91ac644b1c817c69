"""The options of every agent, their checks, and the presets."""

from ebql.deep.config import newer as newer  # registers its agents
from ebql.deep.config.agents import CONFIGS, DoubleDQNConfig, DQNConfig, EBQLConfig, config_type
from ebql.deep.config.base import AgentConfig, EnsembleConfig
from ebql.deep.config.presets import PRESETS, preset_config, preset_of

__all__ = [
    "CONFIGS",
    "PRESETS",
    "AgentConfig",
    "DQNConfig",
    "DoubleDQNConfig",
    "EBQLConfig",
    "EnsembleConfig",
    "config_type",
    "preset_config",
    "preset_of",
]

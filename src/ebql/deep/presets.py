"""Options that work, by family of environments."""

from typing import Any, TypeVar

from ebql.deep.config import AgentConfig
from ebql.errors import unknown_name

C = TypeVar("C", bound=AgentConfig)

PRESETS: dict[str, dict[str, Any]] = {
    # Small control problems, on which a run takes a minute. Three-step returns carry the end of an episode
    # back before ε has fallen; with one step, the values of CartPole rise and fall for the whole 50k steps.
    "classic": {
        "hidden": (64, 64),
        "learning_rate": 5e-4,
        "n_step": 3,
        "batch_size": 64,
        "update_period": 1,
        "target_period": 200,
        "replay_size": 50_000,
        "learning_starts": 1_000,
        "epsilon_end": 0.05,
        "epsilon_steps": 10_000,
        "evaluation_period": 5_000,
    },
    # The network, replay, target period, γ and first ε of Young and Tian's MinAtar DQN. Their optimiser
    # (centred RMSprop at every step) gives way to Obando-Ceron and Castro's Adam at every fourth, as
    # good on these games and four times cheaper.
    "minatar": {
        "torso": "minatar",
        "hidden": (128,),
        "learning_rate": 2.5e-4,
        "optimiser_eps": 3.125e-4,
        "batch_size": 32,
        "update_period": 4,
        "target_period": 1_000,
        "replay_size": 100_000,
        "learning_starts": 5_000,
        "epsilon_end": 0.01,
        "epsilon_steps": 100_000,
        "evaluation_period": 25_000,
        "log_period": 5_000,
        "checkpoint_period": 50_000,
    },
    # The dataclass's own defaults.
    "plain": {},
}

# Rainbow's noise explores instead of ε; its priorities are corrected over a run of the usual length, and its
# returns lie between v_min and v_max, which depend on the rewards.
PRESETS["classic-rainbow"] = PRESETS["classic"] | {
    "epsilon_start": 0.0,
    "epsilon_end": 0.0,
    "priority_beta_steps": 50_000,
    "v_min": -100.0,
    "v_max": 100.0,
}
# With γ = 0.99 good players of MinAtar earn less than 20 from any state on. Around 0, so that no value is
# above it before anything is learnt.
PRESETS["minatar-rainbow"] = PRESETS["minatar"] | {
    "n_step": 3,
    "epsilon_start": 0.0,
    "epsilon_end": 0.0,
    "priority_beta_steps": 300_000,
    "v_min": -20.0,
    "v_max": 20.0,
}

# The first prefix that an environment's id starts with names its preset.
FAMILIES = {
    "MinAtar/": "minatar",
    "CartPole": "classic",
    "Acrobot": "classic",
    "LunarLander": "classic",
    "MountainCar": "classic",
}


def preset_of(environment: str | None, kind: type[AgentConfig] | None = None) -> str:
    """Return the name of the preset for an environment's id, made for this kind of agent if there is one.

    It is `plain` for an environment of no known family.
    """
    for prefix, preset in FAMILIES.items():
        if environment is not None and environment.startswith(prefix):
            own = f"{preset}-{kind.variant}" if kind is not None else preset
            return own if own in PRESETS else preset
    return "plain"


def preset_config(kind: type[C], preset: str) -> C:
    """Return the config of this kind with the preset's values."""
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    return kind().override(**PRESETS[preset])

"""Presets: options that work, for each family of environments."""

from typing import Any, TypeVar

from ebql.deep.config.base import AgentConfig
from ebql.errors import InputError, InputTypeError, unknown_name

C = TypeVar("C", bound=AgentConfig)

# What the paper's authors, DQN Zoo and Mnih et al. (2015) have in common.
_ATARI: dict[str, Any] = {
    "torso": "nature",
    "hidden": (512,),
    "discount": 0.99,
    "n_step": 1,
    "reward_clip": 1.0,
    "learning_rate": 2.5e-4,
    "rmsprop_alpha": 0.95,
    "loss": "huber",
    "batch_size": 32,
    "update_period": 4,
    "replay_size": 1_000_000,
    "compress": True,
    "learning_starts": 50_000,
    "epsilon_start": 1.0,
    "epsilon_steps": 1_000_000,
    "evaluation_period": 1_000_000,
    "evaluation_episodes": 20,
    "log_period": 10_000,
    "checkpoint_period": 250_000,
    "atari_protocol": "paper",
    "threads": 2,
}

# RL Zoo's values for Acrobot and LunarLander, except that updates start after 1,000 steps. Ensembles share
# both layers, which halves EBQL's time.
_RL_ZOO: dict[str, Any] = {
    "hidden": (256, 256),
    "own_layers": 0,
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "update_period": 4,
    "updates_per_period": 4,
    "target_period": 250,
    "replay_size": 50_000,
    "learning_starts": 1_000,
    "epsilon_end": 0.1,
    "epsilon_steps": 12_000,
}

PRESETS: dict[str, dict[str, Any]] = {
    # Small control problems, on which a run takes a minute or two. Three-step returns carry the end of an
    # episode back before ε has fallen; with one step, the values of CartPole rise and fall for the whole 50k
    # steps. With 64 units and batches of 64, DQN's values ran away on 3 of 10 seeds.
    "classic": {
        "hidden": (256, 256),
        "learning_rate": 4e-4,
        "n_step": 3,
        "batch_size": 128,
        "update_period": 2,
        "target_period": 400,
        "replay_size": 50_000,
        "learning_starts": 1_000,
        "epsilon_end": 0.05,
        "epsilon_steps": 10_000,
        "evaluation_period": 5_000,
    },
    # The next three were chosen with DQN on seeds from 100 on; docs/deviations.md says what was tried.
    # MountainCar: blocks of updates leave the policy unchanged for 16 steps, and so let it explore.
    "mountain-car": {
        "hidden": (256, 64),
        "learning_rate": 1e-3,
        "n_step": 3,
        "batch_size": 128,
        "update_period": 16,
        "updates_per_period": 8,
        "target_period": 500,
        "replay_size": 120_000,
        "learning_starts": 1_000,
        "epsilon_end": 0.04,
        "epsilon_steps": 15_000,
        "evaluation_period": 20_000,
    },
    # Acrobot: with RL Zoo's values alone, double DQN missed RL Zoo's score on one seed. With layer
    # normalisation it scored -67.8 on seed 100; docs/deviations.md has what else was tried.
    "acrobot": {**_RL_ZOO, "layer_norm": True, "evaluation_period": 10_000},
    # LunarLander: RL Zoo's values, which it shares with Acrobot. Smaller layers and half of the updates leave
    # agents that hover until the time limit.
    "lunar-lander": {**_RL_ZOO, "evaluation_period": 20_000},
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
    # The values in the authors' code, where the paper leaves them open.
    "atari-paper": {
        **_ATARI,
        "optimiser": "rmsprop",
        "optimiser_eps": 0.01,
        "max_grad_norm": 10.0,
        "target_period": 10_000,
        "epsilon_end": 0.1,
        "evaluation_epsilon": 0.001,
    },
    # DQN as in DQN Zoo, whose scores are the paper's DQN column. It counts in frames: 4 are one step.
    "atari-dqn-zoo-dqn": {
        **_ATARI,
        "optimiser": "centred-rmsprop",
        "optimiser_eps": 0.01 / 32**2,
        "max_grad_norm": None,
        "target_period": 10_000,
        "epsilon_end": 0.1,
        "evaluation_epsilon": 0.05,
    },
    # Double DQN as in DQN Zoo, the paper's DDQN column: tuned values of its own.
    "atari-dqn-zoo-double": {
        **_ATARI,
        "optimiser": "centred-rmsprop",
        "optimiser_eps": 0.01 / 32**2,
        "max_grad_norm": None,
        "target_period": 30_000,
        "epsilon_end": 0.01,
        "evaluation_epsilon": 0.01,
    },
    # To see an agent learn within an hour or two on two cores: a network with a sixth of the arithmetic,
    # Adam, three-step returns, a short schedule, and eight games at once so that acting costs little.
    "atari-fast": {
        **_ATARI,
        "torso": "small",
        "hidden": (256,),
        "n_step": 3,
        "optimiser": "adam",
        "learning_rate": 2.5e-4,
        "optimiser_eps": 1.5e-4,
        "max_grad_norm": 10.0,
        "update_period": 2,
        "target_period": 2_000,
        "replay_size": 200_000,
        "learning_starts": 5_000,
        "epsilon_end": 0.02,
        "epsilon_steps": 50_000,
        "evaluation_period": 50_000,
        "evaluation_episodes": 10,
        "evaluation_epsilon": 0.001,
        "log_period": 5_000,
        "checkpoint_period": 50_000,
        "envs": 8,
        "threads": 1,
    },
    # 100,000 steps, the length of the sample-efficiency literature. Network, optimiser and first update are
    # those of the data-efficient Rainbow (van Hasselt et al., 2019), n is Dopamine's for it, and ε that of
    # DrQ(ε) (Agarwal et al., 2021). An update at every second step instead of every step halves the time.
    "atari-100k": {
        **_ATARI,
        "torso": "small",
        "hidden": (256,),
        "n_step": 10,
        "optimiser": "adam",
        "learning_rate": 1e-4,
        "optimiser_eps": 1.5e-4,
        "max_grad_norm": 10.0,
        "update_period": 2,
        "target_period": 2_000,
        "replay_size": 100_000,
        "learning_starts": 1_600,
        "epsilon_end": 0.01,
        "epsilon_steps": 5_000,
        "evaluation_period": 50_000,
        "evaluation_episodes": 20,
        "evaluation_epsilon": 0.001,
        "log_period": 5_000,
        "checkpoint_period": 50_000,
        "threads": 1,
    },
    # Young and Tian's DQN as examples/dqn.py has it, in the revision of recent forks, whose RMSprop has no
    # momentum; for MinAtar/GAME-v0, with all six actions.
    "minatar-young-tian": {
        "torso": "minatar",
        "hidden": (128,),
        "discount": 0.99,
        "loss": "huber",
        "optimiser": "momentum-rmsprop",
        "learning_rate": 2.5e-4,
        "optimiser_eps": 0.01,
        "rmsprop_alpha": 0.95,
        "rmsprop_momentum": 0.0,
        "max_grad_norm": None,
        "batch_size": 32,
        "update_period": 1,
        "target_period": 1_000,
        "replay_size": 100_000,
        "learning_starts": 5_000,
        "epsilon_end": 0.1,
        "epsilon_schedule": "piecewise",
        "epsilon_points": ((0, 1.0), (5_000, 1.0), (105_000, 0.1)),
        "evaluation_period": 50_000,
        "log_period": 5_000,
        "checkpoint_period": 50_000,
    },
    # The dataclass's own defaults.
    "plain": {},
}

# Hessel et al.'s table 1, which counts in frames: 4 are one step. The gradient's norm is clipped as in the
# dueling network that it builds on.
PRESETS["atari-rainbow"] = _ATARI | {
    "n_step": 3,
    "optimiser": "adam",
    "learning_rate": 6.25e-5,
    "optimiser_eps": 1.5e-4,
    "max_grad_norm": 10.0,
    "target_period": 8_000,
    "learning_starts": 20_000,
    "epsilon_start": 0.0,
    "epsilon_end": 0.0,
    "priority_alpha": 0.5,
    "priority_beta": 0.4,
    "priority_beta_steps": 50_000_000,
    "noise_scale": 0.5,
    "v_min": -10.0,
    "v_max": 10.0,
    "evaluation_epsilon": 0.001,
}
# CartPole is what `classic` was tuned on.
# With layer normalisation agents reach 500 sooner, and fewer episodes of the best agent fail.
PRESETS["cartpole"] = PRESETS["classic"] | {"layer_norm": True}
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
# above it before anything is learnt. The slopes of a cross-entropy over 51 atoms, weighted by priorities, are
# far smaller than those of one value, and than MinAtar's ε, beside which Adam's steps would shrink with them.
PRESETS["minatar-rainbow"] = PRESETS["minatar"] | {
    "n_step": 3,
    "optimiser_eps": 1e-8,
    "epsilon_start": 0.0,
    "epsilon_end": 0.0,
    "priority_beta_steps": 300_000,
    "v_min": -20.0,
    "v_max": 20.0,
}

# The first prefix that an environment's id starts with names its preset.
FAMILIES = {
    "ALE/": "atari-paper",
    "MinAtar/": "minatar",
    "CartPole": "cartpole",
    "Acrobot": "acrobot",
    "LunarLander": "lunar-lander",
    "MountainCar": "mountain-car",
}

# The presets that share their variants (`classic-rainbow`) with another one.
_RELATIVES = dict.fromkeys(("cartpole", "acrobot", "mountain-car", "lunar-lander"), "classic")


def preset_of(environment: str | None, kind: type[AgentConfig] | None = None) -> str:
    """Return the name of the preset for an environment's id, preferring one made for this kind of agent.

    It is `plain` for an environment of an unknown family.
    """
    if environment is None:
        return "plain"
    for prefix, preset in FAMILIES.items():
        if environment.startswith(prefix):
            family = _RELATIVES.get(preset, preset.partition("-")[0])
            own = f"{family}-{kind.variant}" if kind is not None else preset
            return own if own in PRESETS else preset
    return "plain"


def preset_config(kind: type[C], preset: str) -> C:
    """Return the config of this kind with the preset's values."""
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    if (own := f"{_RELATIVES.get(preset, preset)}-{kind.variant}") in PRESETS:
        raise InputError(f"Preset {preset} would turn off parts of {kind.name}: use {own}.")
    return kind().override(**PRESETS[preset])


def chosen_config(
    kind: type[C], config: AgentConfig | None, preset: str | None, environment: str | None
) -> tuple[C, str | None]:
    """Return the config that a user's options override, and the name of its preset if it comes from one.

    It is the user's `config`, or that of the `preset`, which by default the environment's id chooses.
    """
    if config is None:
        preset = preset or preset_of(environment, kind)
        return preset_config(kind, preset), preset
    if type(config) is not kind:
        raise InputTypeError(f"config must be {kind.__name__}, not {type(config).__name__}.")
    if preset is not None:
        raise InputError("Pass a config or a preset, not both: a config has a value for every option.")
    return config, None

import json
import subprocess
import sys

import numpy as np
import pytest

from ebql.deep.config.agents import CONFIGS, DQNConfig, EBQLConfig, RainbowConfig, REDQConfig, config_type
from ebql.deep.config.base import Ensemble
from ebql.deep.config.presets import PRESETS, preset_config, preset_of
from ebql.deep.targets import RULES
from ebql.errors import InputError, UserError

OF_ONE_ENVIRONMENT = ("cartpole", "acrobot", "mountain-car", "lunar-lander")


@pytest.mark.parametrize("kind", CONFIGS.values())
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_survives_json(kind, preset):
    own = f"{'classic' if preset in OF_ONE_ENVIRONMENT else preset}-{kind.variant}"
    if own in PRESETS:
        with pytest.raises(InputError, match=f"use {own}"):
            preset_config(kind, preset)
        return
    config = preset_config(kind, preset).override(seed=3)
    assert kind.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ensemble_size": 1}, "ensemble-size ≥ 2"),
        ({"discount": 1.5}, "discount must lie between 0 and 1"),
        ({"batch_size": 0}, "batch-size must be positive"),
        ({"updates_per_period": 0}, "updates-per-period must be positive"),
        ({"updates_per_period": -8}, "updates-per-period must be positive"),
        ({"optimiser": "adm"}, "Did you mean 'adam'"),
        ({"data": "shard"}, "Did you mean 'shared'"),
        ({"mask_probability": 0.0}, "mask-probability"),
        ({"v_min": 5.0, "v_max": 1.0}, r"v-min \(5.0\) must be below v-max \(1.0\)"),
        ({"atoms": 51, "v_min": 1.0, "v_max": 1.000001}, "coincide or overflow as 32-bit numbers"),
        ({"atoms": 51, "v_min": -3e38, "v_max": 3e38}, "coincide or overflow as 32-bit numbers"),
        ({"noise_scale": 1e300}, "noise-scale must lie within"),
        ({"torso_gradient": "mean", "share_torso": False}, "torso-gradient mean needs a shared torso"),
        ({"learning_starts": 10**6}, "must not exceed replay-size"),
        ({"threads": 2**40}, "threads must be at most 1024, not 1099511627776"),
        ({"reward_clip": -1.0}, "reward-clip must be positive"),
        ({"hidden": (0,)}, "hidden"),
        ({"atoms": 1}, "atoms must be at least 2, not 1"),
        ({"atoms": 51, "v_min": 3.0, "v_max": 3.0}, r"v-min \(3.0\) must be below v-max \(3.0\)"),
        (
            {"split": "adaptive", "ensemble_size": 2},
            "split adaptive needs an ensemble-size of at least 3, not 2",
        ),
        ({"split": 5}, "split 5 does not fit ensemble-size 5"),
        ({"split": 0}, "split 0 does not fit ensemble-size 5"),
        ({"split": "adaptiv"}, "Did you mean 'adaptive'"),
        ({"prior_scale": 1.0, "atoms": 51}, "prior-scale does not work with atoms"),
        ({"prior_scale": -1.0}, "prior-scale must not be negative"),
        ({"ucb_width": -1.0}, "ucb-width must not be negative"),
        ({"exploration": "ucd"}, "Did you mean 'ucb'"),
        ({"atoms": 51, "loss": "mse"}, "loss mse does not apply to atoms"),
        ({"priority_beta": 1.5}, "priority-beta must lie between 0 and 1"),
        ({"priority_alpha": -0.5}, "priority-alpha must not be negative"),
        ({"priority_beta_steps": 0}, "priority-beta-steps must be positive"),
        ({"noise_scale": 0.0}, "noise-scale must be positive"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        EBQLConfig().override(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("agent", "options", "message"),
    [
        ("rainbow", {"data": "masked"}, "data masked needs an ensemble-size of at least 2"),
        ("rainbow", {"exploration": "ucb"}, "exploration ucb needs an ensemble-size of at least 2"),
        ("rainbow", {"exploration": "thompson"}, "exploration thompson needs an ensemble-size of at least 2"),
        ("rainbow", {"split": "adaptive"}, "split adaptive needs an ensemble-size of at least 3, not 1"),
        ("rainbow", {"ensemble_size": 0}, "Rainbow needs ensemble-size ≥ 1, not 0"),
        ("rainbow-ebql", {"ensemble_size": 1}, "RainbowEBQL needs ensemble-size ≥ 2, not 1"),
        ("bootstrapped-dqn", {"ensemble_size": 1}, "BootstrappedDQN needs ensemble-size ≥ 2, not 1"),
        ("redq", {"subset_size": 11}, r"subset-size \(11\) must not exceed ensemble-size \(10\)"),
        ("redq", {"subset_size": 0}, "subset-size must be positive"),
        ("averaged-dqn", {"snapshots": 0}, "snapshots must be positive"),
        ("weighted-double-dqn", {"c": 0.0}, "c must be positive"),
        ("randomised-priors", {"prior_scale": 0.0}, "prior-scale must be positive"),
        ("sunrise", {"temperature": -1.0}, "temperature must not be negative"),
        ("weighted-dqn", {"ensemble_size": 1}, "WeightedDQN needs ensemble-size ≥ 2, not 1"),
        ("te-dqn", {"alpha": 0.6}, "alpha must be above 0 and at most 0.5, not 0.6"),
        ("ke-dqn", {"scale": 0.0}, "scale must be positive"),
        ("adaeq", {"subset_size": 1}, "subset-size must be at least 2, not 1"),
        ("adaeq", {"subset_size": 11}, r"subset-size \(11\) must not exceed ensemble-size \(10\)"),
        ("adaeq", {"tolerance": 0.0}, "tolerance must be positive"),
        ("order-dqn", {"index": 5}, "index must lie between 1 and ensemble-size, 4, not 5"),
        ("robust-dqn", {"rho": -1.0}, "rho must not be negative"),
        ("robust-dqn", {"atoms": 51}, "rho does not work with atoms"),
        ("candidate-dqn", {"candidates": 0}, "candidates must be positive"),
        ("smoothed-dqn", {"smoothing": 1.5}, "smoothing must lie between 0 and 1, not 1.5"),
        ("deep-double-q", {"ensemble_size": 3}, "deep-double-q has 2 networks, not 3: use ebql for more"),
    ],
)
def test_options_that_contradict_each_other_are_named(agent, options, message):
    with pytest.raises(InputError, match=message) as caught:
        config_type(agent)().override(**options)
    assert "\n" not in str(caught.value)


def test_the_rule_follows_from_the_options():
    assert EBQLConfig().bootstrap_rule() == "ensemble-bootstrap"
    assert EBQLConfig(split=2).bootstrap_rule() == EBQLConfig(split="adaptive").bootstrap_rule() == "split"
    assert RainbowConfig().bootstrap_rule() == "double-q"
    assert RainbowConfig(ensemble_size=5).bootstrap_rule() == "ensemble-bootstrap"
    assert RainbowConfig(ensemble_size=5, split="adaptive").bootstrap_rule() == "split"


@pytest.mark.parametrize("kind", CONFIGS.values())
def test_every_agent_has_a_line_and_a_rule(kind):
    assert "\n" not in kind.__doc__
    assert kind().bootstrap_rule() in RULES


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("n_step", 1.5, "n-step must be a whole number"),
        ("batch_size", 8.0, "batch-size must be a whole number"),
        ("updates_per_period", 0.5, "updates-per-period must be a whole number"),
        ("seed", True, "seed must be a whole number"),
        ("seed", 1.5, "seed must be a whole number"),
        ("seed", 2**70, "seed must be below 2⁶³"),
        ("seed", -1, "seed must not be negative, but is -1"),
        ("hidden", 64, "hidden must be a list of whole numbers, such as"),
        ("hidden", (64, 1.5), "hidden must be a whole number"),
        ("learning_rate", "x", "learning-rate must be a number"),
        ("learning_rate", float("inf"), "learning-rate must be a finite number"),
        ("learning_rate", float("nan"), "learning-rate must be a finite number"),
        ("discount", None, "discount must be a number"),
        ("reward_clip", "1", "reward-clip must be a number"),
        ("rmsprop_alpha", 1.0, "rmsprop-alpha must be below 1"),
        ("share_torso", "no", "share-torso must be True or False"),
        ("device", 0, "device must be a string"),
        ("optimiser", None, "Unknown optimiser"),
    ],
)
def test_options_of_the_wrong_kind_are_refused_in_one_line(option, value, told):
    for refuse in (lambda o: EBQLConfig().override(**o), lambda o: EBQLConfig(**o).validate()):
        with pytest.raises(UserError, match=told) as caught:
            refuse({option: value})
        assert "\n" not in str(caught.value)


def test_numbers_of_numpy_and_lists_become_what_json_can_hold():
    config = DQNConfig().override(seed=np.int64(3), discount=np.float32(0.5), hidden=[8, np.int32(4)])
    assert json.loads(json.dumps(config.to_json()))["hidden"] == [8, 4]
    assert (config.seed, config.discount, config.hidden) == (3, 0.5, (8, 4))


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(InputError, match="learning_rate"):
        DQNConfig().override(learningrate=1)
    with pytest.raises(InputError, match="Did you mean 'double-dqn'"):
        config_type("doubledqn")
    with pytest.raises(InputError, match="Did you mean 'minatar'"):
        preset_config(DQNConfig, "minatari")


def test_environments_find_their_preset():
    assert preset_of("MinAtar/Asterix-v1") == "minatar"
    assert preset_of("CartPole-v1") == "cartpole"
    assert preset_of("Acrobot-v1") == "acrobot"
    assert preset_of("MountainCar-v0") == "mountain-car"
    assert preset_of("LunarLander-v3") == "lunar-lander"
    assert preset_of("ALE/Pong-v5") == "atari-paper"
    assert preset_of("ebql/Other-v0") == preset_of(None) == "plain"
    assert preset_of("MinAtar/Asterix-v1", RainbowConfig) == "minatar-rainbow"
    assert preset_of("MinAtar/Asterix-v1", REDQConfig) == "minatar"
    assert preset_of("ebql/Other-v0", RainbowConfig) == "plain"
    assert preset_of("ALE/Pong-v5", RainbowConfig) == "atari-rainbow"


@pytest.mark.parametrize("environment", ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3"])
def test_rainbow_has_one_preset_for_classic_control(environment):
    assert preset_of(environment, RainbowConfig) == "classic-rainbow"
    assert preset_of(environment, EBQLConfig) == preset_of(environment)
    with pytest.raises(InputError, match="use classic-rainbow"):
        preset_config(RainbowConfig, preset_of(environment))


def test_the_preset_classic_keeps_its_values():
    classic = preset_config(DQNConfig, "classic")
    assert (classic.hidden, classic.learning_rate, classic.n_step) == ((256, 256), 4e-4, 3)
    assert (classic.batch_size, classic.update_period, classic.updates_per_period) == (128, 2, 1)
    assert (classic.target_period, classic.replay_size, classic.learning_starts) == (400, 50_000, 1_000)
    assert (classic.epsilon_end, classic.epsilon_steps, classic.discount) == (0.05, 10_000, 0.99)
    rainbow = preset_config(RainbowConfig, "classic-rainbow")
    assert (rainbow.hidden, rainbow.update_period, rainbow.v_max) == ((256, 256), 2, 100)


def test_rainbows_atari_preset_holds_its_papers_table():
    rainbow = preset_config(RainbowConfig, "atari-rainbow")
    assert (rainbow.learning_starts, rainbow.target_period) == (80_000 / 4, 32_000 / 4)
    assert (rainbow.optimiser, rainbow.learning_rate, rainbow.optimiser_eps) == ("adam", 0.0000625, 1.5e-4)
    assert (rainbow.epsilon_start, rainbow.epsilon_end) == (0, 0)
    assert (rainbow.noisy, rainbow.noise_scale) == (True, 0.5)
    assert (rainbow.priority_alpha, rainbow.priority_beta, rainbow.n_step) == (0.5, 0.4, 3)
    assert (rainbow.atoms, rainbow.v_min, rainbow.v_max) == (51, -10, 10)
    assert rainbow.dueling
    assert rainbow.prioritized


def test_the_atari_presets_hold_the_authors_and_dqn_zoos_values():
    paper = preset_config(EBQLConfig, "atari-paper")
    assert paper.ensemble() == Ensemble(5, "all", "shared", 1.0, "sum", share_torso=True)
    assert (paper.torso, paper.hidden, paper.own_layers) == ("nature", (512,), 1)
    assert (paper.loss, paper.optimiser, paper.learning_rate) == ("huber", "rmsprop", 2.5e-4)
    assert (paper.rmsprop_alpha, paper.optimiser_eps, paper.max_grad_norm) == (0.95, 0.01, 10)
    assert (paper.batch_size, paper.update_period, paper.target_period) == (32, 4, 10_000)
    assert (paper.replay_size, paper.learning_starts, paper.discount) == (1_000_000, 50_000, 0.99)
    assert (paper.n_step, paper.reward_clip, paper.envs, paper.atari_protocol) == (1, 1, 1, "paper")
    assert (paper.epsilon_start, paper.epsilon_end, paper.epsilon_steps) == (1, 0.1, 1_000_000)
    assert (paper.evaluation_epsilon, paper.evaluation_episodes) == (0.001, 20)
    assert paper.evaluation_period == 1_000_000
    zoo = {name: preset_config(DQNConfig, f"atari-dqn-zoo-{name}") for name in ("dqn", "double")}
    for config in zoo.values():
        assert (config.optimiser, config.optimiser_eps) == ("centred-rmsprop", 0.01 / 1024)
        assert config.max_grad_norm is None
    values = {n: (c.target_period, c.epsilon_end, c.evaluation_epsilon) for n, c in zoo.items()}
    assert values == {"dqn": (10_000, 0.1, 0.05), "double": (30_000, 0.01, 0.01)}


def test_configs_and_presets_need_no_torch():
    code = "import sys, ebql.deep.config.presets; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"atoms": 51, "quantiles": 200}, "atoms and quantiles contradict each other: leave one out."),
        (
            {"quantiles": 200, "implicit_quantiles": 64},
            "quantiles and implicit-quantiles contradict each other",
        ),
        (
            {"quantiles": 200, "loss": "mse"},
            "loss mse does not apply to quantiles, whose loss is the quantile",
        ),
        ({"implicit_quantiles": 64, "loss": "mse"}, "loss mse does not apply to implicit-quantiles"),
        ({"atoms": 51, "loss": "mse"}, "loss mse does not apply to atoms, whose loss is the cross-entropy"),
        ({"quantiles": 0}, "quantiles must be positive, not 0."),
        ({"implicit_quantiles": 0}, "implicit-quantiles must be positive, not 0."),
        ({"policy_fractions": 0}, "policy-fractions must be positive, not 0."),
    ],
)
def test_distributions_that_contradict_each_other_get_one_line(options, line):
    with pytest.raises(InputError, match=line):
        DQNConfig(**options).validate()

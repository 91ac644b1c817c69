import json
import subprocess
import sys

import numpy as np
import pytest

from ebql.deep.config import CONFIGS, DQNConfig, EBQLConfig, config_type
from ebql.deep.presets import PRESETS, preset_config, preset_of
from ebql.errors import InputError, UserError


@pytest.mark.parametrize("kind", CONFIGS.values())
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_survives_json(kind, preset):
    config = preset_config(kind, preset).override(seed=3)
    assert kind.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ensemble_size": 1}, "ensemble-size ≥ 2"),
        ({"discount": 1.5}, "discount must lie between 0 and 1"),
        ({"batch_size": 0}, "batch-size must be positive"),
        ({"optimiser": "adm"}, "Did you mean 'adam'"),
        ({"data": "shard"}, "Did you mean 'shared'"),
        ({"mask_probability": 0.0}, "mask-probability"),
        ({"torso_gradient": "mean", "share_torso": False}, "clash"),
        ({"learning_starts": 10**6}, "must not exceed replay-size"),
        ({"reward_clip": -1.0}, "reward-clip must be positive"),
        ({"hidden": (0,)}, "hidden"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as caught:
        EBQLConfig().override(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("n_step", 1.5, "n-step must be a whole number"),
        ("batch_size", 8.0, "batch-size must be a whole number"),
        ("seed", True, "seed must be a whole number"),
        ("seed", 1.5, "seed must be a whole number"),
        ("seed", 2**70, "seed must be below 2⁶³"),
        ("seed", -1, "seed must not be negative"),
        ("hidden", 64, "hidden must be whole numbers, such as"),
        ("hidden", (64, 1.5), "hidden must be a whole number"),
        ("learning_rate", "x", "learning-rate must be a number"),
        ("learning_rate", float("inf"), "learning-rate must be a finite number"),
        ("learning_rate", float("nan"), "learning-rate must be a finite number"),
        ("discount", None, "discount must be a number"),
        ("reward_clip", "1", "reward-clip must be a number"),
        ("rmsprop_alpha", 1.0, "rmsprop-alpha must be below 1"),
        ("share_torso", "no", "share-torso must be True or False"),
        ("device", 0, "device must be a word"),
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
    assert preset_of("CartPole-v1") == "classic"
    assert preset_of("ebql/Other-v0") == preset_of(None) == "plain"


def test_configs_and_presets_need_no_torch():
    code = "import sys, ebql.deep.presets; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

import json
import subprocess
import sys

import pytest

from ebql.deep.config import CONFIGS, DQNConfig, EBQLConfig, config_type
from ebql.deep.presets import PRESETS, preset_config, preset_of
from ebql.errors import InputError


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

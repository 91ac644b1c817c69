import pytest

from ebql.deep.config.agents import CONFIGS
from ebql.deep.config.presets import PRESETS, preset_config
from ebql.errors import InputError
from ebql.studies.tuning.space import SPACES, Choice, Range, default_space, parse_space, read_space

EBQL = CONFIGS["ebql"]()


def test_ranges_and_lists_are_read_from_a_file(tmp_path):
    file = tmp_path / "space.toml"
    file.write_text(
        "learning_rate = { low = 1e-4, high = 1e-2, log = true }\n"
        "ensemble_size = { low = 2, high = 10 }\n"
        "hidden = [[64, 64], [256]]\n"
    )
    assert read_space(file, EBQL) == {
        "learning_rate": Range(1e-4, 1e-2, log=True, whole=False),
        "ensemble_size": Range(2, 10, log=False, whole=True),
        "hidden": Choice(([64, 64], [256])),
    }


@pytest.mark.parametrize("preset", [name for name in PRESETS if not name.endswith("rainbow")])
@pytest.mark.parametrize("agent", ["dqn", "ebql"])
def test_every_preset_has_a_space_that_fits_it(preset, agent):
    space = default_space(preset, preset_config(CONFIGS[agent], preset))
    assert ("ensemble_size" in space) == (agent == "ebql")
    assert "learning_rate" in space
    assert set(SPACES) <= set(PRESETS)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "search space is empty"),
        ({"learning_rat": [1e-3]}, "Did you mean 'learning_rate'"),
        ({"seed": [1, 2]}, "Unknown option of ebql in the search space 'seed'"),
        ({"hidden": []}, "lists no values of hidden"),
        ({"n_step": [1, 0]}, "n_step contains 0: n-step must be positive"),
        ({"learning_rate": 1e-3}, "must be a list of values or"),
        ({"learning_rate": {"low": 1e-3}}, "must be a list of values or"),
        ({"learning_rate": {"low": 1e-3, "high": 1e-4}}, "must rise, not from 0.001 to 0.0001"),
        ({"epsilon_end": {"low": 0, "high": 0.1, "log": True}}, "must rise from above 0"),
        ({"learning_rate": {"low": "a", "high": 1}}, "must be of numbers, not 'a'"),
        ({"learning_rate": {"low": 1e-4, "high": 1e-3, "log": 1}}, "log must be true or false"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(content, told):
    with pytest.raises(InputError, match=told):
        parse_space(content, EBQL)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="Cannot read the search space"):
        read_space(tmp_path / "none.toml", EBQL)
    (tmp_path / "bad.toml").write_text("learning_rate = ")
    with pytest.raises(InputError, match="is not valid TOML"):
        read_space(tmp_path / "bad.toml", EBQL)

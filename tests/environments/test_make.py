import sys

import gymnasium
import numpy as np
import pytest

from ebql.environments import known_environments, make_environment, make_lanes
from ebql.errors import InputError


def test_every_known_environment_can_be_made_or_says_what_is_missing():
    families = known_environments()
    assert list(families) == ["classic", "minatar", "atari", "toy text", "ebql"]
    assert all(families.values())
    for name in (name for names in families.values() for name in names):
        try:
            lanes = make_lanes(name)
        except ValueError as error:
            assert "pip install" in str(error)  # noqa: PT017
            continue
        observations = lanes.reset(0)
        assert lanes.observation_space.contains(observations[0])
        lanes.step(np.array([0]))
        lanes.close()


def test_a_missing_extra_names_the_pip_command(monkeypatch):
    for name in [name for name in gymnasium.registry if name.startswith("MinAtar/")]:
        monkeypatch.delitem(gymnasium.registry, name)
    monkeypatch.setitem(sys.modules, "minatar.gym", None)
    with pytest.raises(ValueError, match=r'pip install "ebql\[minatar\]"'):
        make_environment("MinAtar/Breakout-v1")


def test_a_missing_box2d_names_the_pip_command_in_one_line(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(InputError) as caught:
        make_environment("LunarLander-v3")
    assert str(caught.value) == 'LunarLander-v3 needs Box2D: pip install "ebql[box2d]"'


def test_a_seeded_landing_repeats_whatever_came_before(play):
    pytest.importorskip("Box2D")
    environment, rng = make_environment("LunarLander-v3"), np.random.default_rng(0)
    for seed in range(5):
        actions = rng.integers(4, size=80)
        fresh = play(make_environment("LunarLander-v3"), seed, actions)
        play(environment, 1000 + seed, rng.integers(4, size=40))
        assert play(environment, seed, actions) == fresh


def test_options_reach_the_environment():
    assert make_environment("CartPole-v1", render_mode="rgb_array").render_mode == "rgb_array"


def test_an_id_alone_imports_no_module():
    with pytest.raises(
        ValueError, match=r"run the code of the module 'no_such_module'.*--import no_such_module"
    ):
        make_environment("no_such_module:Thing-v0")


def test_an_unknown_game_of_minatar_names_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'MinAtar/Breakout-v1'"):
        make_environment("MinAtar/Brakout-v1")

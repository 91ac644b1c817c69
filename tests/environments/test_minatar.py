import numpy as np
import pytest

from ebql.environments import make_environment, make_lanes
from ebql.environments.minatar import GAMES

CHANNELS = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}


@pytest.mark.parametrize("game", GAMES)
def test_a_seeded_minatar_episode_repeats_whatever_came_before(game, play):
    environment = make_environment(f"MinAtar/{game}-v1")
    assert environment.observation_space.shape == (10, 10, CHANNELS[game])
    rng = np.random.default_rng(0)
    n_actions = environment.action_space.n
    for seed in range(30):
        actions = rng.integers(n_actions, size=60)
        fresh = play(make_environment(f"MinAtar/{game}-v1"), seed, actions)
        play(environment, 1000 + seed, rng.integers(n_actions, size=40))
        assert play(environment, seed, actions) == fresh


def test_minatar_alone_does_not_repeat(play):
    """The reason for the adapter: if this fails, MinAtar has been fixed and the adapter can go."""
    environment = make_environment("MinAtar/Breakout-v1").env
    traces = set()
    for last_action in range(3):
        for seed in range(40):
            environment.reset(seed=1)
            environment.step(last_action)
            traces.add((seed, str(play(environment, seed, [0] * 5))))
    assert len(traces) > 40


def test_an_environment_object_of_minatar_is_made_repeatable_too():
    plain = make_environment("MinAtar/Breakout-v1").env
    lanes = make_lanes(plain)
    lanes.reset(0)
    plain.unwrapped.game.last_action = 3
    lanes.reset(0)
    assert plain.unwrapped.game.last_action == 0

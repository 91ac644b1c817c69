import numpy as np
import pytest
from PIL import Image

from ebql.environments.atari.games import PROTOCOLS
from ebql.environments.atari.lanes import AtariLanes
from ebql.environments.lanes.seeded import episode_seed
from ebql.environments.pictures import action_names, make_pictured, picture
from ebql.errors import InputError

MACHADO = PROTOCOLS["machado"]


def test_the_picture_shows_the_game_that_the_agent_sees():
    game, again = (make_pictured("breakout", protocol=MACHADO) for _ in range(2))
    lanes = AtariLanes("breakout", 1, MACHADO)
    lanes.reset(0)
    observation, _ = game.reset(seed=episode_seed(0, 0, 0))
    again.reset(seed=episode_seed(0, 0, 0))
    for action in np.random.default_rng(0).integers(0, 4, 120):
        observation, _, terminated, *_ = game.step(action)
        again.step(action)
        np.testing.assert_array_equal(observation, lanes.step(np.array([action])).next_observations[0])
        np.testing.assert_array_equal(picture(game), picture(again))
        assert picture(game).shape == (210, 160, 3)
        grey = Image.fromarray(picture(game)).convert("L").resize((84, 84), Image.Resampling.BOX)
        assert np.abs(np.asarray(grey, float) - observation[..., -1]).mean() < 2
        if terminated:
            break
    assert action_names(game) == ("noop", "fire", "right", "left")
    with pytest.raises(InputError, match="between 0 and 3"):
        game.step(4)
    for opened in (game, again, lanes):
        opened.close()

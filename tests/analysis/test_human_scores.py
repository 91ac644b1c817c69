import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebql.analysis.human_scores import PLAYERS, game_of, normalized
from ebql.environments.atari.games import PAPER_GAMES


def test_the_players_are_known_for_every_game_of_the_paper():
    assert tuple(PLAYERS) == PAPER_GAMES


def test_human_is_one_and_random_is_zero():
    for game, players in PLAYERS.items():
        assert normalized(game, players.human) == 1
        assert normalized(game, players.random) == 0
    assert normalized("Pong", 21.0) == pytest.approx(41.7 / 30)


@given(st.sampled_from(sorted(PLAYERS)), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_normalising_keeps_the_order_of_scores(game, one, other):
    low, high = sorted((one, other))
    assert normalized(game, low) <= normalized(game, high)


@pytest.mark.parametrize("game", sorted(PLAYERS))
def test_a_game_is_known_by_its_ids(game):
    assert game_of(f"ALE/{game}-v5") == game_of(game.lower()) == game


def test_names_of_games():
    assert game_of("crazy_climber") == game_of("crazy-climber") == "CrazyClimber"
    for other in ("ALE/Freeway-v5", "MinAtar/Breakout-v1", "CartPole-v1", "an environment of its own"):
        assert game_of(other) is None

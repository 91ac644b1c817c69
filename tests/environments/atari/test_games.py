import sys

import pytest

from ebql.environments import atari_protocol, canonical_name, known_environments, make_lanes
from ebql.environments.atari.games import PAPER_GAMES, PROTOCOLS, WRAPPED_SCORES, rom_of, wrapping_score
from ebql.errors import InputError


@pytest.mark.parametrize(
    "name", ["space-invaders", "space_invaders", "SpaceInvaders", "Space Invaders", "ALE/SpaceInvaders-v5"]
)
def test_a_game_has_one_id_and_short_names(name):
    assert canonical_name(name) == "ALE/SpaceInvaders-v5"
    assert rom_of(canonical_name(name)) == "space_invaders"


@pytest.mark.parametrize("name", ["CartPole-v1", "MinAtar/Breakout-v1", "FrozenLake-v1", "a.module:Pong-v0"])
def test_other_environments_keep_their_names(name):
    assert canonical_name(name) == name


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("ALE/Pomg-v5", "Unknown Atari game 'ALE/Pomg-v5'. Did you mean ALE/Pong-v5?"),
        ("brekout", "Unknown environment 'brekout'. Did you mean ALE/Breakout-v5?"),
        ("PongNoFrameskip-v4", "write ALE/Pong-v5 or pong; the option atari-protocol"),
        ("ALE/RoadRunner-v4", "write ALE/"),
        ("Qbert-v0", "write ALE/Qbert-v5 or qbert"),
    ],
)
def test_a_wrong_name_gets_one_line_that_says_what_to_write(name, line):
    with pytest.raises(InputError) as refused:
        make_lanes(name)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "private-eye"])
def test_without_the_emulator_the_extra_is_named(name, monkeypatch):
    for module in ("ale_py", "ale_py.roms", "ale_py.vector_env"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r'Atari games need ale-py: pip install "ebql\[atari\]"'):
        make_lanes(name)


def test_the_papers_games_are_listed_and_all_there():
    assert known_environments()["atari"] == tuple(f"ALE/{game}-v5" for game in PAPER_GAMES)
    assert len(PAPER_GAMES) == 11
    assert all(canonical_name(name) == name for name in known_environments()["atari"])
    assert set(WRAPPED_SCORES) <= set(PAPER_GAMES)
    assert wrapping_score("ALE/VideoPinball-v5") == 1_000_000
    assert wrapping_score("ALE/Pong-v5") is None


def test_a_protocol_says_its_numbers_in_one_line():
    assert str(PROTOCOLS["paper"]) == (
        "protocol paper: sticky actions 0, up to 30 no-ops, minimal actions, a lost life ends a learning "
        "episode, 4 frames per step, games truncated at 108,000 frames"
    )
    assert "sticky actions 0.25, up to 0 no-ops, all 18 actions" in str(
        atari_protocol("machado", full_action_space=True)
    )
    with pytest.raises(InputError, match="Unknown Atari protocol 'mnih'"):
        atari_protocol("mnih")

"""Human-normalised scores on Atari games: the random player scores 0, the human player 1."""

import re
from typing import NamedTuple


class PlayerScores(NamedTuple):
    """The scores of the two reference players in a game."""

    human: float
    random: float


# Mnih et al. (2015), for the games of the paper's table 1.
PLAYERS: dict[str, PlayerScores] = {
    "Asterix": PlayerScores(8503.3, 210.0),
    "Breakout": PlayerScores(31.8, 1.7),
    "CrazyClimber": PlayerScores(35410.5, 10780.5),
    "DoubleDunk": PlayerScores(-15.5, -18.6),
    "Gopher": PlayerScores(2321.0, 257.6),
    "Pong": PlayerScores(9.3, -20.7),
    "PrivateEye": PlayerScores(69571.3, 24.9),
    "Qbert": PlayerScores(13455.0, 163.9),
    "RoadRunner": PlayerScores(7845.0, 11.5),
    "Tennis": PlayerScores(-8.9, -23.8),
    "VideoPinball": PlayerScores(17297.6, 16256.9),
}


def normalized(game: str, score: float) -> float:
    """Return the human-normalised score."""
    players = PLAYERS[game]
    return (score - players.random) / (players.human - players.random)


def game_of(environment: str) -> str | None:
    """Return the game, a key of `PLAYERS`, for a name such as `ALE/CrazyClimber-v5` or `crazy_climber`."""
    bare = re.sub(r"^ALE/|-v\d+$|[_-]", "", environment).lower()
    return {game.lower(): game for game in PLAYERS}.get(bare)

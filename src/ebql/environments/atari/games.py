"""Atari games by name, and the protocols they are played by. Nothing here imports the emulator."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from ebql.errors import InputError, unknown_name

FRAME_SKIP = 4
"""Frames of the emulator that one agent step lasts."""

PAPER_GAMES = (
    "Asterix",
    "Breakout",
    "CrazyClimber",
    "DoubleDunk",
    "Gopher",
    "Pong",
    "PrivateEye",
    "Qbert",
    "RoadRunner",
    "Tennis",
    "VideoPinball",
)

WRAPPED_SCORES = {"Asterix": 1_000_000, "VideoPinball": 1_000_000}
"""Games whose score display has six digits, and where it starts again from zero.

The emulator takes rewards from that display: the step at which it wraps pays about minus a million, and a
game's return is then too low by that much. Only agents far above a human get there.
"""

_ID = re.compile(r"ALE/(?P<game>\w+)-v5")
_SHORT_NAME = re.compile(r"[\w -]+(?<!-v\d)")
_OTHER_ID = re.compile(r"ALE/.*|(?P<game>\w+?)(-ram)?(NoFrameskip|Deterministic)?-v[045]")


@dataclass(frozen=True)
class AtariProtocol:
    """How a game is played; what is common to all protocols has its usual value as a default."""

    name: str
    repeat_action_probability: float
    """The probability that the emulator repeats the last action at a frame (sticky actions)."""
    most_no_ops: int
    """A game starts after 0 to this many frames without an action, drawn uniformly."""
    life_loss_terminates: bool
    """Whether losing a life ends the episode that is learnt from; the game, and its score, go on."""
    full_action_space: bool = False
    """All 18 actions of the console, instead of those that do something in the game."""
    most_frames: int = 108_000
    """Frames after which a game is cut (not terminated): half an hour of play."""
    frame_skip: int = FRAME_SKIP
    """Frames a step; the last two are joined by their maximum."""
    stack: int = 4
    """Frames that an observation shows."""
    side: int = 84
    """Rows and columns that a grey frame is resized to."""

    @property
    def most_steps(self) -> int:
        """Agent steps after which a game is cut."""
        return self.most_frames // self.frame_skip

    def __str__(self) -> str:
        """Return the protocol and its numbers in one line."""
        lives = "a lost life ends" if self.life_loss_terminates else "only the game's end ends"
        return (
            f"protocol {self.name}: sticky actions {self.repeat_action_probability:g}, "
            f"up to {self.most_no_ops} no-ops, {'all 18' if self.full_action_space else 'minimal'} actions, "
            f"{lives} a learning episode, {self.frame_skip} frames a step, "
            f"games cut at {self.most_frames:,} frames"
        )


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        # Mnih et al. (2015), as the paper and DQN Zoo play.
        AtariProtocol("paper", repeat_action_probability=0.0, most_no_ops=30, life_loss_terminates=True),
        # Machado et al. (2018).
        AtariProtocol("machado", repeat_action_probability=0.25, most_no_ops=0, life_loss_terminates=False),
    )
}


def atari_protocol(name: str, *, full_action_space: bool = False) -> AtariProtocol:
    """Return the protocol with this name, with all 18 actions if asked for."""
    if name not in PROTOCOLS:
        raise unknown_name("Atari protocol", name, PROTOCOLS)
    return replace(PROTOCOLS[name], full_action_space=full_action_space)


def atari_id(game: str) -> str:
    """Return the id, such as ALE/SpaceInvaders-v5, of the game that the emulator calls space_invaders."""
    return f"ALE/{game.title().replace('_', '')}-v5"


def wrapping_score(name: str) -> int | None:
    """Return where the score of the game with this id starts again from zero; None if it doesn't."""
    matched = _ID.fullmatch(name)
    return WRAPPED_SCORES.get(matched["game"]) if matched else None


def is_atari(name: str) -> bool:
    """Whether this is an id as `canonical_name` makes them of Atari games."""
    return name.startswith("ALE/")


def canonical_name(name: str) -> str:
    """Return the id of an Atari game for its id or short name; any other environment's name as it is.

    `pong`, `space-invaders`, `SpaceInvaders` and `ALE/SpaceInvaders-v5` all name games. An Atari id of
    another kind or of an unknown game is refused with what to write instead.
    """
    matched = _ID.fullmatch(name)
    if matched:
        return atari_id(rom_of(name))
    if _SHORT_NAME.fullmatch(name) and (game := _games().get(_key(name))):
        return atari_id(game)
    other = _OTHER_ID.fullmatch(name)
    if other and (is_atari(name) or _key(other["game"]) in _games()):
        game = _games().get(_key(other["game"] or ""), "pong")
        short = game.replace("_", "-")
        raise InputError(
            f"{name!r} is not an id of Atari games here: write {atari_id(game)}, or {short}; frames, sticky "
            "actions and lives are settled by the option atari-protocol."
        )
    return name


def rom_of(name: str) -> str:
    """Return what the emulator calls the game with this id; refuse an unknown one with the nearest names."""
    emulator("roms")
    matched = _ID.fullmatch(name)
    games = _games()
    key = _key(matched["game"] if matched else name)
    if key in games:
        return games[key]
    close = nearest_games(key)
    hint = f"Did you mean {' or '.join(close)}?" if close else "See: ebql environments."
    raise InputError(f"Unknown Atari game {name!r}. {hint}")


def nearest_games(name: str) -> list[str]:
    """Return the ids of the games, three at most, whose names are nearest to this one."""
    games = _games()
    return [atari_id(games[near]) for near in get_close_matches(_key(name), games, n=3, cutoff=0.7)]


def emulator(module: str) -> Any:
    """Return a module of ale-py; if it is missing, say how to install it."""
    try:
        return import_module(f"ale_py.{module}")
    except ImportError as error:
        raise InputError('Atari games need ale-py: pip install "ebql[atari]"') from error


def _games() -> dict[str, str]:
    """Return the emulator's names by their letters and digits; without it, those of the paper's games."""
    try:
        names: Iterable[str] = emulator("roms").get_all_rom_ids()
    except InputError:
        names = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", game).lower() for game in PAPER_GAMES)
    return {_key(name): name for name in names}


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())

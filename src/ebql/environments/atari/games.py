"""Names of Atari games and evaluation protocols. The emulator is imported only when it is needed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from ebql.errors import InputError, unknown_name

FRAME_SKIP = 4
"""Emulator frames per agent step."""

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
"""Games whose six-digit score display overflows, and the score at which it wraps around to zero.

The emulator computes rewards from the display. The step at which it wraps around pays about minus one
million, so the return of that game is too low by as much. Only agents far above human level get there.
"""

_ID = re.compile(r"ALE/(?P<game>\w+)-v5")
_SHORT_NAME = re.compile(r"[\w -]+(?<!-v\d)")
_OTHER_ID = re.compile(r"ALE/.*|(?P<game>\w+?)(-ram)?(NoFrameskip|Deterministic)?-v[045]")


@dataclass(frozen=True)
class AtariProtocol:
    """How a game is played. Settings that all protocols share have defaults.

    >>> sticky = AtariProtocol("sticky", 0.25, most_no_ops=30, life_loss_terminates=True)
    >>> sticky.most_steps  # agent steps in half an hour of play
    27000
    """

    name: str
    """What messages call the protocol."""
    repeat_action_probability: float
    """Probability that the emulator repeats the previous action at a frame (sticky actions)."""
    most_no_ops: int
    """Each game starts with 0 to this many no-op frames, drawn uniformly."""
    life_loss_terminates: bool
    """Whether a lost life ends the learning episode; the game and its score continue."""
    full_action_space: bool = False
    """Whether to use all 18 console actions instead of the game's minimal action set."""
    most_frames: int = 108_000
    """Frames after which a game is truncated (not terminated): half an hour of play."""
    frame_skip: int = FRAME_SKIP
    """Frames per agent step; an observation is the pixelwise maximum of the last two."""
    stack: int = 4
    """Number of frames stacked in an observation."""
    side: int = 84
    """Height and width, in pixels, of the resized greyscale frame."""

    @property
    def most_steps(self) -> int:
        """Agent steps after which a game is truncated."""
        return self.most_frames // self.frame_skip

    def __str__(self) -> str:
        """Return the protocol and its settings in one line."""
        end = "a lost life" if self.life_loss_terminates else "only the end of the game"
        return (
            f"protocol {self.name}: sticky actions {self.repeat_action_probability:g}, "
            f"up to {self.most_no_ops} no-ops, {'all 18' if self.full_action_space else 'minimal'} actions, "
            f"{end} ends a learning episode, {self.frame_skip} frames per step, "
            f"games truncated at {self.most_frames:,} frames"
        )


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        # Mnih et al. (2015), as in the paper and in DQN Zoo.
        AtariProtocol("paper", repeat_action_probability=0.0, most_no_ops=30, life_loss_terminates=True),
        # Machado et al. (2018).
        AtariProtocol("machado", repeat_action_probability=0.25, most_no_ops=0, life_loss_terminates=False),
    )
}


def atari_protocol(name: str, *, full_action_space: bool = False) -> AtariProtocol:
    """Return the protocol with this name, on request with all 18 actions.

    >>> print(atari_protocol("machado"))  # doctest: +ELLIPSIS
    protocol machado: sticky actions 0.25, ...
    """
    if name not in PROTOCOLS:
        raise unknown_name("Atari protocol", name, PROTOCOLS)
    return replace(PROTOCOLS[name], full_action_space=full_action_space)


def atari_id(game: str) -> str:
    """Return the id of a ROM name: ALE/SpaceInvaders-v5 for space_invaders."""
    return f"ALE/{game.title().replace('_', '')}-v5"


def wrapping_score(name: str) -> int | None:
    """Return the score at which the game with this id wraps around to zero; None if it does not."""
    matched = _ID.fullmatch(name)
    return WRAPPED_SCORES.get(matched["game"]) if matched else None


def is_atari(name: str) -> bool:
    """Return whether `name` is an Atari id as `canonical_name` returns it.

    >>> is_atari("ALE/Pong-v5"), is_atari("CartPole-v1")
    (True, False)
    """
    return name.startswith("ALE/")


def canonical_name(name: str) -> str:
    """Return the id of an Atari game given by id or short name; return any other name unchanged.

    `pong`, `space-invaders`, `SpaceInvaders` and `ALE/SpaceInvaders-v5` are all accepted. The error for an
    older kind of Atari id, or for an unknown game, says what to write instead.

    >>> canonical_name("CartPole-v1")
    'CartPole-v1'
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
            f"{name!r} is not a supported Atari id: write {atari_id(game)} or {short}; the option "
            "atari-protocol sets frame skip, sticky actions and lives."
        )
    return name


def rom_of(name: str) -> str:
    """Return the ROM name of the game with this id; the error for an unknown game suggests similar ones."""
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
    """Return the ids of at most three games with names similar to this one."""
    games = _games()
    return [atari_id(games[match]) for match in get_close_matches(_key(name), games, n=3, cutoff=0.7)]


def emulator(module: str) -> Any:
    """Import a module of ale-py; the error for a missing package says how to install it."""
    try:
        return import_module(f"ale_py.{module}")
    except ImportError as error:
        raise InputError('Atari games need ale-py: pip install "ebql[atari]"') from error


def _games() -> dict[str, str]:
    """Return ROM names by their normalised form; without the emulator, those of the paper's games only."""
    try:
        names: Iterable[str] = emulator("roms").get_all_rom_ids()
    except InputError:
        names = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", game).lower() for game in PAPER_GAMES)
    return {_key(name): name for name in names}


def _key(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())

"""Table 1: the scores of the paper's agents on eleven Atari games.

Steps are agent steps; each is four frames of the game.
"""

from collections.abc import Iterable, Mapping
from statistics import fmean, median
from typing import NamedTuple

from ebql.analysis.human_scores import PLAYERS, normalized

FRAMES_PER_STEP = 4

DQN, DOUBLE_DQN, EBQL = "DQN", "DoubleDQN", "EBQL K=5"
AGENTS = (DQN, DOUBLE_DQN, EBQL)
"""The columns of the table, as runs of these agents are labelled."""

COMMAND_NAMES = {DQN: "dqn", DOUBLE_DQN: "double-dqn", EBQL: "ebql"}
"""Their names on the command line."""

PRESET = "atari-paper"
"""The preset with the options of the paper's own column."""


class PaperRow(NamedTuple):
    """The scores of one game, in the order of the table's columns."""

    human: float
    random: float
    dqn: float
    double_dqn: float
    ebql: float

    def of(self, agent: str) -> float:
        """Return the score of an agent in `AGENTS`."""
        return dict(zip(AGENTS, self[2:], strict=True))[agent]


# DQN, double DQN and EBQL. The first two are quoted from DQN Zoo; only the last was run for the paper.
_AGENT_SCORES = {
    "Asterix": (4603.2, 5718.1, 22152.5),
    "Breakout": (283.5, 333.4, 406.3),
    "CrazyClimber": (93677.1, 111765.4, 127967.5),
    "DoubleDunk": (-15.8, -18.6, -10.1),
    "Gopher": (3439.4, 6940.5, 21940.0),
    "Pong": (17.4, 19.9, 21.0),
    "PrivateEye": (78.1, 100.0, 100.0),
    "Qbert": (5280.2, 6277.1, 14384.4),
    "RoadRunner": (27671.4, 40264.9, 55927.5),
    "Tennis": (-1.2, -14.5, -1.1),
    "VideoPinball": (104146.4, 230534.3, 361205.1),
}
PAPER = {game: PaperRow(*PLAYERS[game], *scores) for game, scores in _AGENT_SCORES.items()}
GAMES = tuple(PAPER)


class Protocol(NamedTuple):
    """The runs of a table: every agent on every game with every seed."""

    games: tuple[str, ...] = GAMES
    agents: tuple[str, ...] = AGENTS
    seeds: int = 5
    steps: int = 50_000_000
    """Agent steps of one run."""

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.games) * len(self.agents) * self.seeds

    @property
    def agent_steps(self) -> int:
        """The agent steps of all runs together."""
        return self.runs * self.steps


FULL = Protocol()
"""The paper's protocol: 165 runs of 50 million agent steps."""


class Summary(NamedTuple):
    """Human-normalised scores over games: 0 is the random player, 1 the human."""

    games: int
    mean: float
    median: float


def summary(scores: Mapping[str, float]) -> Summary:
    """Return the mean and the median of the normalised scores of these games; at least one is needed."""
    values = [normalized(game, score) for game, score in scores.items()]
    return Summary(len(values), fmean(values), median(values))


def paper_scores(agent: str, games: Iterable[str] = GAMES) -> dict[str, float]:
    """Return the paper's scores of an agent, by game."""
    return {game: PAPER[game].of(agent) for game in games}


def lead(game: str) -> float:
    """Return EBQL's lead over the better baseline in the paper, in human-normalised score."""
    row = PAPER[game]
    return normalized(game, row.ebql) - normalized(game, max(row.dqn, row.double_dqn))


def environment_id(game: str) -> str:
    """Return the environment id of a game of the table."""
    return f"ALE/{game}-v5"

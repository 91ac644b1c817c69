"""Scores of other methods after 100,000 agent steps (400,000 frames), from the sample-efficiency literature.

Its 26 games include eight of the paper's eleven: DoubleDunk, Tennis and VideoPinball are missing.
"""

from collections.abc import Mapping
from typing import NamedTuple

STEPS = 100_000
"""Agent steps of every method here."""


class Published(NamedTuple):
    """The mean scores of a method."""

    method: str
    source: str
    scores: Mapping[str, float]
    """Points by game."""


PUBLISHED = (
    Published(
        "SimPLe",
        "Kaiser et al., ICLR 2020; means of 5 runs, from the data kept with IRIS (Micheli et al., ICLR 2023)",
        {
            "Asterix": 1128.3,
            "Breakout": 16.4,
            "CrazyClimber": 62583.6,
            "Gopher": 596.8,
            "Pong": 12.8,
            "PrivateEye": 35.0,
            "Qbert": 1288.8,
            "RoadRunner": 5640.6,
        },
    ),
    Published(
        "CURL",
        "Srinivas, Laskin and Abbeel, ICML 2020, as later papers quote it",
        {
            "Asterix": 734.5,
            "Breakout": 4.9,
            "CrazyClimber": 12146.5,
            "Gopher": 669.3,
            "Pong": -16.5,
            "PrivateEye": 218.4,
            "Qbert": 1042.4,
            "RoadRunner": 5661.0,
        },
    ),
    Published(
        "DrQ(ε)",
        "Agarwal et al., NeurIPS 2021; means of 100 runs, from the data kept with IRIS",
        {
            "Asterix": 763.6,
            "Breakout": 19.8,
            "CrazyClimber": 21539.0,
            "Gopher": 621.6,
            "Pong": -9.1,
            "PrivateEye": 3.5,
            "Qbert": 1810.7,
            "RoadRunner": 11211.4,
        },
    ),
    Published(
        "SPR",
        "Schwarzer et al., ICLR 2021, as later papers quote it",
        {
            "Asterix": 977.8,
            "Breakout": 17.1,
            "CrazyClimber": 42923.6,
            "Gopher": 715.2,
            "Pong": -5.9,
            "PrivateEye": 124.0,
            "Qbert": 669.1,
            "RoadRunner": 14220.5,
        },
    ),
)
GAMES = tuple(PUBLISHED[0].scores)
"""The games that all methods have."""

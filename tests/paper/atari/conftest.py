import pytest

from ebql.paper.atari.runs import atari_groups

PONG, BREAKOUT = "ALE/Pong-v5", "ALE/Breakout-v5"


@pytest.fixture
def some_groups(write_run):
    """Return runs of DQN and EBQL with 5 members on two games, and some runs that not every agent has."""
    return atari_groups(
        [
            write_run("d0", [-20.7, 9.3, 9.3], environment=PONG),
            write_run("d1", [-20.7, 9.3], environment=PONG, seed=1),
            write_run("d2", [1.7, 31.8, 61.9], environment=BREAKOUT),
            write_run("e0", [9.3, 9.3], environment=PONG, agent="ebql", ensemble_size=5),
            write_run("e1", [31.8], environment=BREAKOUT, agent="ebql", ensemble_size=5, period=20),
            write_run("e2", [1], environment="ALE/Qbert-v5", agent="ebql", ensemble_size=5),
            write_run("x", [9.3], environment=PONG, agent="ebql", ensemble_size=7),
        ]
    )

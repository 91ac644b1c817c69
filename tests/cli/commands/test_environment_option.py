"""`--environment module:Name`, for runs that were made in Python with an environment of one's own."""

import sys

import pytest

from ebql.cli.main import main
from ebql.deep.agents import DQN

MODULE = """
import gymnasium, numpy as np
class Own(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def __init__(self, render_mode=None):
        self.render_mode = render_mode
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 3
        return np.zeros(2, np.float32), {}
    def step(self, action):
        self.left -= 1
        return np.zeros(2, np.float32), 2.0, self.left == 0, False, {}
    def render(self):
        return np.zeros((16, 16, 3), np.uint8)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A saved agent that was trained in a class of the module `own_world` in the current folder."""
    (tmp_path / "own_world.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    from own_world import Own

    DQN(Own, preset="plain", hidden=(4,), learning_starts=10, evaluation_period=0).learn(20).save("agent")
    del sys.modules["own_world"]
    yield "agent.safetensors"
    sys.modules.pop("own_world", None)


def test_evaluate_and_watch_play_in_the_environment_that_was_typed(own, capsys, tmp_path):
    assert main(["evaluate", own, "--episodes", "2", "--environment", "own_world:Own"]) in (None, 0)
    assert "evaluation/return" in (out := capsys.readouterr().out)
    assert " 6" in out
    assert main(["watch", own, "--environment", "own_world:Own", "--out", "film.gif"]) in (None, 0)
    assert (tmp_path / "film.gif").stat().st_size > 100

import numpy as np
import pytest
import torch

from ebql.deep.agent import DQN
from ebql.deep.building import torch_settings, torch_threads
from ebql.deep.config.agents import DQNConfig


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    "play",
    [
        lambda agent: agent.predict(np.zeros(4, np.float32)),
        lambda agent: agent.q_values(np.zeros(4, np.float32)),
        lambda agent: agent.evaluate(1),
        lambda agent: agent.measure_bias(episodes=1),
    ],
    ids=["predict", "q_values", "evaluate", "measure_bias"],
)
@pytest.mark.parametrize(("threads", "used"), [(1, 1), (3, 3), (0, 2)])
@pytest.mark.usefixtures("two_threads")
def test_playing_uses_the_threads_of_the_config_and_gives_them_back(play, threads, used, small):
    agent = DQN("CartPole-v1", threads=threads, **small)
    seen, values = set(), agent._learner.values

    def watched(observations):
        seen.add(torch.get_num_threads())
        return values(observations)

    agent._learner.values = watched
    play(agent)
    assert seen == {used}
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_inside_a_training_leave_its_settings_alone():
    tiny = torch.tensor(1e-40)
    with torch_settings(DQNConfig(threads=1)):
        with torch_threads(DQNConfig(threads=1)):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
        assert (tiny * 1.0).item() == 0  # denormal numbers are still flushed
    assert torch.get_num_threads() == 2
    assert (tiny * 1.0).item() > 0

import pytest


@pytest.fixture
def play():
    """Return the bytes of every observation and every reward of an episode from a seed."""

    def trace_of(environment, seed, actions):
        observation, _ = environment.reset(seed=seed)
        trace = [observation.tobytes()]
        for action in actions:
            observation, reward, terminated, *_ = environment.step(action)
            trace += [observation.tobytes(), reward]
            if terminated:
                break
        return trace

    return trace_of

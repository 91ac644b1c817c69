import pytest
from gymnasium.vector import SyncVectorEnv

from ebql.environments import make_lanes
from ebql.environments.atari.lanes import AtariLanes
from ebql.environments.lanes.make import SeededLanes, VectorLanes


def test_each_kind_of_environment_gets_its_lanes(corridor):
    for environment, n_lanes in (("CartPole-v1", 3), (corridor, 2), (corridor(), 1)):
        lanes = make_lanes(environment, n_lanes)
        assert isinstance(lanes, SeededLanes)
        assert lanes.n_lanes == n_lanes
    for n_lanes in (1, 2):
        lanes = make_lanes(SyncVectorEnv([corridor] * 2), n_lanes)
        assert isinstance(lanes, VectorLanes)
        assert lanes.n_lanes == 2


def test_an_atari_game_gets_its_protocol():
    lanes = make_lanes("pong", 2)
    assert isinstance(lanes, AtariLanes)
    assert (lanes.n_lanes, lanes.protocol.name, lanes.frames_per_step) == (2, "paper", 4)
    lanes.close()


@pytest.mark.parametrize(
    ("environment", "n_lanes", "error", "line"),
    [
        ("CartPol-v1", 1, ValueError, "Unknown environment 'CartPol-v1'. Did you mean 'CartPole-v1'"),
        ("breakout-v1", 1, ValueError, "Did you mean 'MinAtar/Breakout-v1'"),
        ("ALE/Pomg-v5", 1, ValueError, "Did you mean ALE/Pong-v5"),
        ("Pendulum-v1", 1, TypeError, "this environment's are continuous"),
        ("CartPole-v1", 0, ValueError, "at least 1, not 0"),
        ("CartPole-v1", 1.0, TypeError, "must be an integer, not 1.0"),
        (lambda: 3, 1, TypeError, "must return a gymnasium Env, not 3"),
        (3, 1, TypeError, "An environment must be an id, a gymnasium Env"),
    ],
)
def test_what_cannot_be_learnt_on_is_one_clear_line(environment, n_lanes, error, line):
    with pytest.raises(error, match=line) as raised:
        make_lanes(environment, n_lanes)
    assert "\n" not in str(raised.value)


def test_an_instance_cannot_be_several_lanes(corridor):
    with pytest.raises(
        ValueError, match="An environment instance can be used once; to run 2 copies, pass its id"
    ):
        make_lanes(corridor(), 2)
    with pytest.raises(ValueError, match="has 2 copies, not 3: set envs to 2"):
        make_lanes(SyncVectorEnv([corridor] * 2), 3)

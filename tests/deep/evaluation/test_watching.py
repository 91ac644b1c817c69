import numpy as np
import pytest

from ebql import EBQL
from ebql.deep.agents import MaxminDQN
from ebql.deep.evaluation.watching import watched
from ebql.environments.pictures import make_pictured
from ebql.errors import InputError

GAME = "MinAtar/Breakout-v1"


@pytest.fixture(scope="module")
def agent():
    return EBQL(GAME, preset="plain", hidden=(8,), ensemble_size=3, seed=0)


def moments_of(agent, game=GAME, **wanted):
    settings = {"episodes": 1, "seed": 0, "max_steps": 30} | wanted
    return list(watched(agent, make_pictured(game), **settings))


def test_each_moment_holds_what_the_members_think_and_what_is_chosen(agent):
    moments = moments_of(agent)
    assert [moment.step for moment in moments] == list(range(len(moments)))
    for moment in moments:
        assert moment.values.shape == (3, 3)
        assert moment.action == moment.values.mean(0).argmax()
        assert moment.picture.shape == (400, 400, 3)
    assert [moment.ended for moment in moments] == [False] * (len(moments) - 1) + [True]


def test_maxmin_is_watched_on_its_minimum():
    agent = MaxminDQN(GAME, preset="plain", hidden=(8,), ensemble_size=3, seed=0)
    for moment in moments_of(agent):
        np.testing.assert_array_equal(moment.together, moment.values.min(0))
        assert moment.action == moment.values.min(0).argmax()


def test_the_last_picture_is_that_of_the_end_and_not_of_the_next_episode(agent):
    moments = moments_of(agent, episodes=2)
    ends = [i for i, moment in enumerate(moments) if moment.ended]
    assert len(ends) == 2
    assert not np.array_equal(moments[ends[0]].picture, moments[ends[0] + 1].picture)
    assert moments[ends[0] + 1].step == 0
    assert moments[ends[0] + 1].score == 0


def test_the_score_is_that_of_an_evaluation_of_the_same_episodes(agent):
    moments = moments_of(agent, seed=5, max_steps=10_000)
    evaluation = agent.evaluate(1, seed=5)
    assert moments[-1].score == evaluation.returns[0]
    assert moments[-1].step == evaluation.lengths[0]


def test_an_episode_is_cut_after_max_steps(agent):
    assert [moment.ended for moment in moments_of(agent, max_steps=3)] == [False, False, False, True]


@pytest.mark.parametrize("game", ["MinAtar/Asterix-v1", "MinAtar/Freeway-v1", "CartPole-v1"])
def test_another_game_is_refused_with_the_words_of_an_evaluation(agent, game):
    with pytest.raises(InputError, match="The agent expects observations") as evaluating:
        agent.evaluate(1, environment=game)
    with pytest.raises(InputError, match="this environment has") as watching:
        moments_of(agent, game)
    assert str(watching.value) == str(evaluating.value)


@pytest.mark.parametrize("wrong", [{"episodes": 0}, {"max_steps": 0}, {"seed": -1}])
def test_bad_input(agent, wrong):
    with pytest.raises(InputError):
        moments_of(agent, **wrong)

from dataclasses import fields
from inspect import signature

import pytest

from ebql.deep.agent import DQN, Agent
from ebql.deep.config.agents import CONFIGS
from ebql.deep.config.foreign_words import CALLED_HERE
from ebql.errors import InputError, InputTypeError

OPTIONS = {field.name for config in CONFIGS.values() for field in fields(config)}


@pytest.mark.parametrize("word", CALLED_HERE)
def test_words_of_others_are_told_what_they_are_called_here(word):
    assert word not in OPTIONS
    with pytest.raises(InputTypeError) as refused:
        DQN("CartPole-v1", **{word: 1})
    assert str(refused.value) == f"There is no {word} here: use {CALLED_HERE[word]}."
    first = CALLED_HERE[word].partition(",")[0].split()[0]
    arguments = {name for method in (Agent.__init__, Agent.learn) for name in signature(method).parameters}
    assert first in OPTIONS | arguments


def test_the_verbs_know_them_too():
    with pytest.raises(InputTypeError, match="There is no total_timesteps here: use steps"):
        DQN("CartPole-v1").learn(total_timesteps=100)
    with pytest.raises(InputTypeError, match="There is no env here: use environment"):
        DQN.load("agent", env="CartPole-v1")
    with pytest.raises(InputTypeError, match="use evaluation_episodes, or episodes in evaluate"):
        DQN("CartPole-v1").evaluate(n_eval_episodes=3)


@pytest.mark.parametrize("arguments", [("MlpPolicy", "CartPole-v1"), ("CnnPolicy",)])
def test_a_policy_is_not_asked_for(arguments):
    with pytest.raises(InputError, match="the first argument is the environment"):
        DQN(*arguments, gamma=0.9)
    with pytest.raises(InputError, match="There is no MlpPolicy here"):
        DQN(policy="MlpPolicy", env="CartPole-v1")


def test_other_unknown_words_still_get_a_suggestion():
    with pytest.raises(InputError, match="Did you mean 'learning_rate'"):
        DQN("CartPole-v1", learningrate=1e-3)

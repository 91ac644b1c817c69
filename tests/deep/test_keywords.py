"""Editors and type checkers know every option of every agent, and no other."""

from dataclasses import fields
from inspect import Parameter, signature
from typing import get_args, get_type_hints

import pytest

import ebql
import ebql.deep
from ebql.deep import agents
from ebql.deep.agent import Agent
from ebql.deep.agents import AGENTS, EBQL
from ebql.deep.config.agents import DQNConfig, EBQLConfig
from ebql.deep.keywords import Setup
from ebql.errors import InputError

TYPED = [kind for kind in AGENTS.values() if "__init__" in vars(kind)]


@pytest.mark.parametrize("kind", TYPED)
def test_keywords_are_the_options_of_the_config(kind):
    (keywords,) = get_args(get_type_hints(kind.__init__)["options"])
    options = get_type_hints(keywords)
    assert {name: options.pop(name) for name in get_type_hints(Setup)} == get_type_hints(Setup)
    assert options == {field.name: field.type for field in fields(kind.config_type)}
    assert not keywords.__required_keys__


def test_every_agent_with_a_class_of_its_own_has_typed_keywords():
    """The classes of the others are made from their configs: `help` shows their options, mypy does not."""
    named = {getattr(ebql, name) for name in ebql.__all__ if isinstance(getattr(ebql, name), type)}
    written = {kind for kind in named if issubclass(kind, Agent) and kind.__name__ in vars(agents)}
    assert written - {Agent} == set(TYPED)


def test_setup_is_what_agents_take_beside_options():
    environment, *own, options = list(signature(Agent.__init__).parameters.values())[1:]
    assert environment.name == "environment"
    assert options.kind is Parameter.VAR_KEYWORD
    assert {parameter.name for parameter in own} == get_type_hints(Setup).keys()


@pytest.mark.parametrize("kind", AGENTS.values())
def test_help_shows_every_option_with_its_default(kind):
    shown = signature(kind).parameters
    assert next(iter(shown)) == "environment"
    for field in fields(kind.config_type):
        assert (shown[field.name].default, shown[field.name].annotation) == (field.default, field.type)


def test_agents_can_be_imported_from_both_packages():
    assert ebql.deep.EBQL is ebql.EBQL is EBQL
    assert ebql.deep.Agent is Agent
    with pytest.raises(AttributeError, match="ebql.deep"):
        ebql.deep.SARSA  # noqa: B018


def test_a_config_sets_every_option_and_keywords_override_it():
    config = EBQLConfig(ensemble_size=3, learning_rate=0.1)
    agent = EBQL("CartPole-v1", config=config, seed=7)
    assert agent.config == config.override(seed=7)
    assert agent._blueprint.preset is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"config": DQNConfig()}, "config must be EBQLConfig, not DQNConfig"),
        ({"config": EBQLConfig(), "preset": "plain"}, "a config or a preset, not both"),
        ({"config": EBQLConfig(ensemble_size=1)}, "needs ensemble-size ≥ 2"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(options, told):
    with pytest.raises((InputError, TypeError), match=told):
        EBQL("CartPole-v1", **options)

import pytest

from ebql.errors import UserError
from ebql.studies.definition import parse_study
from ebql.studies.kinds import KINDS, complete_options, kind_of

DEEP = 'agents = ["dqn"]\nenvironments = ["CartPole-v1"]\nseeds = 2\nsteps = 10\n'
TABLES = 'kind = "tabular"\nagents = ["q-learning"]\n'
TABLES += 'environments = ["ebql/MetaChain-v0"]\nseeds = 2\nepisodes = 9\n'


def test_a_missing_extra_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr("ebql.studies.kinds.find_spec", lambda package: None)
    with pytest.raises(UserError, match=r'Deep agents need torch: pip install "ebql\[deep\]"'):
        parse_study(DEEP, "the study")
    assert len(parse_study(TABLES, "the study").runs) == 1


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"kind": "tabular"}, "tabular"),
        ({"kind": "deep"}, "deep"),
        ({"floor": "tabular"}, "tabular"),  # as table runs were once described
        ({}, "deep"),  # as deep runs were once described
    ],
)
def test_the_kind_of_a_run_is_known_whichever_version_made_it(config, kind):
    assert kind_of(config) == kind


@pytest.mark.parametrize("config", [{"kind": "tabular"}, {"floor": "tabular"}])
def test_missing_options_have_the_defaults_of_their_kind(config):
    options = complete_options({**config, "agent": "ebql", "options": {"ensemble_size": 7}})
    assert options == {"ensemble_size": 7, "split": 1}
    deep = complete_options({"agent": "ebql", "options": {"ensemble_size": 7}})
    assert deep["ensemble_size"] == 7
    assert "learning_rate" in deep


def test_a_kind_never_offers_the_seed_as_an_option():
    for kind in KINDS.values():
        for agent in kind.agents:
            assert "seed" not in kind.options(agent)

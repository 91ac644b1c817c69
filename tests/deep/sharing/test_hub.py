import huggingface_hub.constants
import numpy as np
import pytest

from ebql.deep.agents import DQN, EBQL
from ebql.deep.sharing.hub import WEIGHTS, fetch, is_repository, upload
from ebql.errors import InputError

PROBE = "ebql/ProbeOneStep-v0"


def test_a_folder_is_loaded_as_it_was_saved(tmp_path):
    agent = EBQL(PROBE, ensemble_size=3, hidden=(4,))
    agent.save(tmp_path / WEIGHTS)
    loaded = EBQL.from_hub(tmp_path)
    observation = np.ones(agent.spec.shape, agent.spec.dtype)
    assert np.array_equal(loaded.q_values(observation), agent.q_values(observation))
    with pytest.raises(InputError, match="This is a ebql agent, not dqn"):
        DQN.from_hub(tmp_path)


def test_what_is_no_published_agent_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"is not a published agent: it has no {WEIGHTS}"):
        fetch(tmp_path)
    with pytest.raises(InputError, match="An agent on the Hub is called user/name"):
        fetch("./nowhere")


def test_the_hubs_refusals_are_one_line(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="Cannot fetch 'somebody/something' from the Hub") as told:
        fetch("somebody/something")
    assert "\n" not in str(told.value)
    with pytest.raises(InputError, match="Cannot publish to 'somebody/something'") as told:
        upload("nowhere", "somebody/something")
    assert "\n" not in str(told.value)


def test_a_repository_is_told_from_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "one").mkdir(parents=True)
    names = ("user/name", "./user/name", "/user/name", "runs/one", "a/b/c", "name")
    assert [is_repository(name) for name in names] == [True, False, False, False, False, False]

import json

from hypothesis import given
from hypothesis import strategies as st

from ebql.studies.model import Run, slug


def test_a_run_survives_json():
    run = Run(
        "deep", "CartPole-v1", "dqn", "DQN fast", "classic", {"seed": 7, "hidden": [8]}, (7,), 10, "steps"
    )
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    assert run.name == "CartPole-v1_dqn-fast_7"


@given(st.text())
def test_a_slug_is_its_own_slug_and_safe_in_a_file_name(label):
    found = slug(label)
    assert slug(found) == found
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")

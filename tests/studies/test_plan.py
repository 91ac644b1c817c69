import json

import pytest

from ebql.deep.agent import DQN, EBQL
from ebql.errors import InputError
from ebql.runs import RunFolder, write_json
from ebql.studies.plan import plan, run_folder

HEAD = 'agents = ["dqn", "ebql"]\nseeds = 2\nsteps = 200\n'


@pytest.fixture
def study(small_study):
    return small_study(HEAD)


def _trained(run, out, steps):
    kind = {"dqn": DQN, "ebql": EBQL}[run.agent]
    kind(run.environment, preset=run.preset, **run.options).learn(steps, out=run_folder(out, run))


def test_an_empty_folder_has_nothing_and_is_left_so(study, tmp_path):
    planned = plan(study, tmp_path / "out")
    assert [item.done for item in planned] == [0, 0, 0, 0]
    assert [item.left for item in planned] == [200] * 4
    assert not (tmp_path / "out").exists()


def test_what_was_trained_by_hand_is_adopted(study, tmp_path):
    finished, unfinished, longer, _ = study.runs
    for run, steps in ((finished, 200), (unfinished, 120), (longer, 300)):
        _trained(run, tmp_path, steps)
    planned = plan(study, tmp_path)
    assert [item.done for item in planned] == [200, 120, 300, 0]
    assert [item.finished for item in planned] == [True, False, True, False]
    assert [item.left for item in planned] == [0, 80, 0, 200]


def test_a_run_without_checkpoints_has_what_its_metrics_say(study, tmp_path):
    _trained(study.runs[0], tmp_path, 200)
    folder = run_folder(tmp_path, study.runs[0])
    (folder / "checkpoints").rename(tmp_path / "cleared")
    assert plan(study, tmp_path)[0].finished


def test_a_run_whose_checkpoints_were_deleted_before_its_end_does_not_stop_the_others(study, tmp_path):
    _trained(study.runs[0], tmp_path, 100)
    (run_folder(tmp_path, study.runs[0]) / "checkpoints").rename(tmp_path / "cleared")
    stuck, *others = plan(study, tmp_path)
    assert "were deleted: it cannot continue from step 100 to 200" in stuck.obstacle
    assert not stuck.finished
    assert [item.obstacle for item in others] == [None] * 3


def test_a_changed_option_is_refused_with_the_difference(study, small_study, tmp_path):
    for run in study.runs[:2]:
        _trained(run, tmp_path, 50)
    changed = small_study(HEAD + "discount = 0.9\n")
    with pytest.raises(InputError) as refusal:
        plan(changed, tmp_path)
    told = "ebql-ProbeOneStep-v0_dqn_0 has discount 0.99, the study 0.9 (and 1 more)"
    assert told in str(refusal.value)
    other = small_study(
        HEAD.replace('"ebql"', '"double-dqn"'), '[[agent]]\nname="dqn"\nlabel="EBQL"\nn_step=2'
    )
    with pytest.raises(InputError, match="has agent 'ebql', the study 'dqn'"):
        plan(other, tmp_path)


def test_more_steps_agents_and_seeds_are_no_change(study, small_study, tmp_path):
    _trained(study.runs[0], tmp_path, 200)
    more = small_study('agents = ["double-dqn", "dqn"]\nseeds = [5, 0]\nsteps = 900\n')
    assert {item.run.name: item.done for item in plan(more, tmp_path)} == {
        "ebql-ProbeOneStep-v0_double-dqn_5": 0,
        "ebql-ProbeOneStep-v0_dqn_5": 0,
        "ebql-ProbeOneStep-v0_double-dqn_0": 0,
        "ebql-ProbeOneStep-v0_dqn_0": 200,
    }


def test_an_option_that_an_older_version_did_not_know_has_its_default(study, small_study, tmp_path):
    _trained(study.runs[0], tmp_path, 50)
    path = run_folder(tmp_path, study.runs[0]) / "config.json"
    config = json.loads(path.read_text())
    del config["options"]["rmsprop_alpha"], config["seal"]
    write_json(path, config)
    assert plan(study, tmp_path)[0].done == 50
    with pytest.raises(InputError, match=r"rmsprop_alpha 0\.95, the study 0\.5"):
        plan(small_study(HEAD + "rmsprop_alpha = 0.5\n"), tmp_path)


@pytest.mark.parametrize("content", ["{", "[" * 100_000, '{"format": "ebql run 1"}'])
def test_a_folder_that_is_no_run_does_not_stop_the_others(study, tmp_path, content):
    folder = run_folder(tmp_path, study.runs[0])
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(content)
    stuck, *others = plan(study, tmp_path)
    assert "config.json" in stuck.obstacle
    assert [item.obstacle for item in others] == [None] * 3


def test_a_run_of_tables_is_not_taken_for_a_deep_one(study, tmp_path):
    run = study.runs[0]
    about = {"kind": "tabular", "agent": "dqn", "environment": run.environment, "options": {}}
    RunFolder.create(run_folder(tmp_path, run), about, command=[])
    with pytest.raises(InputError, match="has kind 'tabular', the study 'deep'"):
        plan(study, tmp_path)

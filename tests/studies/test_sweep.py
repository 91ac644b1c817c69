import json

import pytest

from ebql.deep.agent import DQN
from ebql.errors import RunError
from ebql.runs import RunFolder
from ebql.studies.plan import run_folder
from ebql.studies.status import RunStatus
from ebql.studies.sweep import keep, require_finished

HEAD = "seeds = 2\nsteps = 60\n"
AGENT = '[[agent]]\nname = "dqn"\nlabel = "Mine"\n'


def test_the_folder_keeps_the_study_and_its_labels(small_study, tmp_path):
    study = small_study(HEAD, AGENT)
    adopted, missing = (run_folder(tmp_path, run) for run in study.runs)
    DQN(study.runs[0].environment, preset="plain", **study.runs[0].options).learn(60, out=adopted)
    before = RunFolder.open(adopted).config
    assert before["label"] is None
    keep(study, tmp_path)
    assert (tmp_path / "study.toml").read_text() == study.text
    assert RunFolder.open(adopted).config == {**before, "label": "Mine"}
    assert not missing.exists()


def test_a_run_with_its_label_is_not_written_again(small_study, tmp_path):
    study = small_study(HEAD, AGENT)
    folder = run_folder(tmp_path, study.runs[0])
    RunFolder.create(folder, {"kind": "deep", "label": "Mine", "agent": "dqn"}, command=[])
    untouched = json.dumps(RunFolder.open(folder).config)  # not as `write_json` would write it
    (folder / "config.json").write_text(untouched)
    keep(study, tmp_path)
    assert (folder / "config.json").read_text() == untouched


def test_unfinished_studies_say_what_is_missing(small_study):
    one, other = small_study(HEAD, AGENT).runs
    done = RunStatus(one, "done", 60, None, None)
    require_finished([done])
    with pytest.raises(RunError, match=r"1 of 2 runs are unfinished\. → to continue: rerun the command$"):
        require_finished([done, RunStatus(other, "stopped", 10, None, "Stopped at step 10.")])
    failed = r"1 of 2 runs failed\. ebql-ProbeOneStep-v0_mine_1: Out of luck\. → to try again: rerun"
    with pytest.raises(RunError, match=failed):
        require_finished([done, RunStatus(other, "failed", 10, None, "Out of luck.")])

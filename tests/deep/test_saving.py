import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tensorboardX import SummaryWriter

from ebql.deep.agent import DQN
from ebql.deep.saving import load
from ebql.errors import InputError
from ebql.runs import MetricsLog

ABOUT = {"agent": "dqn", "environment": None, "observation": {}, "n_actions": 2, "options": {}}


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ({}, "is not a saved agent"),
        ({"format": "ebql agent 1"}, "its header cannot be read"),
        ({"format": "ebql agent 1", "about": "{"}, "its header cannot be read"),
        ({"format": "ebql agent 1", "about": "[1]"}, "it lacks agent, environment"),
        ({"format": "ebql agent 1", "about": json.dumps({**ABOUT, "agent": [1]})}, r"it says agent \[1\]"),
        ({"format": "ebql agent 1", "about": json.dumps({**ABOUT, "updates": "x"})}, "it says updates 'x'"),
        ({"format": "ebql agent 1", "about": json.dumps({**ABOUT, "agent": "dqm"})}, "Did you mean 'dqn'"),
    ],
)
def test_a_file_that_describes_no_agent_is_one_clear_line(tmp_path, header, told):
    save_file({"online": np.zeros(1, np.float32)}, tmp_path / "a.safetensors", header)
    with pytest.raises(InputError, match=told):
        load(tmp_path / "a")


def test_a_full_disk_is_told_in_one_line_with_what_stays(small, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    close = SummaryWriter.close
    monkeypatch.setattr(MetricsLog, "append", full)
    monkeypatch.setattr(SummaryWriter, "close", lambda writer: (close(writer), full()))
    with pytest.raises(RuntimeError, match=r"No space left on device\. To continue from step 0: ebql resume"):
        DQN("CartPole-v1", **small).learn(100, out=tmp_path / "run")


@pytest.mark.parametrize("place", [-1, -400])
def test_a_changed_byte_of_the_weights_is_noticed(place, small, tmp_path):
    path = DQN("CartPole-v1", **small).save(tmp_path / "agent")
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged: its content does not match its checksum"):
        DQN.load(path)


def test_an_agent_saved_before_there_was_a_checksum_can_be_loaded(small, tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    path = DQN("CartPole-v1", **small).save(tmp_path / "agent")
    with safe_open(path, framework="numpy") as file:
        header = {key: text for key, text in file.metadata().items() if key != "sha256"}
    save_file(load_file(path), tmp_path / "old.safetensors", header)
    assert DQN.load(tmp_path / "old.safetensors").n_actions == 2

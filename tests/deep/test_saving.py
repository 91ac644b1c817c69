import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from tensorboardX import SummaryWriter

from ebql.deep.agent import DQN, EBQL
from ebql.deep.saving import load, save
from ebql.errors import InputError, InputTypeError
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
    with pytest.raises(
        InputError, match="was changed after it was written: its content does not match its checksum"
    ):
        DQN.load(path)


def test_an_agent_saved_before_there_was_a_checksum_can_be_loaded(small, tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    path = DQN("CartPole-v1", **small).save(tmp_path / "agent")
    with safe_open(path, framework="numpy") as file:
        header = {key: text for key, text in file.metadata().items() if key != "sha256"}
    save_file(load_file(path), tmp_path / "old.safetensors", header)
    assert DQN.load(tmp_path / "old.safetensors").n_actions == 2


@pytest.fixture
def saved(small, tmp_path):
    return DQN("CartPole-v1", **small).save(tmp_path / "agent")


def rewritten(path, change, *, sealed):
    """Write a saved agent again with other weights, with the seal that it had or without one."""
    with safe_open(path, framework="numpy") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    name = next(name for name in tensors if name.startswith("online"))
    tensors[name] = change(tensors[name])
    if not sealed:
        del header["sha256"]
    save_file(tensors, path, header)


def test_a_changed_agent_is_refused_unless_accepted(saved):
    rewritten(saved, lambda weights: weights + 1, sealed=True)
    with pytest.raises(
        InputError, match=r"agent.safetensors' was changed after it was written: .*--accept-changes"
    ):
        DQN.load(saved)
    DQN.load(saved, accept_changes=True)
    rewritten(saved, lambda weights: weights, sealed=False)  # as version 0.1 saved it
    DQN.load(saved)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda weights: weights * np.float32("nan"), "are not all finite numbers"),
        (lambda weights: weights + np.float32("inf"), "are not all finite numbers"),
        (lambda weights: weights.astype(np.float64), "are float64 numbers, not float32"),
        (lambda weights: weights.astype(np.int32), "are int32 numbers, not float32"),
    ],
)
@pytest.mark.parametrize("sealed", [True, False])
def test_weights_that_are_no_weights_are_refused_even_if_changes_are_accepted(saved, change, told, sealed):
    rewritten(saved, change, sealed=sealed)
    with pytest.raises(InputError, match=told):
        DQN.load(saved, accept_changes=True)


@pytest.mark.parametrize("device", ["meta", "mps", "xla", "cuda:99", "vulkan"])
def test_a_device_that_cannot_compute_is_one_line(small, device):
    with pytest.raises(InputError, match=r"device"):
        DQN("CartPole-v1", **small, device=device)


def paths(content, before=()):
    """Every place in a JSON value."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*before, key))


def replaced(content, path, value):
    if not path:
        return value
    copy = dict(content) if isinstance(content, dict) else list(content)
    copy[path[0]] = replaced(content[path[0]], path[1:], value)
    return copy


def test_a_wrong_type_anywhere_in_a_description_is_one_line(small, tmp_path):
    """A stranger can write any JSON value anywhere, and the checksum that fits it."""
    agent = EBQL("CartPole-v1", **small, epsilon_schedule="piecewise", epsilon_points=((0, 1.0),))
    about, tensors = load(agent.save(tmp_path / "agent"))
    about = json.loads(json.dumps(about))
    refused, n_accepted = [], 0
    for path in paths(about):
        for value in (None, True, -1, 2**70, 0.5, "a", ["a"]):
            save(tmp_path / "other", replaced(about, path, value), tensors)
            try:
                loaded = EBQL.load(tmp_path / "other")
                loaded.predict(np.zeros(loaded.spec.shape))
                n_accepted += 1
            except (InputError, InputTypeError) as error:
                refused.append(str(error))
    assert not [line for line in refused if "\n" in line]
    assert len(refused) > 3 * n_accepted > 0  # None, True and 0.5 are values of some options

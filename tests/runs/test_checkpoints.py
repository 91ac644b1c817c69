import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest

from ebql.runs import CheckpointError, CheckpointStore, DamagedCheckpointWarning, checkpoints


def save(store: CheckpointStore, step: int) -> None:
    """Save contents that all depend on the step."""
    store.save(
        step,
        tensors={"torso.weight": np.full((3, 4), step, np.float32), "count": np.array(step, np.int64)},
        state={"step": step, "rng": 2**127 + step, "best": 0.1 + step, "none": None},
        arrays={
            "replay/actions": np.full(1000, step % 251, np.uint8),
            "replay/ended": np.arange(7) % 2 == step % 2,
            "empty": np.empty((0, 3), np.float32),
        },
    )


def check(store: CheckpointStore, step: int) -> None:
    loaded = store.load_latest()
    assert loaded is not None
    assert loaded.step == step
    assert loaded.state == {"step": step, "rng": 2**127 + step, "best": 0.1 + step, "none": None}
    assert (loaded.tensors["torso.weight"] == step).all()
    assert loaded.tensors["torso.weight"].shape == (3, 4)
    assert loaded.tensors["count"] == step
    np.testing.assert_array_equal(loaded.arrays["replay/actions"], np.full(1000, step % 251, np.uint8))
    np.testing.assert_array_equal(loaded.arrays["replay/ended"], np.arange(7) % 2 == step % 2)
    assert loaded.arrays["replay/ended"].dtype == bool
    assert loaded.arrays["empty"].shape == (0, 3)


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints")


def files(tmp_path, step):
    return sorted((tmp_path / "checkpoints" / f"{step:012d}").iterdir())


def test_what_was_saved_is_what_is_loaded_and_two_are_kept(store, tmp_path):
    assert store.load_latest() is None
    for step in (10, 20, 30):
        save(store, step)
        check(store, step)
    assert store.steps() == [20, 30]
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_saving_a_step_again_replaces_it(store):
    save(store, 10)
    store.save(10, {}, {"second": True}, {})
    loaded = store.load_latest()
    assert loaded is not None
    assert loaded.state == {"second": True}


@pytest.mark.parametrize("array", [np.arange(12).reshape(3, 4).T, np.arange(10)[::2], np.array(3.5, ">f8")])
def test_arrays_of_any_layout_come_back_as_they_were(store, array):
    store.save(1, {"tensor": array.astype(array.dtype.newbyteorder("="))}, {}, {"array": array})
    loaded = store.load_latest()
    assert loaded is not None
    np.testing.assert_array_equal(loaded.arrays["array"], array)
    np.testing.assert_array_equal(loaded.tensors["tensor"], array)
    assert (loaded.arrays["array"].dtype, loaded.arrays["array"].shape) == (array.dtype, array.shape)


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flip_a_byte, cut, os.remove])
@pytest.mark.parametrize("file", range(5))
def test_a_damaged_file_is_noticed_and_the_previous_checkpoint_used(store, tmp_path, damage, file):
    save(store, 10)
    save(store, 20)
    path = [path for path in files(tmp_path, 20) if path.stat().st_size][file]
    damage(path)
    with pytest.warns(DamagedCheckpointWarning, match="step 20 is damaged.*using that of step 10"):
        check(store, 10)
    # The run resumes from 10: its next checkpoint must not be hidden by the damaged one.
    save(store, 15)
    with warnings.catch_warnings(action="error"):
        check(store, 15)
    assert store.steps() == [10, 15]


def test_every_byte_of_a_manifest_is_guarded(store, tmp_path):
    save(store, 10)
    manifest = tmp_path / "checkpoints" / f"{10:012d}" / "manifest.json"
    content = manifest.read_bytes()
    for i in range(len(content)):
        manifest.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        with pytest.raises(CheckpointError, match="step 10 is damaged"):
            store.load_latest()


def test_a_checkpoint_in_the_place_of_another_is_damaged(store, tmp_path):
    for step in (10, 20):
        save(store, step)
    folder = tmp_path / "checkpoints"
    (folder / f"{20:012d}").rename(folder / f"{30:012d}")
    with pytest.warns(DamagedCheckpointWarning, match="is for step 20"):
        check(store, 10)


def test_when_all_are_damaged_it_says_so(store, tmp_path):
    for step in (10, 20):
        save(store, step)
        cut(files(tmp_path, step)[0])
    with (
        pytest.warns(DamagedCheckpointWarning, match="using that of step 10"),
        pytest.raises(CheckpointError, match="there is no older one in"),
    ):
        store.load_latest()


def test_a_full_disk_leaves_the_last_checkpoint(store, tmp_path, monkeypatch):
    save(store, 10)
    calls = 0

    def disk_full(_: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(CheckpointError, match=r"checkpoint of step 20 .*: No space left on device") as error:
        save(store, 20)
    assert "\n" not in str(error.value)
    check(store, 10)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [f"{10:012d}"]


def test_a_write_that_the_system_cuts_short_leaves_the_last_checkpoint(store):
    save(store, 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(CheckpointError, match="File too large"):
            store.save(20, {}, {}, {"big": np.zeros(1 << 18, np.uint8)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(store, 10)


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"Cannot save the checkpoint of step 1 .*: File exists"):
        save(CheckpointStore(tmp_path / "file"), 1)


def test_what_json_or_raw_bytes_cannot_say_is_refused_and_leaves_nothing(store, tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        store.save(1, {}, {"loss": float("nan")}, {})
    with pytest.raises(TypeError, match="holds Python objects"):
        store.save(1, {}, {}, {"a": np.array([None])})
    assert store.load_latest() is None
    assert not list((tmp_path / "checkpoints").iterdir())


SAVE_FOR_EVER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_checkpoints import CheckpointStore, save
store, step = CheckpointStore(sys.argv[2]), int(sys.argv[3])
while True:
    step += 1
    save(store, step)
    print(step, flush=True)
"""


def test_a_kill_at_any_moment_loses_no_saved_step(store, tmp_path):
    rng = np.random.default_rng(0)
    step = 0
    for _ in range(6):
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                SAVE_FOR_EVER,
                os.path.dirname(__file__),
                tmp_path / "checkpoints",
                str(step),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        step = int(child.stdout.readline())
        time.sleep(rng.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        step = int((child.stdout.read() or f"{step}\n").split("\n")[-2])
        child.wait()
        child.stdout.close()
        with warnings.catch_warnings(action="error"):
            loaded = store.load_latest()
        assert loaded is not None
        assert loaded.step in (step, step + 1)  # saved, but killed before it could say so
        check(store, loaded.step)
        step = loaded.step
    save(store, step + 1)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_big_arrays_are_neither_copied_when_saved_nor_loaded_when_read(store):
    big = np.zeros(64 << 20, np.uint8)
    tracemalloc.start()
    try:
        store.save(1, {}, {}, {"replay": big})
        loaded = store.load_latest()
        assert loaded is not None
        assert len(loaded.arrays["replay"]) == len(big)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(ValueError, match="read-only"):
        loaded.arrays["replay"][0] = 1


def test_a_missing_extra_names_the_pip_command(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ValueError, match=r'pip install "ebql\[deep\]"'):
        save(store, 1)


def sealed(*numbers):
    array = np.array(numbers, np.int32)
    array.flags.writeable = False
    return array


def inode(tmp_path, step, content):
    """Return which file on disk holds this content in the checkpoint of a step."""
    (file,) = (path for path in files(tmp_path, step) if path.read_bytes() == content.tobytes())
    return file.stat().st_ino


def test_what_never_changes_is_written_twice_and_outlives_the_checkpoints_it_was_written_for(store, tmp_path):
    first, changing = sealed(1, 2, 3), np.array([7, 8, 9], np.int32)
    inodes = {}
    for step in (10, 20, 30, 40, 50):
        store.save(step, {}, {}, {"0": first, "1": changing})
        inodes[step] = inode(tmp_path, step, first)
    assert inodes[10] == inodes[30] == inodes[50]
    assert inodes[20] == inodes[40] != inodes[50]
    assert inode(tmp_path, 40, changing) != inode(tmp_path, 50, changing)
    np.testing.assert_array_equal(store.load_latest().arrays["0"], first)


def test_no_file_is_shared_by_both_checkpoints_so_damage_to_any_leaves_one_intact(store, tmp_path):
    content = sealed(1, 2, 3)
    for step in (10, 20, 30, 40):
        store.save(step, {}, {}, {"0": content})
    (file,) = (path for path in files(tmp_path, 40) if path.read_bytes() == content.tobytes())
    flip_a_byte(file)
    with pytest.warns(DamagedCheckpointWarning, match="using that of step 30"):
        np.testing.assert_array_equal(store.load_latest().arrays["0"], content)


def test_weights_are_read_whatever_happened_to_the_arrays(store, tmp_path):
    for step in (10, 20):
        save(store, step)
        for path in files(tmp_path, step):
            if path.name.startswith("array"):
                path.unlink()
    with warnings.catch_warnings(action="error"):
        loaded = store.load_latest(weights_only=True)
    assert loaded.step == 20
    assert (loaded.tensors["torso.weight"] == 20).all()
    assert loaded.arrays == {}
    cut(tmp_path / "checkpoints" / f"{20:012d}" / "tensors.safetensors")
    with pytest.warns(DamagedCheckpointWarning, match="using that of step 10"):
        assert store.load_latest(weights_only=True).step == 10


def test_a_reader_beside_a_writer_finds_what_is_there_now(store, monkeypatch):
    """Both checkpoints that the reader has listed are deleted before it opens them."""
    for step in (10, 20):
        save(store, step)
    read = checkpoints._read_manifest

    def overtaken(folder):
        monkeypatch.undo()
        for step in (30, 40):
            save(store, step)
        return read(folder)

    monkeypatch.setattr(checkpoints, "_read_manifest", overtaken)
    with warnings.catch_warnings(action="error"):
        check(store, 40)


HOSTILE = [
    lambda manifest: manifest.update(step="20"),
    lambda manifest: manifest.update(files=[]),
    lambda manifest: manifest.update(files={}),
    lambda manifest: manifest.pop("arrays"),
    lambda manifest: manifest["files"].update({"../../outside": {"bytes": 1, "crc32": 0}}),
    lambda manifest: manifest["arrays"].update(x={"file": "state.json", "dtype": "O", "shape": [1]}),
    lambda manifest: manifest["arrays"].update(x={"file": "state.json", "dtype": "no such", "shape": [1]}),
    lambda manifest: manifest["arrays"].update(x={"file": "state.json", "dtype": "|u1", "shape": [10**30]}),
    lambda manifest: manifest["arrays"].update(x={"file": "state.json", "dtype": "|u1", "shape": "many"}),
    lambda manifest: manifest["arrays"].update(x={"file": "nowhere", "dtype": "|u1", "shape": [1]}),
    lambda manifest: manifest["arrays"].update(x=3),
]


@pytest.mark.parametrize("change", HOSTILE, ids=range(len(HOSTILE)))
def test_a_manifest_that_a_stranger_wrote_is_damaged(store, tmp_path, change):
    (tmp_path / "outside").write_bytes(b"x")
    save(store, 10)
    path = tmp_path / "checkpoints" / f"{10:012d}" / "manifest.json"
    manifest = json.loads(path.read_bytes())["manifest"]
    change(manifest)
    content = {"crc32": zlib.crc32(json.dumps(manifest).encode()), "manifest": manifest}
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="step 10 is damaged"):
        store.load_latest()


def test_deeply_nested_json_is_damaged(store, tmp_path):
    save(store, 10)
    (tmp_path / "checkpoints" / f"{10:012d}" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match=r"step 10 is damaged \(manifest.json cannot be read\)"):
        store.load_latest()


@pytest.mark.parametrize("name", ["", f"{10:012d}", f"{10:012d}/manifest.json", f"{10:012d}/array-000.bin"])
def test_links_are_not_followed(store, tmp_path, name):
    save(store, 10)
    linked = tmp_path / "checkpoints" / name
    linked.rename(tmp_path / "outside")
    linked.symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match="is a symbolic link"):
        store.load_latest()


def test_a_folder_that_was_deleted_stays_deleted(tmp_path):
    with pytest.raises(CheckpointError, match="No such file or directory"):
        save(CheckpointStore(tmp_path / "gone" / "checkpoints"), 10)
    assert not (tmp_path / "gone").exists()


def test_a_read_only_array_with_another_content_is_written(store, tmp_path):
    store.save(10, {}, {}, {"0": sealed(1, 2, 3), "1": sealed(4, 5)})
    store.save(20, {}, {}, {})
    store.save(30, {}, {}, {"0": sealed(1, 2, 4), "2": sealed(4, 5)})
    loaded = store.load_latest()
    assert loaded.arrays["0"].tolist() == [1, 2, 4]
    assert loaded.arrays["2"].tolist() == [4, 5]


def test_where_links_are_not_possible_files_are_written(store, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    for step in (10, 20, 30):
        store.save(step, {}, {}, {"0": sealed(1, 2, 3)})
        assert store.load_latest().arrays["0"].tolist() == [1, 2, 3]
    assert store.steps() == [20, 30]


def test_damage_to_a_file_is_not_handed_on_to_a_later_checkpoint(store, tmp_path):
    content = sealed(1, 2, 3)
    for step in (10, 20):
        store.save(step, {}, {}, {"0": content})
    (file,) = (path for path in files(tmp_path, 10) if path.read_bytes() == content.tobytes())
    file.write_bytes(bytes(content.nbytes))
    store.save(30, {}, {}, {"0": content})
    np.testing.assert_array_equal(store.load_latest().arrays["0"], content)


def test_a_reader_looks_again_when_a_writer_has_pruned_what_it_was_reading(store, monkeypatch):
    from ebql.runs import checkpoints

    for step in (1, 2):
        save(store, step)
    read, coming = checkpoints._read, [3, 4]

    def read_late(folder, step, *, weights_only):
        while coming:
            save(store, coming.pop(0))  # prunes the checkpoint that is about to be read
        return read(folder, step, weights_only=weights_only)

    monkeypatch.setattr(checkpoints, "_read", read_late)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.load_latest().step == 4

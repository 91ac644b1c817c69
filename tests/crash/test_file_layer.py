import os
import sys

import pytest

from crash.file_layer import KILLED, FileLayer
from crash.io_errors import fail_at
from crash.kills import kill_at
from crash.processes import in_child
from ebql.errors import OutputError
from ebql.runs import write_bytes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the layer finds open files in /proc"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def noting(seen):
    def act(operation, whole, part):
        seen.append((operation.number, operation.name, os.path.basename(operation.path).split(".")[-1]))
        return whole()

    return act


def test_every_operation_on_a_file_is_numbered(tmp_path):
    seen = []
    (tmp_path / "inside").mkdir()
    with FileLayer(tmp_path / "inside", noting(seen)).installed():
        write_bytes(tmp_path / "inside" / "a.txt", b"new")
        write_bytes(tmp_path / "outside.txt", b"new")
        assert (tmp_path / "inside" / "a.txt").read_bytes() == b"new"
        with (tmp_path / "inside" / "log").open("ab") as file:
            file.write(b"buffered, ")
            file.write(b"so one operation")
        (tmp_path / "inside" / "log").unlink()
    write_bytes(tmp_path / "inside" / "b.txt", b"after the layer is gone")
    names = [name for _, name, _ in seen]
    assert names[:4] == ["open", "write", "fsync", "replace"]
    assert names[-3:] == ["open", "write", "unlink"]
    assert [number for number, _, _ in seen] == list(range(1, len(seen) + 1))


def test_reading_is_numbered_where_it_is_asked_for(tmp_path):
    seen = []
    (tmp_path / "a.txt").write_text("a")
    with FileLayer(tmp_path, noting(seen), reads=True).installed():
        assert (tmp_path / "a.txt").read_text() == "a"
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert [name for _, name, _ in seen] == ["read", "list"]


def test_what_shutil_deletes_is_numbered_too(tmp_path):
    import shutil

    seen = []
    (tmp_path / "run" / "below").mkdir(parents=True)
    (tmp_path / "run" / "below" / "file").write_text("")
    with FileLayer(tmp_path / "run", noting(seen)).installed():
        shutil.rmtree(tmp_path / "run" / "below")
    assert [(name, what) for _, name, what in seen] == [("unlink", "file"), ("rmdir", "below")]


@pytest.mark.parametrize(("moment", "left"), [("before", b""), ("amid", b"1234")])
def test_a_killed_write_leaves_nothing_or_its_first_half(moment, left, tmp_path):
    path = tmp_path / "run" / "log"
    path.parent.mkdir()

    def write():
        with FileLayer(path.parent, kill_at(2, moment)).installed(), path.open("wb") as file:
            file.write(b"12345678")

    outcome = in_child(write)
    assert outcome.code == KILLED
    assert path.read_bytes() == left


def test_an_error_meets_one_operation_or_all_later_ones(tmp_path):
    def write(act):
        with FileLayer(tmp_path, act).installed():
            for name in ("a", "b"):
                try:
                    write_bytes(tmp_path / name, b"content")
                except OutputError as error:
                    yield error.errno
                else:
                    yield None

    assert list(write(fail_at(2, "EIO", lasting=False))) == [5, None]
    assert list(write(fail_at(2, "ENOSPC", lasting=True))) == [28, 28]
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_child_tells_how_it_ended():
    def refuse():
        raise OutputError(28, "Cannot write.")

    def fail():
        raise KeyError("step")

    def work():
        while True:
            pass

    assert in_child(lambda: {"a": [1]}).value == {"a": [1]}
    assert in_child(refuse).refused
    failed = in_child(fail)
    assert not failed.refused
    assert failed.error.startswith("KeyError: 'step' [test_file_layer.py:")
    assert "did not end within 1 seconds" in in_child(work, seconds=1).error

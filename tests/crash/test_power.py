import os
import sys
from random import Random

import pytest

from crash.file_layer import FileLayer
from crash.power import Disk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layer finds open files in /proc")


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "run").mkdir()
    followed = Disk(tmp_path / "run")
    with FileLayer(followed.root, lambda operation, whole, _: followed.follow(operation, whole)).installed():
        yield followed


def write(path, content, *, sync):
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def sync_folder(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def survivors(disk, mode):
    disk.cut(mode, Random(0))
    return {
        str(path.relative_to(disk.root)): path.read_bytes() for path in disk.root.rglob("*") if path.is_file()
    }


def test_content_survives_if_it_was_synced(disk):
    write(disk.root / "synced", b"here", sync=True)
    write(disk.root / "written", b"lost", sync=False)
    assert survivors(disk, "data") == {"synced": b"here", "written": b""}


def test_names_survive_if_their_folder_was_synced(disk):
    write(disk.root / "early", b"here", sync=True)
    sync_folder(disk.root)
    write(disk.root / "late", b"lost", sync=True)
    assert survivors(disk, "strict") == {"early": b"here"}


def test_a_rename_is_undone_unless_its_folder_was_synced(disk):
    write(disk.root / "file", b"old", sync=True)
    sync_folder(disk.root)
    write(disk.root / "new", b"new", sync=True)
    (disk.root / "new").replace(disk.root / "file")
    assert survivors(disk, "strict") == {"file": b"old"}


def test_a_folder_keeps_its_content_under_its_new_name(disk):
    (disk.root / "partial").mkdir()
    write(disk.root / "partial" / "file", b"here", sync=True)
    sync_folder(disk.root / "partial")
    (disk.root / "partial").rename(disk.root / "whole")
    sync_folder(disk.root)
    assert survivors(disk, "strict") == {"whole/file": b"here"}


def test_what_was_appended_since_the_sync_is_lost(disk):
    with (disk.root / "log").open("ab") as file:
        file.write(b"one\n")
        file.flush()
        os.fsync(file.fileno())
        file.write(b"two\n")
        file.flush()
        assert survivors(disk, "data") == {"log": b"one\n"}

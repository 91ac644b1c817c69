import errno
import os
import subprocess
import sys
import threading

import pytest

from ebql.errors import InputError, OutputError
from ebql.runs import RunFolder, exclusive


def test_a_second_holder_is_refused_and_a_dead_one_lets_go(tmp_path):
    lock = tmp_path / ".lock"
    script = (
        "import sys, time, pathlib\nfrom ebql.runs import exclusive\n"
        f"with exclusive(pathlib.Path({str(lock)!r}), 'taken'):\n"
        "    print('held', flush=True)\n    time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(InputError, match="taken by another"), exclusive(lock, "taken by another"):
                pass
        finally:
            holder.kill()
    with exclusive(lock, "taken"):
        pass


def test_patience_waits_for_the_holder_to_let_go(tmp_path):
    run = RunFolder.create(tmp_path, {"agent": "dqn"}, command=[])
    held, release = threading.Event(), threading.Event()

    def hold():
        with run.locked():
            held.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    with pytest.raises(InputError, match="Another process is working on the run"):
        run.wait_until_free(0.1)
    release.set()
    run.wait_until_free(60)
    holder.join()


def test_a_lock_that_cannot_be_written_is_one_clear_line(tmp_path):
    with pytest.raises(OutputError, match="Cannot write .*lock"), exclusive(tmp_path / "no" / ".lock", ""):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_is_one_clear_line(code, tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    told = rf"Cannot lock '.*lock': {os.strerror(code)}\. Choose a folder on another disk\."
    with pytest.raises(OutputError, match=told), exclusive(tmp_path / "lock", "taken"):
        pass
    with pytest.raises(OutputError, match=told):
        RunFolder.create(tmp_path / "run", {"kind": "deep"})
    assert not (tmp_path / "run" / "config.json").exists()

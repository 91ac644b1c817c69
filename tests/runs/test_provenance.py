import shutil
import subprocess
import sys

import numpy as np
import pytest

from ebql.runs import peak_memory, provenance
from ebql.runs.provenance import commit


def test_the_peak_of_memory_is_in_bytes_and_never_falls():
    before = peak_memory()["peak_memory_bytes"]
    block = np.ones(100 << 20, np.uint8)
    after = peak_memory()["peak_memory_bytes"]
    assert 10 << 20 < before <= after
    assert after > block.nbytes


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Pretend that the package lies in another folder; return the path of the module there."""
    path = tmp_path / "checkout" / "src" / "ebql" / "runs" / "provenance.py"
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    # By its name, `ebql.runs.provenance` is the function.
    monkeypatch.setattr(sys.modules[commit.__module__], "__file__", str(path))
    return path


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_knows_its_commit_and_whether_files_were_changed(module):
    checkout = module.parents[3]

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", *name, *words]
        return subprocess.run(
            command, cwd=checkout, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init")
    assert commit.__wrapped__() is None  # nothing is committed yet
    git("add", ".")
    git("commit", "-m", "first")
    git("tag", "-m", "a tag", "v1")
    expected = git("rev-parse", "HEAD")
    assert commit.__wrapped__() == expected
    module.write_text("x = 2\n")
    assert commit.__wrapped__() == f"{expected}-dirty"


def test_an_installed_package_has_no_commit_even_inside_another_checkout(module, monkeypatch):
    (module.parents[4] / ".git").mkdir()
    monkeypatch.setattr(subprocess, "run", None)  # git must not be called
    assert commit.__wrapped__() is None


def test_a_machine_without_git_has_no_commit(module, monkeypatch):
    (module.parents[3] / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert commit.__wrapped__() is None


def test_results_keep_their_commit():
    assert provenance()["commit"] == commit()

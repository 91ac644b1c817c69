"""numba's disk cache is used when nothing has changed, and only then."""

import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import ebql

LEARN = """
from ebql.environments import chain
from ebql.tabular import QLearning, learn
from ebql.tabular.kernel import run
history = learn(chain(1.0, std=0.0, actions=1), QLearning(), episodes=20, epsilon=1.0, learning_rate=1.0)
print(history.q_values()[0, 0, 0], sum(run.stats.cache_hits.values()))
"""
SMALL = """
import numpy as np
from ebql.tabular.rules import maxmin
print(maxmin(np.array([[1.0, 5.0], [2.0, 3.0]])))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package without any cache."""
    source = Path(ebql.__file__).parent
    return Path(shutil.copytree(source, tmp_path / "ebql", ignore=shutil.ignore_patterns("__pycache__")))


def output(script, copy, **variables):
    """Run `script` with the copied package in a new process and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_the_cache_notices_a_change_in_a_function_called_from_another_file(copy):
    assert output(LEARN, copy) == ["1.0", "0"]
    assert output(LEARN, copy) == ["1.0", "1"]
    rules = copy / "tabular" / "rules.py"
    before = "return float(q[member].max())"
    assert before in rules.read_text()
    rules.write_text(rules.read_text().replace(before, f"{before} + 100.0"))
    assert output(LEARN, copy) == ["101.0", "0"]


def test_the_cache_notices_a_change_in_a_module_that_holds_no_compiled_function(copy):
    """The numbers of `Turn` and the fields of `Memory` are compiled into the kernel."""

    def kernel_hash():
        spec = spec_from_file_location("copied", copy / "compiled.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module._sources_hash(copy / "tabular" / "kernel.py")

    before = kernel_hash()
    assert kernel_hash() == before
    for module in ("tabular/agents.py", "tabular/memory.py", "environments/exact/mdp.py", "errors.py"):
        with (copy / module).open("a") as file:
            file.write("# changed\n")
        assert kernel_hash() != before
        before = kernel_hash()
    (copy / "runs" / "files.py").write_text("# not imported by the kernel\n")
    assert kernel_hash() == before


def test_where_the_package_is_read_only_the_cache_is_the_users(copy, tmp_path):
    (copy / "tabular" / "__pycache__").write_text("in the way of a folder")
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    assert output(SMALL, copy, **home) == ["3.0"]
    assert list((tmp_path / "home").rglob("rules.maxmin*.nbi"))


def test_where_no_cache_can_be_written_functions_are_compiled_in_memory(copy, tmp_path):
    (copy / "tabular" / "__pycache__").write_text("in the way of a folder")
    (tmp_path / "home").write_text("in the way of a folder")
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    assert output(SMALL, copy, **home) == ["3.0"]

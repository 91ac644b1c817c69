"""Commands that use compiled kernels say so when these must be compiled first."""

import os
import subprocess
import sys

import numba
import pytest

from ebql.cli import main

LINE = "compiling once (up to some 20 s); later runs start at once\n"
STUDY = """
floor = "tabular"
agents = ["q-learning", "ebql"]
environments = ["ebql/MetaChain-v0"]
seeds = 3
episodes = 5
"""


def compile_something():
    assert numba.njit(lambda x: x + 1)(1) == 2


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    # What these commands compute, in place of which something is compiled.
    for computed in (
        "ebql.report.paper.family.FamilyStudy.make",
        "ebql.report.paper.reproduction.Reproduction.make",
    ):
        monkeypatch.setattr(computed, lambda *_, **__: compile_something() or [])
    monkeypatch.setattr("ebql.studies.costs._trial_of_tables", lambda _: compile_something() or 1.0)
    monkeypatch.setattr("ebql.studies.tables.runs.compile_tables", lambda _: compile_something())


@pytest.mark.parametrize(
    "words",
    ["family --out out", "reproduce fig3 --out out", "sweep study.toml --dry-run", "sweep study.toml"],
)
def test_a_command_that_compiles_says_so_once(words, study, capsys):
    assert main(words.split()) == 0
    assert capsys.readouterr().err.count(LINE) == 1


def test_a_sweep_compiles_before_its_processes_do_and_only_the_first_one(tmp_path):
    """In processes of their own, with a cache of their own: nothing is compiled at first."""
    (tmp_path / "study.toml").write_text(STUDY)
    cache = tmp_path / "cache"
    code = "import sys; from ebql.cli import main; sys.exit(main(sys.argv[1:]))"

    def told(out):
        command = [sys.executable, "-c", code, "sweep", "study.toml", "--out", out]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
        return done.stderr.decode()

    first = told("first")
    runs = first.index("MetaChain")  # a short run may be done before it is ever seen running
    assert first.index(LINE) < runs
    assert first.count(LINE) == 1
    assert len(list(cache.rglob("kernel.run-*.nbc"))) == 1  # what was compiled is what the runs needed
    assert LINE not in told("second")

"""The wheel alone, in an empty environment: what someone has after `pip install ebql`."""

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.package

ROOT = Path(__file__).parent.parent.parent
TABLE = """
from ebql.environments import meta_chain
from ebql.tabular import EBQL, learn
print(learn(meta_chain(), EBQL(ensemble_size=5), episodes=50, seeds=2).q_values().shape)
"""


class Installed:
    """An environment that holds the wheel and what it requires, and nothing else."""

    def __init__(self, folder):
        venv.create(folder, with_pip=True)
        self.bin = folder / ("Scripts" if sys.platform == "win32" else "bin")
        self.folder = folder

    def run(self, *words):
        """Run a program of the environment, outside of the repository, and return what it did."""
        return subprocess.run(
            [self.bin / words[0], *words[1:]], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def pip(self, *words):
        done = self.run(
            "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *words
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    wheels = sorted((ROOT / "dist").glob("ebql-*.whl"))
    assert len(wheels) == 1, "make package builds the wheel first"
    environment = Installed(tmp_path_factory.mktemp("empty"))
    environment.pip(wheels[0])
    return environment


def test_the_help_and_the_version(installed):
    done = installed.run("ebql", "--help")
    assert done.returncode == 0, done.stderr
    assert "best-k" in done.stdout
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)[1]
    assert installed.run("ebql", "--version").stdout == f"ebql {version}\n"


def test_the_description_has_no_link_that_pypi_cannot_follow(installed):
    told = installed.run("python", "-c", "from importlib.metadata import metadata; print(metadata('ebql'))")
    assert "Ensemble Bootstrapped Q-Learning" in told.stdout
    assert "source distribution" in told.stdout
    assert re.findall(r"\]\((?!https?:)", told.stdout) == []


def test_the_statistics(installed):
    done = installed.run("ebql", "best-k", "--means", "1", "0.8", "0.5", "--stds", "0.5")
    assert done.returncode == 0, done.stderr
    assert "Use: single (least RMSE)." in done.stdout


def test_a_table(installed):
    done = installed.run("python", "-c", TABLE)
    assert done.stdout == "(2, 24, 10)\n", done.stderr


def test_a_missing_extra_is_named_by_a_command_that_works(installed):
    done = installed.run("ebql", "lab", "--no-open")
    assert done.returncode == 2
    (extra,) = re.findall(r'pip install "(ebql\[\w+\])"', " ".join(done.stderr.split()))
    installed.pip(extra)  # of the package that is installed: an index need not know it
    assert installed.run("python", "-c", "import starlette, uvicorn, ebql.lab.app").returncode == 0


def test_networks_say_what_they_need(installed):
    done = installed.run("ebql", "train", "CartPole-v1")
    assert done.returncode == 2
    assert 'pip install "ebql[deep]"' in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_the_kept_results(installed):
    done = installed.run("python", "-c", "import ebql; print(len(ebql.results('minatar')['step']) > 0)")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr

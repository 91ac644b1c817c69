"""Our statistics beside rliable's: estimates equal, intervals as close as two bootstraps can be.

`make rliable` builds the environment that rliable needs, and runs these; `make test` includes them.
"""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ebql.analysis import statistics
from ebql.analysis.comparisons import performance_profile, probability_of_improvement

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-rliable" / "bin" / "python"
REPLICATES = 1_000
THRESHOLDS = [0.0, 0.5, 1.0, 1.5]


def some_matrices():
    """Return matrices (runs, tasks) of several shapes, but of as many tasks; one is full of ties."""
    rng = np.random.default_rng(0)
    return [
        rng.normal(1.0, 1.0, size=(5, 4)),
        rng.gamma(1.0, 1.0, size=(11, 4)),
        rng.integers(0, 3, size=(7, 4)).astype(float),
    ]


@pytest.fixture(scope="module")
def answers():
    if not PYTHON.exists():
        pytest.skip("rliable needs an environment of its own: make rliable")
    matrices = [matrix.tolist() for matrix in some_matrices()]
    asked = json.dumps({"matrices": matrices, "thresholds": THRESHOLDS, "replicates": REPLICATES})
    done = subprocess.run(
        [PYTHON, HERE / "reference.py"], input=asked, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compare(ours, theirs, matrix):
    assert ours[0] == pytest.approx(theirs[0], abs=1e-12)
    # The 2.5% quantile of 1,000 normal replicates has a standard error of 0.02 widths of the interval;
    # that of scores that tie may fall on the next multiple of one run, of the half that an IQM keeps.
    tied = len(np.unique(matrix)) < matrix.size
    close = max(0.08 * (theirs[2] - theirs[1]), 2 / matrix.size if tied else 0)
    assert ours[1:] == pytest.approx(theirs[1:], abs=close + 1e-12)


@pytest.mark.parametrize("name", ["iqm", "mean", "median", "optimality_gap"])
def test_aggregates(name, answers):
    for matrix, answer in zip(some_matrices(), answers, strict=True):
        ours = statistics.estimate(list(matrix.T), getattr(statistics, name), replicates=20_000)
        compare(tuple(ours), answer[name], matrix)


def test_probability_of_improvement(answers):
    matrices = some_matrices()
    for matrix, other, answer in zip(matrices, [*matrices[1:], matrices[0]], answers, strict=True):
        ours = probability_of_improvement(list(matrix.T), list(other.T), replicates=20_000)
        compare(tuple(ours), answer["improvement"], matrix)


def test_profiles(answers):
    for matrix, answer in zip(some_matrices(), answers, strict=True):
        _, *ours = performance_profile(list(matrix.T), THRESHOLDS, replicates=20_000)
        assert ours[0] == pytest.approx(answer["profile"][0], abs=1e-12)
        # A share is a multiple of one run: a quantile may fall on the next one.
        assert ours[1:] == pytest.approx(np.array(answer["profile"][1:]), abs=1 / matrix.size + 1e-12)

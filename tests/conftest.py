"""Fixtures that tests of several rooms share."""

import json
import os
import signal
import threading

import pytest

from ebql.cli import main
from ebql.deep.config.presets import PRESETS
from ebql.runs import MetricsLog, RunFolder, read_metrics


def pytest_configure() -> None:
    # Clusters get a token of the tests' own: Ray would else keep one in the home folder. It looks for this
    # when it is first imported, wherever that is.
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0123456789abcdef" * 4)
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # clusters of tests listen on loopback alone
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Whoever runs the tests in the background of a shell ignores Ctrl-C, and so would every process here.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def refused(capsys):
    """Give a command that must be refused, with exit code 2 and one line alone; return that line."""

    def run(arguments):
        capsys.readouterr()  # what was told before
        assert main(arguments) == 2
        told = capsys.readouterr()
        assert told.err.count("\n") == 1
        assert not told.out
        return told.err

    return run


@pytest.fixture
def write_run(tmp_path):
    """Write run folders as training would leave them, without training."""

    def write(
        name,
        returns,
        *,
        agent="dqn",
        label=None,
        seed=0,
        period=10,
        steps=30,
        biases=None,
        environment="W-v0",
        **more,
    ):
        options = {"seed": seed, "evaluation_period": period, **more}
        about = {"kind": "deep", "label": label, "agent": agent, "environment": environment}
        about |= {"steps": steps, "options": options}
        folder = RunFolder.create(tmp_path / name, about, command=[])
        with folder.metrics(0) as log:
            for i, value in enumerate(returns):
                step = (i + 1) * period
                log.append({"step": step, "loss": 0.5})
                log.append({"step": step, "evaluation/return": value, "bias/mean": (biases or returns)[i]})
        return tmp_path / name

    return write


@pytest.fixture
def edit_log():
    """Replace text in a log's records as if the run had written them so, with seals that fit."""

    def edit(path, old, new):
        records = [json.dumps(record).replace(old, new) for record in read_metrics(path)]
        with MetricsLog(path, 0) as log:
            for record in records:
                log.append(json.loads(record))

    return edit


@pytest.fixture
def paper_preset(monkeypatch):
    """Pin what the paper's Atari preset says, so that departures from it can be counted by hand."""
    monkeypatch.setitem(PRESETS, "atari-paper", {"learning_rate": 2.5e-4, "hidden": (512,)})

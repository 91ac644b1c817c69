"""Run folders as training would leave them, without training."""

import pytest

from ebql.runs import RunFolder


@pytest.fixture
def write_run(tmp_path):
    def write(
        name, returns, *, agent="dqn", seed=0, period=10, steps=30, biases=None, environment="W-v0", **more
    ):
        options = {"seed": seed, "evaluation_period": period, **more}
        about = {"agent": agent, "environment": environment, "steps": steps, "options": options}
        folder = RunFolder.create(tmp_path / name, about, command=[])
        with folder.metrics(0) as log:
            for i, value in enumerate(returns):
                step = (i + 1) * period
                log.append({"step": step, "loss": 0.5})
                log.append({"step": step, "evaluation/return": value, "bias/mean": (biases or returns)[i]})
        return tmp_path / name

    return write

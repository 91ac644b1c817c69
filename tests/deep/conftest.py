"""Options with which a run takes a second, and layers that count as large."""

import pytest
import torch

from ebql.deep.fast import dense

# The tests' networks are tiny and their workers many: more threads only wait for each other.
torch.set_num_threads(1)

SMALL = {
    "preset": "plain",
    "hidden": (16, 16),
    "learning_starts": 50,
    "replay_size": 500,
    "batch_size": 16,
    "target_period": 40,
    "epsilon_steps": 200,
    "evaluation_period": 0,
    "log_period": 100,
    "checkpoint_period": 100,
}


@pytest.fixture
def small():
    return dict(SMALL)


@pytest.fixture
def large(monkeypatch):
    """Return a function that makes a layer or network whose layers count as large and products as wide."""
    monkeypatch.setattr(dense, "WIDE", 1)

    def make(kind, *arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(dense, "LARGE", 1)
            return kind(*arguments, torch.Generator().manual_seed(0), **options)

    return make

"""Options that make a run take a second."""

import pytest
import torch

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

"""Studies that take seconds."""

import pytest

from ebql.studies.definition import read_study

_SMALL = """
environments = ["ebql/ProbeOneStep-v0"]
preset = "plain"
hidden = [8]
learning_starts = 20
replay_size = 500
log_period = 50
checkpoint_period = 50
evaluation = { period = 100, episodes = 2 }
"""


@pytest.fixture
def small_study(tmp_path):
    """Write a study of small runs with this first part (agents, seeds, steps) and these tables; read it."""

    def write(head, tables=""):
        path = tmp_path / "study.toml"
        path.write_text(head + _SMALL + tables)
        return read_study(path)

    return write

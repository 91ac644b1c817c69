"""Shares of lines run are counted by part of the package and by file."""

import pytest

from coverage_of_parts import shares


def test_parts_add_their_files():
    def file(run, statements):
        return {"summary": {"covered_lines": run, "num_statements": statements}}

    measured = {
        "src/ebql/deep/agent.py": file(90, 100),
        "src/ebql/deep/fast/dense.py": file(0, 100),
        "/venv/lib/ebql/errors.py": file(20, 20),
        "src/ebql/runs/__init__.py": file(0, 0),
    }
    parts, files = shares(measured)
    assert parts == {"all": pytest.approx(110 / 220), "deep": 0.45, "errors.py": 1.0, "runs": 1.0}
    assert files["deep/fast/dense.py"] == 0.0
    assert files["deep/agent.py"] == 0.9

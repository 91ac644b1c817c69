"""The README's Python runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=["statistics", "tables", "networks"])
def test_each_block_runs(block):
    if "from ebql import" in block:
        pytest.importorskip("torch")
    names = {"observation": np.zeros(4, dtype=np.float32)}
    exec(block.replace("50_000", "1_500"), names)
    if "history" in names:
        assert names["values"].shape == (2, 16, 4)


def test_every_folder_of_the_results_table_is_there():
    results = Path(__file__).parent.parent / "results"
    folders = re.findall(r"^\| `(.*?)/` \|", (results / "README.md").read_text(), flags=re.M)
    assert "family/minatar-splits" in folders
    assert [folder for folder in folders if not any((results / folder).iterdir())] == []

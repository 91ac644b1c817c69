"""The README's code runs as it stands: with the variables that it shows, and no others."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)
MOST_BYTES = 1_000_000


@pytest.mark.parametrize("block", BLOCKS, ids=["statistics", "tables", "networks"])
def test_each_block_runs(block):
    if "from ebql import" in block:
        pytest.importorskip("torch")
    names = {}
    exec(block.replace("50_000", "1_500"), names)
    if "history" in names:
        assert names["values"].shape == (2, 16, 4)
    if "agent" in names:
        assert names["action"] in (0, 1)
        assert names["bias"].states > 0


def test_each_make_target_exists():
    (commands,) = re.findall(r"^```\n(make .*?)```", README, flags=re.M | re.S)
    targets = re.findall(r"^make (\S+)", commands, flags=re.M)
    assert targets == ["reproduce", "test"]
    for target in targets:
        assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_each_link_leads_to_a_file():
    links = re.findall(r"\]\(([^)#:]+)[^)]*\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_pictures_are_small():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert pictures
    assert all((ROOT / picture).stat().st_size < MOST_BYTES for picture in pictures)


def test_every_folder_of_the_results_table_is_there():
    results = ROOT / "results"
    folders = re.findall(r"^\| `(.*?)/` \|", (results / "README.md").read_text(encoding="utf-8"), flags=re.M)
    assert "family/minatar-splits" in folders
    assert [folder for folder in folders if not any((results / folder).iterdir())] == []

"""What holds for the repository as a whole: its version, its extras, the names of its files."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Windows refuses these characters, and these names with any ending.
ILLEGAL = re.compile(r'[<>:"|?*\\\x00-\x1f]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', flags=re.I)


def test_the_citation_and_the_changelog_are_of_this_version():
    version = re.escape(PROJECT["version"])
    assert re.search(rf"^version: {version}$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert re.search(rf"^## {version}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def test_every_extra_that_a_message_names_exists():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = {extra for found in re.findall(r"ebql\[([\w,-]+)\]", text) for extra in found.split(",")}
    assert {"deep", "lab"} <= named <= set(PROJECT["optional-dependencies"])


def test_file_names_are_legal_on_windows():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = listed.decode().rstrip("\0").split("\0")
    assert len(names) > 100
    assert [name for name in names if any(ILLEGAL.search(part) for part in name.split("/"))] == []
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize("name", ["a:b", "aux.py", "what?.md", "ends with a dot."])
def test_illegal_names_are_noticed(name):
    assert ILLEGAL.search(name)

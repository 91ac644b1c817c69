"""The files, classes and functions that the documents for developers name exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = ["docs/architecture.md", "docs/bias.md", "CONTRIBUTING.md", "README.md"]


def quoted(document):
    """Return what stands in backticks, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", (ROOT / document).read_text(), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", text)


@cache
def defined():
    """Return the names of all functions, classes and `Class.method`s or `Class.field`s of the package."""
    names = set()
    for path in (ROOT / "src/ebql").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef):
                        names.add(f"{node.name}.{part.name}")
                    elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        names.add(f"{node.name}.{part.target.id}")
    return names


def missing(words):
    for word in words:
        if re.fullmatch(r"[\w./-]+(\.(py|md|toml|txt)|/)", word) and "/" in word:
            if not any((ROOT / base / word).exists() for base in ("", "src/ebql", "tests")):
                yield word
        elif re.fullmatch(r"[a-z_]\w*\(\)|[A-Z]\w+\.\w+", word) and word.removesuffix("()") not in defined():
            yield word


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_named_exists(document):
    words = quoted(document)
    assert list(missing(words)) == []
    assert any(word.endswith(".py") for word in words)


def test_a_name_that_is_gone_is_noticed():
    words = [
        "deep/trainer.py",
        "deep/gone.py",
        "gone/",
        "Training.advance",
        "Training.gone",
        "run()",
        "gone()",
    ]
    assert list(missing(words)) == ["deep/gone.py", "gone/", "Training.gone", "gone()"]

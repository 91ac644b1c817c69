"""The files, classes and functions that the documents for developers name exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = ["docs/architecture.md", "docs/bias.md", "CONTRIBUTING.md", "README.md"]


def prose(document):
    """Return the text outside of blocks of code."""
    return re.sub(r"^```.*?^```", "", (ROOT / document).read_text(), flags=re.M | re.S)


def quoted(document):
    """Return what stands in backticks."""
    return re.findall(r"`([^`\n]+)`", prose(document))


def placed(text):
    """Return the names of which the text says in which file they are: (name, file)."""
    return re.findall(r"`([\w.]+)(?:\(\))?`,?\s+in\s+`([\w/]+\.py)`", text)


@cache
def defined(where="."):
    """Return the names of functions, classes, `Class.method`s and `Class.field`s in a file or folder."""
    names = set()
    place = ROOT / "src/ebql" / where
    for path in [place] if place.is_file() else place.rglob("*.py"):
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


def test_what_is_named_is_where_the_document_says():
    for document in DOCUMENTS:
        for name, file in placed(prose(document)):
            if name.isupper():  # a table such as RULES
                assert f"\n{name}" in (ROOT / "src/ebql" / file).read_text(), (document, name, file)
            else:
                assert name in defined(file), (document, name, file)
    assert len(placed(prose("docs/architecture.md"))) > 30
    assert placed("`Training.gone` in\n`deep/training/trainer.py`, `run()` in `a.py`, and `x` in `b/`") == [
        ("Training.gone", "deep/training/trainer.py"),
        ("run", "a.py"),
    ]


def test_a_name_that_is_gone_is_noticed():
    words = [
        "deep/training/trainer.py",
        "deep/gone.py",
        "gone/",
        "Training.advance",
        "Training.gone",
        "run()",
        "gone()",
    ]
    assert list(missing(words)) == ["deep/gone.py", "gone/", "Training.gone", "gone()"]

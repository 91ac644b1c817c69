"""A plugin of pytest that notes which statements of the package the tests run.

PYTEST_PLUGINS=tools.statement_coverage python -m pytest (xdist would load it too late with `-p`)

A tracer slows down all Python code, that of the libraries too: with coverage.py on Python 3.11, tests that
train agents took 1.6 times as long. Here only the package is changed, as it is imported: `__ran__[i] = 1` is
put before statement i. The counts go to `.coverage.json`, in coverage.py's format, for
`tools/coverage_of_parts.py`. Processes that the tests start are not counted.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

PACKAGE = "ebql"
RAN: dict[str, bytearray] = {}
"""For each file of the package that was imported, a 1 for each of its statements that was run."""

# Numba compiles these, and knows no marks. tests/tabular holds them to tabular/reference.py instead.
_COMPILED = {"compiled", "inlined", "reordered"}


def statements(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """Yield each statement that counts, with the list that holds it, in a fixed order."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for node in list(getattr(tree, name, ())):
            if isinstance(node, ast.stmt):
                if _is_left_out(node):
                    continue
                if not _is_silent(node):
                    yield getattr(tree, name), node
            yield from statements(node)


def _is_left_out(node: ast.stmt) -> bool:
    """Whether the statement and all below it are left out: compiled functions, imports for types."""
    if isinstance(node, ast.FunctionDef):
        return any(isinstance(made, ast.Name) and made.id in _COMPILED for made in node.decorator_list)
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_silent(node: ast.stmt) -> bool:
    """Whether the statement does nothing when it is run: docstrings, `...`, declarations."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Global | ast.Nonlocal) or (
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
    )


def marked(source: bytes, path: str) -> tuple[CodeType, int]:
    """Compile `source` with a mark before each statement that counts; return also how many these are."""
    tree = ast.parse(source, path)
    found = list(statements(tree))
    for i, (body, node) in enumerate(found):
        (mark,) = ast.parse(f"__ran__[{i}] = 1").body
        for part in ast.walk(mark):
            ast.copy_location(part, node)
        body.insert(next(place for place, other in enumerate(body) if other is node), mark)
    return compile(tree, path, "exec", dont_inherit=True), len(found)


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """Run the module with marks; files of bytecode, which have none, are neither read nor written."""
        code, count = marked(self.get_data(self.path), self.path)
        module.__dict__["__ran__"] = RAN.setdefault(self.path, bytearray(count))
        exec(code, module.__dict__)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def merge(ran: Mapping[str, bytes]) -> None:
    """Add what another process has run."""
    for path, marks in ran.items():
        own = RAN.setdefault(path, bytearray(len(marks)))
        own[:] = bytes(a | b for a, b in zip(own, marks, strict=True))


def summary(root: Path) -> dict[str, Any]:
    """Return the statements run and all of them, for each file below `root`, imported or not."""
    files = {}
    for path in sorted(root.rglob("*.py")):
        count = sum(1 for _ in statements(ast.parse(path.read_bytes())))
        run = sum(RAN.get(str(path), b""))
        files[str(path)] = {"summary": {"covered_lines": run, "num_statements": count}}
    return {"files": files}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Begin to mark, before a conftest.py imports the package."""
    if PACKAGE in sys.modules:
        raise pytest.UsageError(f"{PACKAGE} was imported before its statements could be marked.")
    sys.meta_path.insert(0, _Finder())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what was run to the process that gave out the tests, or write it down."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ran"] = {path: bytes(marks) for path, marks in RAN.items()}
    elif (package := find_spec(PACKAGE)) is not None and package.origin:
        counts = summary(Path(package.origin).parent)
        (session.config.rootpath / ".coverage.json").write_text(json.dumps(counts), encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of xdist has run; one that crashed has told nothing."""
    merge(getattr(node, "workeroutput", {}).get("ran", {}))

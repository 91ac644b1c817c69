"""Marks tell which statements were run, and change nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

from statement_coverage import marked

ROOT = Path(__file__).parents[2]

SOURCE = '''"""What it is."""
from __future__ import annotations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nowhere

def compiled(function):
    return function

@compiled
def kernel(x):
    return x

class Kind:
    """A kind."""
    __secret = 1

    def meet(self, x):
        """Meet x."""
        if x == 0:
            return "none"
        elif x == 1:
            told = "one"
        else:
            told = "many"
        try:
            1 / (x - 1)
        except ZeroDivisionError:
            told += "!"
        finally:
            told += "."
        match x:
            case 1:
                return told
            case _:
                pass
        with open("/dev/null"):
            for _ in ():
                ...
            else:
                return self.__secret
'''


def lines_run(*values):
    """Return the lines of the statements that were run, what the calls returned, and the module."""
    code, count = marked(SOURCE.encode(), "kind.py")
    module = {"__ran__": bytearray(count), "__name__": "kind"}
    exec(code, module)
    returned = [module["Kind"]().meet(value) for value in values]
    lines = [number for number, line in enumerate(SOURCE.splitlines(), 1) if counts(line.strip())]
    assert len(lines) == count
    return [line for line, ran in zip(lines, module["__ran__"], strict=True) if ran], returned, module


def counts(line):
    """Whether a line of `SOURCE` begins a statement that counts; `elif` does, `else` and `case` do not."""
    silent = ('"""', "from __future__", "else:", "except", "finally", "case", "...", "@", "import nowhere")
    return (
        bool(line)
        and not line.startswith(silent)
        and line not in ("if TYPE_CHECKING:", "def kernel(x):", "return x")
    )


def test_exactly_what_was_run_is_marked():
    ran, _, module = lines_run()
    assert ran == [3, 8, 9, 15, 17, 19]
    assert module["__doc__"] == "What it is."
    assert module["Kind"].meet.__doc__ == "Meet x."
    assert module["Kind"].meet.__code__.co_firstlineno == 19
    assert "__ran__" not in module["kernel"].__code__.co_names
    assert lines_run(0)[:2] == ([3, 8, 9, 15, 17, 19, 21, 22], ["none"])
    assert lines_run(1)[:2] == ([3, 8, 9, 15, 17, 19, 21, 23, 24, 27, 28, 30, 32, 33, 35], ["one!."])


def test_all_but_the_empty_loop_can_be_run():
    ran, returned, _ = lines_run(0, 1, 2)
    assert returned == ["none", "one!.", 1]
    assert ran == [3, 8, 9, 15, 17, 19, 21, 22, 23, 24, 26, 27, 28, 30, 32, 33, 35, 37, 38, 39, 42]


def test_what_several_processes_run_is_added_up(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text("import ebql.errors\n")
    for name in ("catalogue", "typed"):
        (tmp_path / f"test_{name}.py").write_text(f"def test_it():\n    import ebql.{name}\n")
    command = [sys.executable, "-m", "pytest", "-n", "2", "-c", tmp_path / "pytest.ini", tmp_path]
    environment = {**os.environ, "PYTEST_PLUGINS": "tools.statement_coverage"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    files = json.loads((tmp_path / ".coverage.json").read_text())["files"]
    summaries = {path.rpartition("ebql/")[2]: about["summary"] for path, about in files.items()}
    for name in ("errors", "catalogue", "typed"):
        assert summaries[f"{name}.py"]["covered_lines"] > 5
    assert summaries["typed.py"]["covered_lines"] < summaries["typed.py"]["num_statements"]
    assert summaries["deep/agent.py"]["covered_lines"] == 0
    assert summaries["deep/agent.py"]["num_statements"] > 100

import io
import warnings

import pytest
from rich.table import Table

from ebql.cli import main
from ebql.terminal.console import Console, visible

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eback"


def test_control_characters_are_written_out():
    assert visible(HOSTILE) == r"\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eback"
    assert visible("γ → ‘fine’\n\ttoo") == "γ → ‘fine’\n\ttoo"


def test_neither_text_nor_tables_control_the_terminal():
    told = io.StringIO()
    console = Console(file=told, force_terminal=True, width=200)
    table = Table("a")
    table.add_row(HOSTILE)
    for shown in (HOSTILE, table):
        console.print(shown, markup=False, highlight=False)
    assert told.getvalue().count(r"\x1b]0;owned\x07") == 2
    assert not set("\x07\x9b\u202e") & set(told.getvalue())
    assert "\x1b]0" not in told.getvalue()


@pytest.mark.parametrize(
    "words", ["evaluate {}", "resume {}", "report {}", "sweep {}", "watch {}", "curves {}"]
)
def test_a_name_that_is_too_long_is_one_line(refused, words):
    assert "File name too long" in refused(words.format("x" * 5000).split())


def test_warnings_are_one_line(tmp_path, capsys):
    (tmp_path / "attempts.jsonl").write_text("{}\n")
    folder = tmp_path / "runs" / "ebql-ProbeOneStep-v0_dqn_0"
    folder.mkdir(parents=True)
    (folder / "attempts.jsonl").write_text('{"event": "failed"}\n')
    text = 'agents = ["dqn"]\nenvironments = ["ebql/ProbeOneStep-v0"]\nseeds = 1\nsteps = 9\n'
    (tmp_path / "study.toml").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # as outside of tests
        assert main(["sweep", "--status", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("warning: ")
    assert told.err.count("\n") == 1
    assert "queued" in told.out

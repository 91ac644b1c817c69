import os
import subprocess
import sys

import pytest

from ebql import __version__
from ebql.cli import main
from ebql.cli.main import COMMANDS
from ebql.cli.parsing import unframed


@pytest.mark.parametrize("arguments", [["--help"], []], ids=["help", "bare"])
def test_help_lists_every_command(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "fig9"], "Unknown figure 'fig9'"),
        (["reproduce", "--seeds", "4"], "at least 5"),
        (["reproduce", "--out", "/dev/null/x"], "Cannot write to the folder"),
        (["reprodcue"], "Unknown command 'reprodcue'. Did you mean 'reproduce'?"),
        (["reproduce", "--seeds", "many"], "Error parsing --seeds"),
        (["reproduce", "--sedes", "3"], "Perhaps you meant: --seeds"),
        (["train"], "Which environment? For example: ebql train CartPole-v1"),
        (["train", "CartPole-v1", "--steps", "abc"], "Error parsing --steps"),
        (["train", "CartPole-v1", "--agnet", "dqn"], "Perhaps you meant: --agent"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(refused, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "box",
    [
        "╭─ Oh ──────╮\n│ No such   │\n│ thing: x  │\n│ ───────── │\n│ See -h    │\n╰───────────╯\n",
        " Oh        \n --------- \n  No such  \n  thing: x \n  ---------\n  See -h   \n           \n",
        "\x1b[31m╭─ Oh ──────╮\x1b[0m\n│ \x1b[1mNo such\x1b[0m thing: x│\n│ ── │\n│ See -h │\n╰──╯\n",
    ],
    ids=["drawn", "typed", "coloured"],
)
def test_a_framed_box_becomes_one_line(box):
    assert unframed(box) == "No such thing: x. See -h."


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ebql {__version__}\n"


def test_a_file_that_cannot_be_written_is_one_line_too(capsys, tmp_path):
    (tmp_path / "report.html").mkdir()
    assert main(["reproduce", "fig4", "--out", str(tmp_path)]) == 2
    assert "Cannot write" in capsys.readouterr().err


def test_reproduce_prints_verdicts_and_where_to_read(capsys, tmp_path):
    assert main(["reproduce", "fig4", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "holds" in out
    assert "report.html" in out.replace("\n", "")


def test_an_interrupt_is_told_and_has_its_own_exit_code(capsys, monkeypatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "reproduce", interrupted)
    assert main(["reproduce"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--help", "--version", "agents"])
def test_a_reader_that_has_seen_enough_gets_no_traceback(word):
    ebql = "import sys; from ebql.cli import main; sys.exit(main())"
    reader, writer = os.pipe()
    os.close(reader)  # gone before anything is written
    command = [sys.executable, "-c", ebql, word]
    found = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["agents"]])
def test_output_without_greek_letters_gets_question_marks(words):
    ebql = "import sys; from ebql.cli import main; sys.exit(main())"
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", ebql, *words]
    found = subprocess.run(command, capture_output=True, env=ascii_only, check=False)
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"agent" in found.stdout

import os
import subprocess
import sys

import pytest

from ebql import __version__
from ebql.cli import main
from ebql.cli.main import COMMANDS


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)


def test_an_unknown_command_names_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reprodcue"])
    assert stop.value.code == 2
    assert "reproduce" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "fig9"], "Unknown figure 'fig9'"),
        (["reproduce", "--seeds", "1"], "at least 2"),
        (["reproduce", "--out", "/dev/null/x"], "Cannot write to the folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(refused, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


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


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    ebql = "import sys; from ebql.cli import main; sys.exit(main())"
    reader, writer = os.pipe()
    os.close(reader)  # gone before anything is written
    command = [sys.executable, "-c", ebql, "--help"]
    found = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")

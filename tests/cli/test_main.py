import builtins
import errno
import io
import os
import subprocess
import sys
import warnings

import pytest

from ebql import __version__
from ebql.cli import main
from ebql.cli.main import COMMANDS
from ebql.cli.parsing import unframed
from ebql.runs import RunFolder


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["keep"], "ebql keep needs PATH and --out PATH. For help: ebql keep --help"),
        (["keep", "study"], "ebql keep needs --out PATH. For help: ebql keep --help"),
        (["resume"], "ebql resume needs PATH. For help: ebql resume --help"),
    ],
)
def test_missing_arguments_are_named(words, told, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"error: {told}\n"


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ebql {__version__}\n"


def test_the_package_can_be_run_as_a_program(tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "ebql", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run("--version").stdout == f"ebql {__version__}\n"
    assert run("no-such-command").returncode == 2
    pytest.importorskip("torch")
    words = ["train", "CartPole-v1", "--steps", "20", "--evaluation-period", "0", "--out", "run"]
    assert run(*words).returncode == 0
    assert RunFolder.open(tmp_path / "run").config["command"] == f"ebql {' '.join(words)}"


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


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_without_the_colours_of_its_library(capsys, monkeypatch):
    def warning() -> None:
        warnings.warn("\x1b[33mWARN: Out of date.\nUse `v1`.\x1b[0m", stacklevel=1)

    monkeypatch.setitem(COMMANDS, "reproduce", warning)
    assert main(["reproduce"]) == 0
    assert capsys.readouterr().err == "warning: Out of date. Use `v1`.\n"


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


RUN = "kept/study/runs/metachain-v0_q-learning"
STUDY = """
kind = "tabular"
agents = ["q-learning"]
environments = ["ebql/MetaChain-v0"]
seeds = 1
episodes = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study with a run, an agent and a table of samples, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    RunFolder.create(tmp_path / RUN, {"kind": "tabular"})
    (tmp_path / "kept" / "study" / "study.toml").write_text(STUDY)
    (tmp_path / "kept" / "samples.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "kept" / "agent.safetensors").touch()
    return tmp_path / "kept"


def unreadable(folder, patch):
    """Refuse every look into `folder`, as the system does without permission; it refuses root nothing."""

    def refusing(function):
        def call(path=".", *arguments, **more):
            inside = not isinstance(path, int) and os.path.abspath(path).startswith(f"{folder}{os.sep}")
            opens = function not in (os_stat, os_lstat) and os.path.abspath(path) == str(folder)
            if inside or opens:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *arguments, **more)

        return call

    os_stat, os_lstat = os.stat, os.lstat
    for owner, name in (
        *((os, name) for name in ("stat", "lstat", "open", "scandir", "listdir", "mkdir", "unlink")),
        (io, "open"),
        (builtins, "open"),
    ):
        patch.setattr(owner, name, refusing(getattr(owner, name)))


@pytest.mark.parametrize(
    "command",
    [
        f"resume {RUN}",
        f"evaluate {RUN} --episodes 1",
        "evaluate kept/agent.safetensors --episodes 1",
        f"watch {RUN} --out film.gif",
        f"curves {RUN} --out curves",
        "report kept/study",
        "sweep --status kept/study",
        "sweep study.toml --out kept/study",
        "best-k --csv kept/samples.csv",
        "train CartPole-v1 --steps 1 --out kept/new",
    ],
)
def test_a_folder_that_cannot_be_read_is_one_line(command, folder, capsys, monkeypatch):
    capsys.readouterr()
    with monkeypatch.context() as patch:
        unreadable(folder, patch)
        code = main(command.split())
    told = capsys.readouterr().err
    assert code in (1, 2)
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert "Permission denied" in told or "cannot be read" in told


@pytest.mark.parametrize(
    "command",
    [
        "train CartPole-v1 --steps 1 --out {name}",
        "resume {name}",
        "evaluate {name}",
        "curves {name}",
        "report {name}",
        "sweep {name} --out there",
        "sweep study.toml --out {name}",
        "sweep --status {name}",
        "best-k --csv {name}",
    ],
)
def test_a_name_that_is_too_long_is_one_line(command, folder, refused):
    assert "File name too long" in refused(command.format(name="x" * 5_000).split())


@pytest.mark.parametrize("error", [errno.EDQUOT, errno.EIO])
def test_a_disk_that_fails_when_it_is_flushed_is_one_line(error, tmp_path, capsys, monkeypatch):
    def fsync(descriptor):
        raise OSError(error, os.strerror(error))

    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.setattr(os, "fsync", fsync)
    assert main(["sweep", "study.toml", "--out", "study", "--workers", "1"]) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert os.strerror(error) in told
    assert told.count("\n") == 1

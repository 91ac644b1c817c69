import json
import os

import pytest

from ebql.errors import OutputError, RunError, UserError
from ebql.runs import errors_in_one_line, output_folder, write_bytes, write_csv, write_json


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_beside_it(tmp_path, monkeypatch):
    path = write_bytes(tmp_path / "a.txt", b"old")

    def disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="^Cannot write .*a.txt': No space left on device.$") as failure:
        write_bytes(path, b"new")
    assert isinstance(failure.value, UserError)
    assert failure.value.errno == 28
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_csv_rows_keep_their_numbers(tmp_path):
    path = write_csv(tmp_path / "t.csv", ["name", "value"], [("a,b", 0.1 + 0.2), ("c", 3)])
    assert path.read_text() == 'name,value\n"a,b",0.3\nc,3\n'


def test_json_refuses_what_json_cannot_say(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())
    assert json.loads(write_json(tmp_path / "x.json", {"μ": 1}).read_text()) == {"μ": 1}


def test_a_file_in_the_way_of_the_output_folder_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Cannot write to the folder"):
        output_folder(tmp_path / "file" / "below")


def test_an_error_that_nobody_has_explained_becomes_one_line(tmp_path):
    with (
        pytest.raises(RunError, match="^Cannot read or write '.*gone': No such file or directory.$"),
        errors_in_one_line(),
    ):
        (tmp_path / "gone").read_bytes()
    with pytest.raises(OutputError, match="full"), errors_in_one_line():
        raise OutputError(28, "full")
    with pytest.raises(BrokenPipeError), errors_in_one_line():  # the command line has an exit code for it
        raise BrokenPipeError


def test_text_that_a_spreadsheet_would_run_is_quoted(tmp_path):
    rows = [("=1+1", "@x", "+x", "-x", -1.5, -2, "a=b"), ("\tx", "", None, "x", 0.5, 1, "é")]
    text = write_csv(tmp_path / "a.csv", list("abcdefg"), rows).read_text()
    assert text == "a,b,c,d,e,f,g\n'=1+1,'@x,'+x,'-x,-1.5,-2,a=b\n'\tx,,,x,0.5,1,é\n"


def test_text_in_a_table_cannot_control_the_terminal(tmp_path):
    rows = [("\x1b[31mred", "=\x07", "a\u202eb", "é")]
    text = write_csv(tmp_path / "a.csv", list("abcd"), rows).read_text()
    assert text == "a,b,c,d\n\\x1b[31mred,'=\\x07,a\\u202eb,é\n"

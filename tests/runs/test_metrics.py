import pytest

from ebql.errors import InputError
from ebql.runs import (
    DamagedLogWarning,
    LostLogError,
    MetricsLog,
    has_step,
    is_timing,
    last_records,
    read_intact,
    read_log,
    read_metrics,
)


def test_a_resumed_log_ends_byte_for_byte_like_one_never_interrupted(tmp_path):
    records = [{"step": i, "return": i / 3, "loss": None, "note": "γ"} for i in range(20)]
    with MetricsLog(tmp_path / "whole", 0) as log:
        for record in records:
            log.append(record)
    with MetricsLog(tmp_path / "cut", 0) as log:
        for record in records[:12]:
            log.append(record)
            if record["step"] == 8:
                position = log.position()
    with (tmp_path / "cut").open("ab") as file:
        file.write(b'{"step": 12, "retu')  # killed in the middle of a line
    with MetricsLog(tmp_path / "cut", position) as log:
        for record in records[9:]:
            log.append(record)
        assert log.position() == (tmp_path / "whole").stat().st_size
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()
    assert read_metrics(tmp_path / "cut") == records


def test_a_record_can_be_read_as_soon_as_it_is_appended(tmp_path):
    with MetricsLog(tmp_path / "log", 0) as log:
        log.append({"step": 1})
        assert read_metrics(tmp_path / "log") == [{"step": 1}]


def test_half_a_line_at_the_end_is_left_out(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n{"st')
    assert read_metrics(tmp_path / "log") == [{"step": 1}]


def test_a_log_goes_on_after_its_last_whole_line(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n{"st')
    for path in (tmp_path / "log", tmp_path / "new"):
        with MetricsLog.continued(path) as log:
            log.append({"step": 2})
    assert read_metrics(tmp_path / "log") == [{"step": 1}, {"step": 2}]
    assert read_metrics(tmp_path / "new") == [{"step": 2}]


NO_RECORDS = [b"{", b"[1]", b'"\xff"', b"", b'{"step": NaN}', b'{"a": 1}', b'{"step": true}', b"[" * 100_000]


@pytest.mark.parametrize("line", NO_RECORDS, ids=range(len(NO_RECORDS)))
def test_a_line_that_is_no_record_is_refused_where_results_depend_on_it(tmp_path, line):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 2}\n')
    with pytest.raises(InputError, match=r"log' was changed after it was written \(line 2\)\. Undo"):
        read_metrics(tmp_path / "log")
    assert read_metrics(tmp_path / "log", accept_changes=True) == [{"step": 1}, {"step": 2}]


@pytest.mark.parametrize("read", [last_records, lambda path: read_intact(path, has_step)])
def test_elsewhere_it_is_told_once_and_left_out(tmp_path, read):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n[]\n{"step": 2}\n')
    with pytest.warns(DamagedLogWarning, match="1 line cannot be understood"):
        assert read(tmp_path / "log") == [{"step": 1}, {"step": 2}]


ODD_TIMINGS = [{"step": 1}, {"seconds": 1.0}, {"step": 1, "seconds": "2"}, {"step": 1, "seconds": -1}]


@pytest.mark.parametrize("record", ODD_TIMINGS)
def test_an_incomplete_record_of_timing_is_damaged(record):
    assert not is_timing(record)
    assert is_timing({"step": 1, "seconds": 0.5})


def written(path, n_records=6):
    with MetricsLog(path, 0) as log:
        for step in range(n_records):
            log.append({"step": step, "return": step / 3})
        return log.position()


def test_seals_are_not_part_of_the_records(tmp_path):
    written(tmp_path / "log", 2)
    assert read_metrics(tmp_path / "log") == [{"step": 0, "return": 0.0}, {"step": 1, "return": 1 / 3}]
    log = read_log(tmp_path / "log")
    assert (log.sealed, log.wrong) == (True, [])


def test_every_byte_of_a_log_is_guarded(tmp_path):
    position = written(tmp_path / "log")
    content = (tmp_path / "log").read_bytes()
    for i in range(len(content)):
        (tmp_path / "log").write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        assert read_log(tmp_path / "log").wrong or i == len(content) - 1  # half a line at the end is left out
        with pytest.raises(InputError, match="log' was changed after it was written"):
            MetricsLog(tmp_path / "log", position)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda lines: lines[:2] + lines[3:], [3]),  # removed: the next line does not fit the one before
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], [3]),  # repeated
        (lambda lines: [lines[1], lines[0], *lines[2:]], [1, 2, 3]),
        (lambda lines: [*lines[:2], b'{"step": 2, "return": 99.0}', *lines[3:]], [3, 4]),  # without a seal
        (lambda lines: lines[:-1], []),  # the end is guarded by the position in the checkpoint
    ],
)
def test_a_line_must_fit_the_one_before(tmp_path, change, wrong):
    position = written(tmp_path / "log")
    lines = (tmp_path / "log").read_bytes().splitlines()
    (tmp_path / "log").write_bytes(b"".join(line + b"\n" for line in change(lines)))
    assert read_log(tmp_path / "log").changed == wrong
    with pytest.raises(InputError, match="accept_changes=True"):
        MetricsLog(tmp_path / "log", position)


def test_an_accepted_change_stays_visible_and_what_follows_is_sealed(tmp_path):
    written(tmp_path / "log", 3)
    lines = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    (tmp_path / "log").write_bytes(lines[0] + lines[1].replace(b"0.3", b"9.3") + lines[2])
    position = (tmp_path / "log").stat().st_size
    with MetricsLog(tmp_path / "log", position, accept_changes=True) as log:
        assert "(2 lines, the first is line 2)" in log.changed
        log.append({"step": 3})
    assert read_log(tmp_path / "log").changed == [2, 3]


def test_a_log_of_version_0_1_is_read_and_continued_with_seals(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n{"step": 2}\n')
    assert not read_log(tmp_path / "log").sealed
    with MetricsLog(tmp_path / "log", 24) as log:
        log.append({"step": 3})
        log.append({"step": 4})
    assert [record["step"] for record in read_metrics(tmp_path / "log")] == [1, 2, 3, 4]
    content = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(content.replace(b'"step": 2', b'"step": 7'))
    assert read_log(tmp_path / "log").changed == [3]


@pytest.mark.parametrize(
    "lose", [lambda path: path.unlink(), lambda path: path.rename(path.with_name("elsewhere"))]
)
def test_a_log_that_is_deleted_or_moved_while_it_grows_is_noticed(tmp_path, lose):
    with MetricsLog(tmp_path / "log", 0) as log:
        log.append({"step": 1})
        lose(tmp_path / "log")
        with pytest.raises(LostLogError, match="log' was deleted or replaced while the run was writing it"):
            log.append({"step": 2})


def test_a_log_is_never_written_or_read_through_a_link(tmp_path):
    (tmp_path / "outside").write_bytes(b'{"step": 1}\n')
    (tmp_path / "log").symlink_to(tmp_path / "outside")
    for reach in (lambda path: MetricsLog(path, 0), MetricsLog.continued, read_metrics, last_records):
        with pytest.raises(InputError, match="log' is a symbolic link"):
            reach(tmp_path / "log")
    assert (tmp_path / "outside").read_bytes() == b'{"step": 1}\n'


def test_starting_from_zero_drops_everything(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n')
    MetricsLog(tmp_path / "log", 0).close()
    assert read_metrics(tmp_path / "log") == []


def test_a_log_that_has_lost_its_end_is_noticed(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n')
    with pytest.raises(ValueError, match="only 12 bytes, but its checkpoint was saved at 13"):
        MetricsLog(tmp_path / "log", 13)


def test_what_json_cannot_say_is_refused_and_leaves_no_half_line(tmp_path):
    with MetricsLog(tmp_path / "log", 0) as log:
        with pytest.raises(ValueError, match="JSON"):
            log.append({"loss": float("nan")})
        assert log.position() == 0

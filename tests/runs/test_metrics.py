import pytest

from ebql.errors import InputError
from ebql.runs import MetricsLog, last_records, read_metrics


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


@pytest.mark.parametrize("line", [b"{", b"[1]", b'"\xff"', b""])
def test_a_line_that_is_no_record_is_refused(tmp_path, line):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 2}\n')
    for read in (read_metrics, last_records):
        with pytest.raises(InputError, match="log' is damaged: this line is not a record"):
            read(tmp_path / "log")


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

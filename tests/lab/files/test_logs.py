import json

import numpy as np

from ebql.lab.files.logs import GrowingLog


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_each_read_continues_where_the_last_one_ended(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = GrowingLog(path)
    assert log.read(1) == 1.0  # there is no file yet
    path.write_text(lines({"step": 1, "loss": 2.0}, {"step": 1, "bias/method": "exact", "return": None}))
    assert log.read(1) == 1.0
    with path.open("a") as file:
        file.write(lines({"step": 2, "loss": 1.0, "return": 3}) + '{"step": 3, "lo')
    assert log.read(1) < 1.0  # the last line is incomplete
    assert [part.tolist() for part in log.column("loss")] == [[1.0, 2.0], [2.0, 1.0]]
    assert [part.tolist() for part in log.column("return")] == [[2.0], [3.0]]  # None was not measured
    assert log.metrics == ["loss", "return"]
    with path.open("a") as file:
        file.write('ss": 0.5}\n')
    assert log.read(1) == 1.0
    assert log.column("loss")[1].tolist() == [2.0, 1.0, 0.5]
    assert log.damaged == 0


def test_a_log_that_became_shorter_is_read_again(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(lines({"step": 1, "x": 1.0}, {"step": 2, "x": 2.0}))
    log = GrowingLog(path)
    log.read(1)
    path.write_text(lines({"step": 9, "x": 9.0}))
    log.read(1)
    assert [part.tolist() for part in log.column("x")] == [[9.0], [9.0]]


def test_damaged_lines_are_counted_and_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(lines({"step": 1, "x": 1.0}) + "no\n[1]\n" + lines({"x": 5.0}, {"step": 2, "x": 2.0}))
    log = GrowingLog(path)
    log.read(1)
    assert log.column("x")[1].tolist() == [1.0, 2.0]
    assert log.damaged == 3


def test_a_large_log_is_read_in_parts(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"step": {i}, "x": {i}}}\n' for i in range(100_000)))
    log = GrowingLog(path)
    shares = [log.read(0.0)]
    while shares[-1] < 1:
        shares.append(log.read(0.0))
    assert len(shares) > 2
    np.testing.assert_array_equal(log.column("x")[1], np.arange(100_000))

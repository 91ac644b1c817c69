from itertools import count

import pytest

pytest.importorskip("torch")

from ebql.deep.config.presets import PRESETS
from ebql.errors import InputError
from ebql.studies.speed import CHUNK, ROUNDS, WARM_UP, _learner, measure_speed, whole_periods

PROBE = "ebql/ProbeOneStep-v0"


def test_rates_are_steps_over_the_clocks_seconds_and_windows_alternate():
    ticks = count(0.0, 0.5)  # the clock is read twice a piece: each piece of 8 steps takes half a second
    heard = []
    found = measure_speed(
        ["dqn", "ebql"],
        PROBE,
        "plain",
        seconds=8.0,
        progress=lambda name, seconds: heard.append((name, seconds)),
        clock=lambda: next(ticks),
        hidden=(8,),
    )
    assert found == dict.fromkeys(("dqn", "ebql"), (2 * CHUNK, 2 * CHUNK, 2 * CHUNK))
    window = [("dqn", 0.5)] * 2 + [("ebql", 0.5)] * 2  # 8 seconds, four rounds, two agents: one second each
    assert heard == [("dqn", 0.0), ("ebql", 0.0), *window * ROUNDS]


def test_the_median_is_not_led_astray_by_a_slow_window():
    lengths = iter([1.0, 1.0, 100.0, 1.0])
    now = [0.0, False]

    def clock():
        now[1] = not now[1]
        if not now[1]:
            now[0] += next(lengths)
        return now[0]

    found = measure_speed(["dqn"], PROBE, "plain", seconds=4.0, clock=clock, hidden=(8,))["dqn"]
    assert (found.median, found.lowest, found.highest) == (CHUNK, CHUNK / 100, CHUNK)


def test_what_is_timed_learns_and_acts_as_at_the_end_of_a_run():
    records = []
    options = {"hidden": (8,), "envs": 2, "update_period": 1}
    learner = _learner("dqn", PROBE, "classic", options)
    learner.learn(WARM_UP + CHUNK, callback=records.append)
    assert records[-1]["updates"] >= CHUNK
    assert records[-1]["epsilon"] == learner.config.epsilon_end == 0.05
    assert learner.config.batch_size == PRESETS["classic"]["batch_size"]
    assert learner.config.envs == 2
    assert not [record for record in records if "evaluation/return" in record]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time_is_refused(seconds):
    with pytest.raises(InputError, match="seconds must be positive"):
        measure_speed(["dqn"], PROBE, "plain", seconds)


def test_pieces_hold_whole_periods():
    assert [whole_periods(8, period) for period in (1, 2, 4, 8, 16, 256)] == [8, 8, 8, 8, 16, 256]
    assert [whole_periods(100, period) for period in (3, 7, 100)] == [102, 105, 100]


def test_every_window_holds_its_share_of_large_blocks():
    ticks = count(0.0, 1.0)  # a second a piece, so that a window is one piece
    block = {"update_period": 48, "updates_per_period": 3}
    found = measure_speed(
        ["dqn"], PROBE, "plain", seconds=4.0, clock=lambda: next(ticks), hidden=(8,), **block
    )
    assert found["dqn"] == (48, 48, 48)

import numpy as np
import pytest

from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.n_step import NStep
from ebql.deep.replay.ring import Replay, Transitions
from ebql.environments import LaneStep

SPEC = ObservationSpec((2,), "int16")


def rows(numbers, n_masks=0):
    """Transitions whose every column tells their number."""
    numbers = np.asarray(numbers)
    return Transitions(
        observations=np.stack([numbers, -numbers], 1).astype(np.int16),
        actions=numbers,
        rewards=numbers.astype(np.float32) / 2,
        discounts=numbers.astype(np.float32) / 4,
        next_observations=np.stack([numbers + 1, -numbers - 1], 1).astype(np.int16),
        masks=np.ones((len(numbers), n_masks), bool),
    )


@pytest.mark.parametrize("chunk", [1, 3])
def test_the_ring_keeps_the_newest_and_rows_stay_whole(chunk):
    replay = Replay(10, SPEC)
    for start in range(0, 24, chunk):
        replay.add(rows(range(start, start + chunk)))
    assert replay.next_row == 4
    draw = replay.gather(np.random.default_rng(0).integers(0, replay.size, 500))
    assert set(draw.actions) == set(range(14, 24))
    for column, expected in zip(draw, rows(draw.actions), strict=True):
        np.testing.assert_array_equal(column, expected)
    assert draw.observations.dtype == np.int16


def test_rows_are_gathered_as_asked_for():
    replay = Replay(8, SPEC)
    replay.add(rows(range(8)))
    assert replay.gather(np.array([3, 0, 3])).actions.tolist() == [3, 0, 3]


@pytest.mark.parametrize("added", [4, 10, 13])
def test_a_restored_replay_goes_on_as_the_first(added):
    first, second = Replay(10, SPEC), Replay(10, SPEC)
    first.add(rows(range(added)))
    second.restore({name: array.copy() for name, array in first.state().items()})
    for replay in (first, second):
        replay.add(rows([77, 78]))
    assert first.size == second.size
    draws = [replay.gather(np.arange(first.size)) for replay in (first, second)]
    for one, other in zip(*draws, strict=True):
        np.testing.assert_array_equal(one, other)


def push(nstep, time, reward, lane=0, *, terminated=False, ended=False):
    """Step one lane of two; the other one is only reset."""
    valid = np.arange(2) == lane
    times = np.full(2, time)
    taken = LaneStep(
        next_observations=times + 1,
        rewards=np.full(2, 1e9),  # a decoy: the rewards to learn from are given apart
        terminated=np.full(2, terminated),
        truncated=np.full(2, ended),
        valid=valid,
        observations=np.full(2, 10**9),
        episodes=(),
    )
    completed = nstep.push(times, times, np.full(2, reward), taken)
    if completed is None:
        return []
    assert completed.masks.shape == (len(completed.actions), 0)
    return [tuple(float(x) for x in row) for row in zip(*completed[:5], strict=True)]


def test_one_step_is_the_step_itself():
    nstep = NStep(1, 0.5, 2)
    assert push(nstep, 0, 8.0) == [(0, 0, 8.0, 0.5, 1)]
    assert push(nstep, 1, 8.0, terminated=True) == [(1, 1, 8.0, 0.0, 2)]


def test_three_steps_end_short_at_a_termination_and_bootstrap_nothing():
    nstep = NStep(3, 0.5, 2)
    assert push(nstep, 0, 8.0) == []
    assert push(nstep, 1, 4.0) == []
    assert push(nstep, 2, 2.0) == [(0, 0, 8 + 2 + 0.5, 0.125, 3)]
    assert push(nstep, 3, 16.0, terminated=True) == [
        (1, 1, 4 + 1 + 4.0, 0.0, 4),
        (2, 2, 2 + 8.0, 0.0, 4),
        (3, 3, 16.0, 0.0, 4),
    ]
    assert push(nstep, 0, 1.0) == []


def test_truncation_bootstraps_from_the_last_observation_with_what_steps_there_were():
    nstep = NStep(3, 0.5, 2)
    push(nstep, 0, 8.0)
    assert push(nstep, 1, 4.0, ended=True) == [(0, 0, 8 + 2.0, 0.25, 2), (1, 1, 4.0, 0.5, 2)]


def test_lanes_do_not_mix_and_come_back():
    nstep, other = NStep(2, 0.5, 2), NStep(2, 0.5, 2)
    push(nstep, 0, 1.0, lane=0)
    push(nstep, 50, 2.0, lane=1)
    other.restore(nstep.state())
    for accumulator in (nstep, other):
        assert push(accumulator, 51, 4.0, lane=1) == [(50, 50, 4.0, 0.25, 52)]
        assert push(accumulator, 1, 6.0, lane=0) == [(0, 0, 4.0, 0.25, 2)]

import numpy as np
import pytest

from ebql.paper.chains.curves import META_CHAIN, REGIMES, run_learning_curve
from ebql.paper.family import outcomes as module
from ebql.paper.family.adaptive import split_parts
from ebql.paper.family.exploration import EXPLORING
from ebql.paper.family.maps import arms_parts, family_parts
from ebql.paper.family.outcomes import Outcome, Outcomes, Part, core_minutes
from ebql.tabular import EBQL, Group, Maxmin, Metric, QLearning

PART = Part(META_CHAIN, REGIMES[0], EBQL(3))
ALL = {*family_parts(), *arms_parts(), *split_parts(), *(exploring.part for exploring in EXPLORING)}


def outcomes(folder, heard, seeds=5, episodes=60):
    return Outcomes(folder, heard.append, seeds=seeds, episodes=episodes)


def test_an_outcome_is_what_the_learning_curve_says():
    outcome = outcomes(None, []).of([PART])[PART]
    curve = run_learning_curve(*(PART.regime, PART.world, PART.agent), seeds=5, episodes=60, record_every=50)
    np.testing.assert_allclose(outcome.rate, curve.average(Metric.GREEDY_CORRECT), atol=1e-6)
    np.testing.assert_allclose(outcome.bias_max, curve.final(Metric.BIAS_MAX), atol=1e-6)
    np.testing.assert_allclose(outcome.bias_risky, curve.final(Metric.BIAS_RISKY), atol=1e-6)
    negative = curve.final(Metric.BIAS_RISKY, Group.NEGATIVE)
    np.testing.assert_allclose(outcome.bias_risky_negative, negative, atol=1e-6)
    np.testing.assert_allclose(outcome.bias_over_time, curve.over_seeds(Metric.BIAS_MAX).mean, atol=1e-6)
    assert outcome.episodes.tolist() == [50, 60]


def test_finished_parts_are_kept_and_computed_once(tmp_path, monkeypatch):
    heard = []
    first = outcomes(tmp_path, heard).of([PART, PART])[PART]
    assert len(heard) == 2
    monkeypatch.setattr(module, "run_part", lambda *_: pytest.fail("computed again"))
    again = outcomes(tmp_path, heard).of([PART])[PART]
    for name in Outcome._fields:
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    assert outcomes(tmp_path, heard).missing([PART, PART]) == []


@pytest.mark.parametrize("changed", [{"seeds": 6}, {"episodes": 70}])
def test_a_part_with_other_settings_is_computed_again(tmp_path, changed):
    outcomes(tmp_path, []).of([PART])
    other = outcomes(tmp_path, [], **changed)
    assert other.missing([PART, PART]) == [PART]
    assert len(other.of([PART])[PART].rate) == changed.get("seeds", 5)


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:400], lambda data: b"x" + data[1:]])
def test_a_damaged_part_is_computed_again(tmp_path, damage):
    kept = outcomes(tmp_path, [])
    before = kept.of([PART])[PART]
    file = tmp_path / PART.file_name
    file.write_bytes(damage(file.read_bytes()))
    assert kept.missing([PART]) == [PART]
    np.testing.assert_array_equal(kept.of([PART])[PART].rate, before.rate)


def test_no_two_parts_share_a_file_and_every_system_takes_their_names():
    names = {part.file_name.lower() for part in ALL}
    assert len(names) == len(ALL)
    assert all(name.isascii() and not set(name) & set('<>:"/\\|?*') and len(name) < 120 for name in names)


def test_the_estimate_of_the_time_grows_with_seeds_and_parts():
    parts = [PART, Part("2 arms", REGIMES[0], QLearning()), Part("2 arms", REGIMES[1], Maxmin(2))]
    assert core_minutes([], 10, 10) == 0
    assert core_minutes(parts, 10**6, 1000) > 0

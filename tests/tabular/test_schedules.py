import numpy as np
import pytest

from ebql.tabular.schedules import Schedule, as_schedule, inverse_visits, linear


def test_scales_are_constant_or_a_function_of_the_episode():
    assert Schedule(0.3).scales(3).tolist() == [0.3] * 3
    assert Schedule(lambda episode: episode / 4).scales(4).tolist() == [0.0, 0.25, 0.5, 0.75]


def test_a_linear_schedule_stays_at_its_end():
    np.testing.assert_allclose(linear(1.0, 0.5, 2).scales(5), [1.0, 0.75, 0.5, 0.5, 0.5])


def test_numbers_and_functions_become_schedules():
    schedule = inverse_visits(0.5)
    assert (schedule.scale, schedule.power) == (1.0, 0.5)
    assert as_schedule(schedule) is schedule
    assert as_schedule(0.1) == Schedule(0.1)


def test_a_scale_above_one_needs_a_rate_that_falls_with_visits():
    assert Schedule(3.0, power=0.7).scales(1).tolist() == [3.0]
    with pytest.raises(ValueError, match="between 0 and 1"):
        Schedule(3.0).scales(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule(-0.1, power=1.0).scales(1), "between 0 and 1"),
        (lambda: Schedule(float("nan")).scales(1), "between 0 and 1"),
        (lambda: Schedule(lambda episode: 1.0 - episode).scales(3), "between 0 and 1 in every episode"),
        (lambda: Schedule(power=-1.0).scales(1), "power must be at least 0, not -1"),
        (lambda: Schedule(power=float("nan")).scales(1), "power must be at least 0, not nan"),
        (lambda: linear(1.0, 0.0, 0), "at least one episode, not 0"),
    ],
)
def test_bad_rates_are_one_clear_line(make, message):
    with pytest.raises(ValueError, match=message):
        make()

import numpy as np
import pytest

from ebql.lab.files.series import averaged, decimated, smoothed, within


def test_smoothing_averages_neighbours_and_keeps_the_ends():
    values = np.array([0.0, 3.0, 6.0, 9.0, 30.0])
    np.testing.assert_array_equal(smoothed(values, 0.0), values)
    # Half a window of one value: three values in the middle, two at the ends.
    np.testing.assert_allclose(smoothed(values, 0.4), [1.5, 3, 6, 15, 19.5])


def test_decimation_keeps_every_peak_and_both_ends():
    x = np.arange(100_000.0)
    y = np.zeros(100_000)
    y[[31_415, 77_777]] = [5.0, -7.0]
    shown_x, shown_y = decimated(x, y, 200)
    assert len(shown_x) <= 204
    assert (shown_x[0], shown_x[-1]) == (0, 99_999)
    assert (np.diff(shown_x) > 0).all()
    assert shown_y[shown_x == 31_415] == 5.0
    assert shown_y[shown_x == 77_777] == -7.0
    assert decimated(x[:200], y[:200], 200)[0] is not None
    np.testing.assert_array_equal(decimated(x[:200], y[:200], 200)[0], x[:200])


def test_averaging_keeps_the_mean_and_the_last_step():
    x, y = averaged(np.arange(1.0, 13.0), np.arange(12.0), 4)
    assert x.tolist() == [3, 6, 9, 12]
    assert y.tolist() == [1, 4, 7, 10]
    assert y.mean() == pytest.approx(np.arange(12.0).mean())


def test_a_span_has_one_more_point_on_either_side():
    x = np.arange(10.0)
    assert within(x, x, 3.5, 5.0)[0].tolist() == [3, 4, 5, 6]
    assert within(x, x, -5, 99)[0].tolist() == x.tolist()
    assert within(x, x, 8.5, 8.7)[0].tolist() == [8, 9]

import numpy as np

from ebql.lab.files.series import decimated, in_common_bins, smoothed, within


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


def test_bins_are_the_same_for_all_series_and_keep_the_mean():
    x = np.arange(0.0, 13.0)
    long, short, none = in_common_bins([(x, x), (x[:6], x[:6] + 1), (x[:0], x[:0])], 4)
    assert long[0].tolist() == [3, 6, 9, 12]
    assert long[1].tolist() == [1.5, 5, 8, 11]
    assert short[0].tolist() == [3, 6]
    assert short[1].tolist() == [2.5, 5.5]
    assert len(none[0]) == 0
    few = in_common_bins([(x[:3], x[:3]), (x[:4], x[:4])], 4)
    assert few[1][0].tolist() == [0, 1, 2, 3]


def test_a_span_has_one_more_point_on_either_side():
    x = np.arange(10.0)
    assert within(x, x, 3.5, 5.0)[0].tolist() == [3, 4, 5, 6]
    assert within(x, x, -5, 99)[0].tolist() == x.tolist()
    assert within(x, x, 8.5, 8.7)[0].tolist() == [8, 9]

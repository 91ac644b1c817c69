import numpy as np
import pytest

from ebql.errors import InputError
from ebql.estimators.winner import Arms


def test_samples_are_summarised_and_zeros_and_ones_are_rates():
    arms = Arms.from_samples([[1.0, 3.0], [2.0, 4.0, 6.0]], ["old", "new"])
    assert arms.names == ("old", "new")
    assert (list(arms.counts), list(arms.means), arms.binary) == ([2, 3], [2.0, 4.0], False)
    np.testing.assert_allclose(arms.stds, [2**0.5, 2.0])
    np.testing.assert_allclose(arms.errors(), [1.0, 2 / 3**0.5])
    rates = Arms.from_samples([[0, 1, 1, 1], [0, 0, 1, 0]])
    assert rates.binary
    assert (rates.names, list(rates.means)) == (("arm 1", "arm 2"), [0.75, 0.25])


def test_no_error_is_zero():
    rates = Arms.from_successes([9, 9], [0, 9])
    np.testing.assert_allclose(rates.errors(), (0.05 * 0.95 / 9) ** 0.5)  # half a success in 10
    assert (Arms.from_moments([2, 2], [1.0, 1.0], [0.0, 0.0]).errors() > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Arms.from_samples([[1.0, 2.0]]), "at least 2 arms"),
        (lambda: Arms.from_samples([[1.0, 2.0], [3.0]], ["A", "B"]), "Arm 'B' has 1 sample"),
        (lambda: Arms.from_successes([5, 5], [1, 6], ["A", "B"]), "'B' has more successes (6) than samples"),
        (lambda: Arms.from_successes([0, 5], [0, 1]), "must be at least 1"),
        (lambda: Arms.from_moments([5, 5], [1.0, 2.0], [-1.0, 1.0]), "stds must not be negative"),
        (lambda: Arms.from_moments([5, 1], [1.0, 2.0], [1.0, 1.0]), "must be at least 2"),
        (lambda: Arms.from_successes([5, 5], [1, 1], ["A", "A"]), "Two arms are called 'A'"),
        (lambda: Arms.from_successes([5, 5], [1, 1], ["A"]), "one name per arm (2), not 1"),
    ],
)
def test_bad_arms_are_refused(make, message):
    with pytest.raises(InputError) as refusal:
        make()
    assert message in str(refusal.value)


def test_skewness_is_that_of_all_samples_around_their_own_arms():
    # 0, 0, 3 has mean 1 and standard deviation √2: its skewness is (-1 - 1 + 8) / 3 / 2^1.5 = 2^-0.5.
    one = [0.0, 0.0, 3.0]
    assert Arms.from_samples([one, [5.0, 5.0, 5.0]]).skewness == pytest.approx(2**-0.5)
    shifted = [100 + 7 * value for value in one]
    assert Arms.from_samples([one, shifted]).skewness == pytest.approx(2**-0.5)
    assert Arms.from_samples([one, [-value for value in one]]).skewness == pytest.approx(0)
    assert Arms.from_samples([[2.0, 2.0], [3.0, 3.0]]).skewness == 0
    assert Arms.from_moments([5, 5], [1, 2], [1, 1]).skewness is None

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ebql.estimators import double, ensemble, single, weighted_double

DECOY = 99.0  # a value that any wrong choice of arm, member or sample would let in


def whole_samples(k: int):
    """Batches of small integers: means are exact up to one division, and ties do occur."""
    shape = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4).map(lambda size: size * k))
    return shape.flatmap(lambda s: arrays(np.float64, s, elements=st.integers(-50, 50).map(float)))


def test_single_takes_the_largest_mean_and_its_arm():
    estimate = single([[0.0, 2.0], [1.0, 2.0], [-5.0, 6.0]])
    assert (estimate.value, estimate.index) == (1.5, 1)


def test_the_first_member_selects_and_the_others_evaluate():
    # Member means: arm 0 has (3 | 1, 2), arm 1 has (2 | DECOY, DECOY). A swap of the roles returns DECOY
    # or 3; averaging all members returns 2; an evaluator's favourite arm as index returns 1.
    samples = [[3.0, 3.0, 1.0, 1.0, 2.0, 2.0], [2.0, 2.0, DECOY, DECOY, DECOY, DECOY]]
    estimate = ensemble(samples, 3)
    assert estimate.index == 0
    assert estimate.value == 1.5


def test_the_double_estimator_does_not_evaluate_with_its_selector():
    samples = [[DECOY, DECOY, 1.0, 3.0], [0.0, 0.0, -DECOY, -DECOY]]
    assert double(samples).value == 2.0


def test_weighted_double_selects_with_the_first_n_index_samples_only():
    # One sample more for the selector would already prefer arm 1.
    samples = [[5.0, -DECOY, 1.0, 1.0], [4.0, DECOY, 0.0, 0.0]]
    estimate = weighted_double(samples, 1)
    assert estimate.index == 0
    assert estimate.value == pytest.approx((-DECOY + 1 + 1) / 3)
    assert weighted_double(samples, 2).index == 1


def test_rotation_lets_every_member_select_with_its_own_index():
    # Member k is column k. Selectors pick arms 0, 1, 1; the evaluators' means at these arms are
    # (2 + 4)/2, (0 + 20)/2 and (0 + 6)/2. Using the last selector's index for all gives another sum.
    samples = [[9.0, 2.0, 4.0], [0.0, 6.0, 20.0]]
    estimate = ensemble(samples, 3, rotate=True)
    np.testing.assert_array_equal(estimate.index, [0, 1, 1])
    assert estimate.value == pytest.approx((3 + 10 + 3) / 3)


def test_uneven_blocks_differ_by_one_sample_and_weigh_the_same():
    # 5 samples in 3 blocks: (0, 1), (2, 3), (4). Evaluators' means 2.5 and 4 weigh the same.
    assert ensemble([[0.0, 1.0, 2.0, 3.0, 4.0]], 3).value == pytest.approx((2.5 + 4) / 2)


def test_unequal_arms_are_each_split_in_their_own_length():
    samples = [[1.0, 1.0, 5.0, 7.0], [0.0, DECOY]]
    estimate = double(samples)
    assert (estimate.value, estimate.index) == (6.0, 0)
    assert single(samples).index == 1
    assert weighted_double(samples, 1).value == pytest.approx(13 / 3)


@given(whole_samples(2))
def test_an_ensemble_of_two_is_the_double_estimator(samples):
    half = samples.shape[-1] // 2
    index = samples[..., :half].mean(axis=-1).argmax(axis=-1)
    value = [row[arm, half:].mean() for row, arm in zip(samples, index, strict=True)]
    for estimate in (ensemble(samples, 2), double(samples)):
        np.testing.assert_array_equal(estimate.index, index)
        np.testing.assert_array_equal(estimate.value, value)


@given(st.integers(2, 6).flatmap(lambda k: st.tuples(st.just(k), whole_samples(k))))
def test_the_proxy_identity(k_and_samples):
    """Proposition 1: an ensemble is a double estimator that gives N / K samples to its selector."""
    k, samples = k_and_samples
    members, split = ensemble(samples, k), weighted_double(samples, samples.shape[-1] // k)
    np.testing.assert_array_equal(members.index, split.index)
    np.testing.assert_allclose(members.value, split.value, rtol=1e-13, atol=1e-13)


@given(whole_samples(3))
def test_a_batch_is_its_rows_one_by_one(samples):
    for estimator in (single, double, lambda s: ensemble(s, 3, rotate=True)):
        batched = estimator(samples)
        for row, one in enumerate(map(estimator, samples)):
            assert batched.value[row] == one.value
            np.testing.assert_array_equal(batched.index[row], one.index)


def test_shapes_follow_the_batch(rng):
    samples = rng.normal(size=(4, 2, 3, 12))
    assert single(samples).value.shape == single(samples).index.shape == (4, 2)
    assert ensemble(samples, 4, rng).value.shape == (4, 2)
    assert ensemble(samples, 4, rng, rotate=True).index.shape == (4, 2, 4)
    assert ensemble(samples.tolist(), 4).value.shape == (4, 2)


def test_unbatched_samples_give_scalars(rng):
    samples = rng.normal(size=(3, 12))
    estimates = (single(samples), double(samples, rng), ensemble(samples, 4), weighted_double(samples, 5))
    for estimate in estimates:
        assert type(estimate.value) is np.float64
        assert type(estimate.index) is np.int64
    assert type(ensemble(samples, 4, rotate=True).value) is np.float64


def test_shuffling_is_seeded_independent_per_arm_and_leaves_the_samples_alone():
    samples = np.tile(np.arange(1000.0), (2, 1))
    before = samples.copy()
    values = [weighted_double(samples, 500, np.random.default_rng(seed)).value for seed in (1, 1, 2)]
    np.testing.assert_array_equal(samples, before)
    assert values[0] == values[1] != values[2]
    # With equal shuffles the arms would always tie; with independent ones a better half leaves a lower rest.
    assert values[0] < 499.5


def test_ties_go_to_the_first_arm_or_with_a_generator_to_any(rng):
    tied = np.zeros((600, 3, 4))
    assert (ensemble(tied, 2).index == 0).all()
    counts = np.bincount(ensemble(tied, 2, rng).index, minlength=3)
    assert (abs(counts - 200) < 60).all()  # five standard deviations of a fair three-way draw


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: single([[1.0, np.nan], [0.0, 1.0]]), "arm 0 contain NaN or infinity"),
        (lambda: single(np.full((2, 2, 2), np.inf)), "samples contain NaN or infinity"),
        (
            lambda: single([[1e308, 1e308], [0.0, 1.0]]),
            r"arm 0 reach 1e\+308 in size: rescale them to 1e\+70",
        ),
        (lambda: single(-np.full((2, 2, 2), 1e71)), r"samples reach 1e\+71"),
        (lambda: single(np.full((2, 2), np.longdouble("1e400"))), "NaN or infinity"),
        (lambda: single([[1.0], []]), "Arm 1 is empty"),
        (lambda: single(np.zeros((2, 0))), "Arm 0 is empty"),
        (lambda: single([]), "one array per arm"),
        (lambda: single([1.0, 2.0]), "one array per arm"),
        (lambda: ensemble(np.zeros((2, 4)), 1), "k must be at least 2, not 1"),
        (lambda: ensemble([[1.0, 2.0, 3.0], [1.0, 2.0]], 3), "smallest arm has 2"),
        (lambda: double([[1.0], [2.0]]), "smallest arm has 1"),
        (lambda: weighted_double(np.zeros((2, 4)), 0), "n_index must be between 1 and 3, not 0"),
        (lambda: weighted_double(np.zeros((2, 4)), 4), "n_index must be between 1 and 3, not 4"),
        (lambda: weighted_double(np.zeros((2, 1)), 1), "at least 2 samples"),
    ],
)
def test_bad_values_are_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: single([["a", "b"], ["c", "d"]]), "must be real numbers"),
        (lambda: single([[[1.0], [1.0, 2.0]]]), "rectangular"),
        (lambda: ensemble(np.zeros((2, 4)), 2.5), "k must be a whole number, not 2.5"),
        (lambda: single(np.ma.masked_equal([[1.0, 99.0], [1.0, 2.0]], 99.0)), "not be a masked array"),
        (lambda: single([[1.0, 2.0], np.ma.masked_equal([1.0, 99.0], 99.0)]), "arm 1 must not be a masked"),
        (lambda: single([[np.ma.masked_equal([1.0, 99.0], 99.0)]]), "arm 0 must not be a masked array"),
        (lambda: double(np.zeros((2, 4)), 7), "numpy.random.Generator, not int"),
    ],
)
def test_things_of_the_wrong_kind_are_one_clear_line(call, message):
    with pytest.raises(TypeError, match=message):
        call()

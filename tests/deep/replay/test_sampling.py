import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.deep.replay.ring import Uniform
from ebql.deep.replay.sampling import Prioritized, empty_tree, find_leaves, leaves, write_leaves

OPERATIONS = st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1e6)), min_size=1, max_size=60)


@settings(deadline=None)  # the first example pays for compiling
@given(st.integers(31, 70), OPERATIONS, st.integers(0, 2**31 - 1))
def test_the_sum_tree_agrees_with_numpy_after_any_writes(capacity, operations, seed):
    tree, flat = empty_tree(capacity), np.zeros(capacity)
    for row, value in operations:
        write_leaves(tree, np.array([row]), np.array([value]))
        flat[row] = value
    np.testing.assert_array_equal(leaves(tree)[:capacity], flat)
    np.testing.assert_allclose(tree[1], flat.sum(), rtol=1e-12)
    if flat.sum() > 0:
        fractions = np.random.default_rng(seed).random(200)
        rows = find_leaves(tree, fractions)
        assert (flat[rows] > 0).all()
        # A fraction of the total lies in its row: the sum before it is not more, that up to it not less.
        sums, slack = np.concatenate([[0], flat.cumsum()]), 1e-9 * flat.sum()
        assert (sums[rows] <= fractions * flat.sum() + slack).all()
        assert (sums[rows + 1] >= fractions * flat.sum() - slack).all()


@settings(deadline=None)
@given(OPERATIONS)
def test_sums_do_not_depend_on_the_order_of_the_writes(operations):
    """So a tree made anew from its leaves is the same to the bit."""
    tree, anew = empty_tree(31), empty_tree(31)
    for row, value in operations:
        write_leaves(tree, np.array([row]), np.array([value]))
    write_leaves(anew, np.arange(31), leaves(tree)[:31].copy())
    np.testing.assert_array_equal(tree, anew)


def test_the_walk_down_the_tree_by_hand():
    tree = empty_tree(3)
    write_leaves(tree, np.array([0, 1, 2]), np.array([1.0, 0.0, 3.0]))
    assert tree.tolist() == [0, 4, 1, 3, 1, 0, 3, 0]
    assert find_leaves(tree, np.array([0.0, 0.24, 0.25, 0.99])).tolist() == [0, 0, 2, 2]


def test_rows_of_one_segment_each_and_weights_by_hand():
    sampler = Prioritized(4, alpha=0.5, beta=0.5, beta_steps=100)
    sampler.added(0, 4)
    sampler.update(np.arange(4), np.array([1.0, 0.0, 4.0, 9.0]) - np.array([1, 0, 1, 1]) * 1e-6)
    probabilities = np.array([1, 1e-3, 2, 3]) / 6.001
    draw = sampler.draw(600, size=4, step=0, rng=np.random.default_rng(0))
    counts = np.bincount(draw.rows, minlength=4)
    assert (np.abs(counts - 600 * probabilities) <= 2).all()  # stratified: hardly any noise
    weights = (4 * probabilities) ** -0.5
    np.testing.assert_allclose(draw.weights, (weights / weights[draw.rows].max())[draw.rows], rtol=1e-5)
    # β has risen from 0.5 to 1 over 100 steps.
    late = sampler.draw(600, size=4, step=250, rng=np.random.default_rng(0))
    np.testing.assert_allclose(
        late.weights, ((1 / probabilities) / (1 / probabilities)[late.rows].max())[late.rows], rtol=1e-5
    )


def test_new_rows_get_the_largest_priority_so_far_around_the_end_of_the_ring():
    sampler = Prioritized(4, alpha=1.0, beta=1.0, beta_steps=1)
    sampler.added(0, 3)
    sampler.update(np.array([0, 1, 2]), np.array([5.0, 0.5, 0.5]))
    sampler.update(np.array([0]), np.array([2.0]))
    sampler.added(3, 2)  # rows 3 and 0
    assert sampler.state()["priorities"] == pytest.approx([5, 0.5, 0.5, 5], rel=1e-5)


def test_a_row_drawn_twice_keeps_the_later_error():
    sampler = Prioritized(4, alpha=1.0, beta=1.0, beta_steps=1)
    sampler.added(0, 2)
    sampler.update(np.array([1, 1]), np.array([9.0, 2.0]))
    assert sampler.state()["priorities"] == pytest.approx([1, 2], rel=1e-5)


@pytest.mark.parametrize("added", [3, 7, 11])
def test_a_restored_sampler_goes_on_to_the_same_bits(added):
    first, second = (Prioritized(7, 0.5, 0.4, 100) for _ in range(2))
    rng = np.random.default_rng(0)
    for row in range(added):
        first.added(row % 7, 1)
        first.update(np.array([row % 7]), rng.random(1))
    second.restore({name: array.copy() for name, array in first.state().items()})
    rngs = [np.random.default_rng(1) for _ in range(2)]
    for step in range(20):
        draws = [s.draw(5, min(added, 7), step, r) for s, r in zip((first, second), rngs, strict=True)]
        np.testing.assert_array_equal(draws[0].rows, draws[1].rows)
        np.testing.assert_array_equal(draws[0].weights, draws[1].weights)
        errors = rng.random(5)
        for sampler, draw in zip((first, second), draws, strict=True):
            sampler.update(draw.rows, errors)
            sampler.added(step % min(added, 7), 1)


def test_uniform_draws_weigh_nothing_and_remember_nothing():
    draw = Uniform().draw(50, 3, 0, np.random.default_rng(0))
    assert set(draw.rows) == {0, 1, 2}
    assert draw.weights is None
    assert Uniform().state() == {}

import numpy as np
import pytest
from scipy.stats import norm

from ebql.estimators.quadrature import exactly_known, gaussian_line, log_cdf

GAPS, ERRORS = np.array([0.0, -0.3, -2.0]), np.array([1.0, 0.01, 5.0])


def test_densities_of_winning_integrate_to_one():
    line = gaussian_line(GAPS, ERRORS)
    assert (line.winning_density() @ line.weight).sum() == pytest.approx(1, abs=1e-13)


def test_moments_of_the_best_arm_are_exact():
    line = gaussian_line(np.array([0.0]), np.array([2.0]))
    density = np.exp(line.log_pdf[0])
    moments = [line.weight @ (density * line.x**power) for power in range(5)]
    np.testing.assert_allclose(moments, [1, 0, 4, 0, 48], atol=1e-11)


def test_nodes_have_the_distributions_of_all_arms():
    line = gaussian_line(GAPS, ERRORS)
    for arm, (gap, error) in enumerate(zip(GAPS, ERRORS, strict=True)):
        np.testing.assert_allclose(np.exp(line.log_cdf[arm]), norm.cdf(line.x, gap, error), atol=1e-12)
        np.testing.assert_allclose(
            np.exp(line.log_pdf[arm]), norm.pdf(line.x, gap, error), rtol=1e-8, atol=1e-12
        )


def test_an_exactly_known_arm_is_a_step():
    known = exactly_known(np.array([0.0, -1.0, -1.0]), np.array([0.0, 1e-17, 1e-3]))
    assert known.tolist() == [True, True, False]
    line = gaussian_line(np.array([0.0, -1.0]), np.array([1.0, 0.0]))
    np.testing.assert_array_equal(np.exp(line.log_cdf[1]), line.x >= -1.0)
    assert (line.log_pdf[1] == -np.inf).all()


def test_the_distribution_function_keeps_its_tail():
    assert log_cdf(np.array([-30.0]), np.array([1.0]))[0] == pytest.approx(norm.logcdf(-30.0))
    assert np.exp(log_cdf(np.array([-1.0, 0.0, 1.0]), np.zeros(3))).tolist() == [0, 1, 1]

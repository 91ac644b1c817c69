import pytest

from ebql.paper.chains.curves import REGIMES, run_learning_curves


@pytest.fixture(scope="package")
def curves():
    """Return learning curves of two regimes with few seeds."""
    return run_learning_curves(lambda _: None, regimes=REGIMES[:4:2], seeds=10, episodes=400)

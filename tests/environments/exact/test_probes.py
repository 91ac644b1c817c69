import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ebql.environments.exact.probes import PROBES, exact_q

DISCOUNT = 0.9


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_probes_keep_gymnasiums_contract(probe):
    check_env(gymnasium.make(f"ebql/Probe{probe}-v0").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("probe", PROBES)
def test_the_table_is_what_the_best_policy_earns(probe):
    """Try every state and action: Q is the reward plus the discounted best value of the next state."""
    observations, q = exact_q(probe, DISCOUNT)
    table = {float(x[0]): values for x, values in zip(observations, q, strict=True)}
    environment = gymnasium.make(f"ebql/Probe{probe}-v0")
    seen = set()
    for seed in range(40):
        observation, _ = environment.reset(seed=seed)
        ended = False
        while not ended:
            state, action = float(observation[0]), seed // 2 % 2
            observation, reward, ended, truncated, _ = environment.step(action)
            assert not truncated
            value = reward + (0.0 if ended else DISCOUNT * table[float(observation[0])].max())
            assert table[state][action] == pytest.approx(value)
            seen.add((state, action))
    assert len(seen) == q.size


def test_the_tables_of_the_docstring():
    def table(probe: str) -> list[list[float]]:
        return exact_q(probe, DISCOUNT)[1].tolist()

    assert table("OneStep") == [[1, 1]]
    assert table("Observation") == [[-1, -1], [1, 1]]
    assert table("Discount") == [[0.9, 0.9], [1, 1]]
    assert table("Action") == [[-1, 1]]
    assert table("ObservationAction") == [[1, -1], [-1, 1]]
    assert np.array_equal(exact_q("Discount", DISCOUNT)[0], [[0], [1]])

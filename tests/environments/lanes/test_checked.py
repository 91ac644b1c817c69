from types import SimpleNamespace

import numpy as np
import pytest

from ebql.environments import LaneStep
from ebql.environments.lanes.checked import environment_errors, first_not_finite, reset_lanes, step_lanes
from ebql.errors import InputError, RunError

NAN = float("nan")


def lane_step(rewards=(0.0, 0.0), after=(1.0, 1.0), shown=None):
    after = np.array(after, np.float32)[:, None]
    shown = after if shown is None else np.array(shown, np.float32)[:, None]
    no = np.zeros(2, bool)
    return LaneStep(after, np.array(rewards), no, no, ~no, shown, ())


def lanes(step=None, first=(0.0, 0.0)):
    return SimpleNamespace(reset=lambda seed: np.array(first)[:, None] + 0 * seed, step=lambda actions: step)


def test_finite_steps_and_resets_pass_unchanged():
    step = lane_step()
    assert step_lanes(lanes(step), np.zeros(2, int), 5) is step
    assert reset_lanes(lanes(first=(1.0, 2.0)), seed=3).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lane_step(rewards=(0.0, -np.inf)), "gave the reward -inf after step 5 of a test: it must be finite"),
        (
            lane_step(after=(1.0, NAN)),
            r"in lane 1 \(of 0 to 1\) gave an observation with nan after step 5 of",
        ),
        (
            lane_step(shown=(NAN, 1.0)),
            r"in lane 0 \(of 0 to 1\) gave an observation with nan after step 5 of",
        ),
    ],
)
def test_a_step_with_a_number_that_is_not_finite_is_refused(step, message):
    with pytest.raises(RunError, match=message):
        step_lanes(lanes(step), np.zeros(2, int), 5, " of a test")


def test_a_reset_with_a_number_that_is_not_finite_is_refused():
    with pytest.raises(RunError, match="lane 1 .* gave an observation with inf on reset: it must be finite"):
        reset_lanes(lanes(first=(0.0, np.inf)), seed=0)


def test_errors_of_an_environment_become_one_line_and_errors_of_the_user_stay():
    message = r"^The environment raised OSError on reset: no more$"
    with pytest.raises(RunError, match=message), environment_errors("on reset"):
        raise OSError("no more\nfuel")
    with pytest.raises(InputError, match="^wrong$"), environment_errors("on reset"):
        raise InputError("wrong")


def test_the_first_number_that_is_not_finite_is_found_by_row():
    assert first_not_finite(np.array([[0.0, 1.0], [2.0, -np.inf], [NAN, 0.0]])) == (1, -np.inf)
    assert first_not_finite(np.zeros((2, 3))) is None
    assert first_not_finite(np.zeros((2, 3), np.uint8)) is None

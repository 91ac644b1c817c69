"""The bias of any agent that can choose actions and give its Q-values."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.deep.agent import Agent
from ebql.deep.evaluation.bias import TOLERANCE, Bias, horizon, measured_bias
from ebql.deep.evaluation.rollout import evaluation_seed, play_past_limit
from ebql.deep.policy import Actions
from ebql.environments import Lanes, make_lanes
from ebql.environments.lanes.seeded import checked_seed
from ebql.environments.lanes.structures import is_structured, unpack_rows
from ebql.environments.sources import given, is_object
from ebql.errors import InputError, InputTypeError, whole_number
from ebql.neighbours.agents import (
    QValues,
    actions_of,
    checked_actions,
    checked_values,
    discount_of,
    q_values_of,
)

_MOST_LANES = 10


def measure_bias(
    policy: Any,
    environment: Any,
    *,
    q_values: QValues | None = None,
    discount: float | None = None,
    episodes: int = 20,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> Bias:
    """Compare an agent's Q-values with the returns that its policy earns: Q̂(s, a) − Σ γⁱ rᵢ.

    `policy` has `predict(observations, deterministic=True)`, is a function that maps observations (rows, …)
    to actions (rows,), or is a PyTorch module that maps them to Q-values (rows, A), which is played greedily.
    `environment` is an id, an `Env`, a function that makes one, or a vector environment of Gymnasium or of
    Stable-Baselines3. Its rewards must be those that the agent learnt from.

    `q_values` maps observations to Q-values (rows, A), or to those of K members, whose mean is measured. The
    default is found for agents with a method `q_values`, DQN of Stable-Baselines3, QR-DQN of sb3-contrib and
    PyTorch modules. The default `discount` is the agent's `gamma`, if it has one. An agent of this package
    has its own discount and members: `measure_bias(agent, environment)` is `agent.measure_bias(environment)`.

    Time limits are treated as by `Agent.measure_bias`; `Bias.explanation` says how.

    >>> def left(observations):  # a policy that always pushes to the left …
    ...     return np.zeros(len(observations), dtype=int)
    >>> def always_ten(observations):  # … and believes that this earns 10
    ...     return np.full((len(observations), 2), 10.0)
    >>> bias = measure_bias(left, "CartPole-v1", q_values=always_ten, discount=1.0)
    >>> bias.value, 0 < bias.discounted_return < 10  # from all states of the episodes, not only the first
    (10.0, True)
    """
    if isinstance(policy, Agent) and q_values is None and discount is None:
        return policy.measure_bias(environment, episodes=episodes, tolerance=tolerance, seed=seed)
    values, actions = q_values or q_values_of(policy), actions_of(policy)
    discount = discount_of(policy) if discount is None else discount
    if not 0 <= discount <= 1:
        raise InputError(f"discount must lie between 0 and 1, not {discount}.")
    if not 0 <= tolerance <= 1:
        raise InputError(f"tolerance must lie between 0 and 1, not {tolerance}.")
    episodes = whole_number("episodes", episodes, 1)
    seed = evaluation_seed(checked_seed(whole_number("seed", seed, 0)))
    with _lanes(environment, episodes) as lanes:
        space, n_actions, first_action = lanes.observation_space, lanes.n_actions, lanes.first_action

        def members(observations: NDArray[Any]) -> NDArray[np.float64]:
            return checked_values(values(_given(space, observations)), len(observations), n_actions)

        def chosen(act: Callable[[Any], Any], observations: NDArray[Any]) -> Actions:
            numbers = act(_given(space, observations))
            return checked_actions(numbers, len(observations), n_actions, first_action)

        traces, limit = play_past_limit(
            members,
            lanes,
            episodes,
            seed,
            pessimistic=False,
            extra_steps=horizon(discount, tolerance),
            policy=None if actions is None else partial(chosen, actions),
        )
    return measured_bias(traces, discount, tolerance=tolerance, limit=limit)


@contextmanager
def _lanes(environment: Any, episodes: int) -> Iterator[Lanes]:
    """Yield lanes over the environment; close those that were made here."""
    if "stable_baselines3" in sys.modules:
        from stable_baselines3.common.vec_env import VecEnv

        if isinstance(environment, VecEnv):
            from ebql.neighbours.vec_env import VecEnvLanes, statistics_kept

            with statistics_kept(environment):
                yield _discrete(VecEnvLanes(environment))
            return
    environment = given(environment)
    # The policy alone decides which actions it takes: masks are not applied to it.
    lanes = make_lanes(
        environment, 1 if is_object(environment) else min(episodes, _MOST_LANES), action_masks=False
    )
    try:
        yield _discrete(lanes)
    finally:
        if not is_object(environment):  # an environment object is the caller's to close
            lanes.close()


def _discrete(lanes: Lanes) -> Lanes:
    if lanes.joint_actions is not None:
        raise InputTypeError("measure_bias needs Discrete actions.")
    return lanes


def _given(space: gymnasium.Space[Any], observations: NDArray[Any]) -> Any:
    """Return observations as the environment writes them, stacked array by array."""
    return unpack_rows(space, observations) if is_structured(space) else observations

"""What an agent of another library does and expects: its actions, its Q-values and its discount."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ebql.deep.policy import Actions
from ebql.errors import InputError, InputTypeError

QValues = Callable[[Any], Any]
"""Maps observations (rows, …) to Q-values (rows, A), or to those of K members, (rows, K, A)."""


def q_values_of(policy: Any) -> QValues:
    """Return the function that gives the Q-values of an agent; raise an error if none is known.

    Known are agents with a method `q_values`, DQN of Stable-Baselines3 and QR-DQN of sb3-contrib (the whole
    model, or its policy), and PyTorch modules whose outputs are Q-values, such as those of CleanRL's DQN.
    """
    if callable(own := getattr(policy, "q_values", None)):
        return own  # type: ignore[no-any-return]
    if (network := _sb3_network(policy)) is not None:
        return network
    if isinstance(policy, nn.Module) and not hasattr(policy, "predict"):
        return _values_of_module(policy)
    raise InputError(
        f"No Q-values were found in {type(policy).__name__}: pass q_values, a function that maps "
        "observations (rows, …) to values (rows, actions)."
    )


def actions_of(policy: Any) -> Callable[[Any], Any] | None:
    """Return the function that maps observations (rows, …) to actions; None: greedy on the Q-values.

    A policy has `predict`, as in Stable-Baselines3, or is a function. A PyTorch module without `predict` is
    a Q-network, whose policy is greedy.
    """
    if callable(predict := getattr(policy, "predict", None)):

        def predicted(observations: Any) -> Any:
            actions = predict(observations, deterministic=True)
            return actions[0] if isinstance(actions, tuple) else actions

        return predicted
    if isinstance(policy, nn.Module):
        return None
    if callable(policy):
        return policy  # type: ignore[no-any-return]
    raise InputTypeError(
        f"A policy must have predict(observations, deterministic=True) or be a function, not {policy!r}."
    )


def discount_of(policy: Any) -> float:
    """Return γ of an agent that says it, as those of Stable-Baselines3 do; raise an error otherwise."""
    gamma = getattr(policy, "gamma", None)
    if not isinstance(gamma, float | int):
        raise InputError(
            f"{type(policy).__name__} does not say its discount: pass discount, the γ that it learns with."
        )
    return float(gamma)


def checked_values(values: Any, n_rows: int, n_actions: int) -> NDArray[np.float64]:
    """Return Q-values as members' values (rows, K, A); refuse other shapes and NaN."""
    array = np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values, np.float64)
    if array.ndim not in (2, 3) or (len(array), array.shape[-1]) != (n_rows, n_actions):
        raise InputError(
            f"q_values must return ({n_rows}, {n_actions}) values for {n_rows} observations, or "
            f"({n_rows}, members, {n_actions}), not {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InputError("q_values returned a value that is not a finite number.")
    return array if array.ndim == 3 else array[:, None]


def checked_actions(actions: Any, n_rows: int, n_actions: int, first_action: int) -> Actions:
    """Return a policy's actions as numbers (rows,) from 0; refuse other shapes and unknown actions."""
    array = np.asarray(actions.detach().cpu() if isinstance(actions, torch.Tensor) else actions)
    if array.size != n_rows or array.dtype.kind not in "iu":
        raise InputError(
            f"The policy must return {n_rows} whole numbers for {n_rows} observations, not {array.dtype} "
            f"of shape {array.shape}."
        )
    numbers: Actions = array.reshape(n_rows).astype(np.int64) - first_action
    if ((numbers < 0) | (numbers >= n_actions)).any():
        raise InputError(
            f"The policy's actions must lie between {first_action} and {first_action + n_actions - 1}, "
            f"not {array.reshape(-1).tolist()}."
        )
    return numbers


def _sb3_network(policy: Any) -> QValues | None:
    """Return the Q-values of a model or a policy of Stable-Baselines3; None if it has none."""
    if "stable_baselines3" not in sys.modules:  # then nothing can be of its classes
        return None
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    inner = policy.policy if isinstance(policy, BaseAlgorithm) else policy
    if not isinstance(inner, BasePolicy):
        return None
    network, quantiles = getattr(inner, "q_net", None), getattr(inner, "quantile_net", None)
    if not isinstance(network, BasePolicy) and not isinstance(quantiles, BasePolicy):
        return None

    def values(observations: Any) -> torch.Tensor:
        inner.set_training_mode(False)
        with torch.no_grad():
            tensors, _ = inner.obs_to_tensor(observations)
            if quantiles is not None:
                return quantiles(tensors).mean(1)  # type: ignore[no-any-return]
            return network(tensors)  # type: ignore[misc, no-any-return]

    return values


def _values_of_module(module: nn.Module) -> QValues:
    """Return the outputs of a module for observations as floats, on the module's device."""
    device = next((parameter.device for parameter in module.parameters()), None)

    def values(observations: Any) -> torch.Tensor:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                return module(torch.as_tensor(observations, dtype=torch.float32, device=device))  # type: ignore[no-any-return]
        finally:
            module.train(was_training)

    return values

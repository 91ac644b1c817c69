"""The schedules of a training: ε and the learning rate as functions of the agent step."""

import math

import numpy as np

from ebql.deep.config.base import AgentConfig


def epsilon_at(config: AgentConfig, step: int) -> float:
    """Return the probability of a random action at this agent step."""
    if config.epsilon_schedule == "piecewise":
        steps, values = zip(*config.epsilon_points, strict=True)
        return float(np.interp(step, steps, values))
    start, end = config.epsilon_start, config.epsilon_end
    progress = min(step / config.epsilon_steps, 1.0)
    if config.epsilon_schedule == "exponential":
        return start * math.pow(end / start, progress)
    return start + progress * (end - start)


def learning_rate_at(config: AgentConfig, step: int) -> float:
    """Return the optimiser's step size at this agent step."""
    start, end = config.learning_rate, config.learning_rate_end
    if config.learning_rate_schedule == "constant":
        return start
    progress = min(step / config.learning_rate_steps, 1.0)
    if config.learning_rate_schedule == "cosine":
        progress = (1 - math.cos(math.pi * progress)) / 2
    return start + progress * (end - start)

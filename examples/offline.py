"""Learn from data: collect transitions once, then let two agents learn from them without acting."""

import gymnasium
import numpy as np

from ebql import DQN, EBQL


def collected(n_rows: int) -> dict[str, np.ndarray]:
    """Return the columns of transitions of a random policy on CartPole."""
    environment = gymnasium.make("CartPole-v1")
    environment.action_space.seed(0)
    rows = []
    observation, _ = environment.reset(seed=0)
    for _ in range(n_rows):
        action = environment.action_space.sample()
        after, reward, terminated, truncated, _ = environment.step(action)
        rows.append((observation, action, reward, after, terminated, truncated))
        observation = environment.reset()[0] if terminated or truncated else after
    names = ("observations", "actions", "rewards", "next_observations", "terminations", "truncations")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


data = collected(2_000)
for kind in (DQN, EBQL):
    agent = kind("CartPole-v1", preset="plain", n_step=3, target_period=50, evaluation_period=0, seed=0)
    agent.learn_offline(data, updates=1_000)
    evaluation = agent.evaluate(episodes=5)
    print(f"{kind.__name__}: score {evaluation.mean:.0f}, bias {evaluation.bias.mean:+.1f}")

"""Learn quantiles of the return: QR-DQN, IQN, and EBQL whose members learn quantiles."""

import numpy as np

from ebql import EBQL, IQN, QRDQN

OPTIONS = {"preset": "plain", "hidden": (32,), "learning_starts": 100, "evaluation_period": 0, "seed": 0}
AGENTS = {
    "QR-DQN": QRDQN("CartPole-v1", quantiles=20, **OPTIONS),
    "IQN": IQN("CartPole-v1", implicit_quantiles=8, target_fractions=8, policy_fractions=8, **OPTIONS),
    "EBQL with quantiles": EBQL("CartPole-v1", ensemble_size=3, quantiles=20, **OPTIONS),
}
for name, agent in AGENTS.items():
    agent.learn(600)
    values = agent.together(agent.q_values(np.zeros(4, np.float32)))
    print(f"{name}: values {values.round(2)} of pushing left and right, the means of the quantiles")

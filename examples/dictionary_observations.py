"""Observations that are dictionaries, and actions of several parts: a robot with a camera and a compass.

Run it with `python examples/dictionary_observations.py`.
"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from ebql import EBQL


class Robot(gymnasium.Env):
    """A light is on the left or the right of the picture. The robot turns to it and names its own heading."""

    observation_space = Dict({"camera": Box(0, 255, (8, 8), np.uint8), "compass": Discrete(4)})
    action_space = MultiDiscrete([2, 4])  # the side of the light, and the heading

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {}

    def step(self, action):
        side, heading = action
        reward = 0.5 * (side == self.side) + 0.5 * (heading == self.heading)
        self.steps += 1
        return self._observe(), float(reward), self.steps == 10, False, {}

    def _observe(self):
        self.side, self.heading = int(self.np_random.integers(2)), int(self.np_random.integers(4))
        camera = np.zeros((8, 8), np.uint8)
        camera[self.np_random.integers(8), 4 * self.side + self.np_random.integers(4)] = 255
        return {"camera": camera, "compass": self.heading}


if __name__ == "__main__":
    # The picture goes through a convolution, the compass is one-hot, and there are 2 × 4 = 8 joint actions.
    options = {"hidden": (64,), "discount": 0.0, "learning_rate": 2e-3, "evaluation_period": 0}
    agent = EBQL(Robot, seed=0, epsilon_steps=1_000, learning_starts=200, **options)
    agent.learn(1_500)
    print(f"mean return, of at most 10: {agent.evaluate(20, seed=0).mean:.1f}")

    robot = Robot()
    observation, _ = robot.reset(seed=1)
    action, _ = agent.predict(observation)  # in the environment's own form
    print(f"light {robot.side}, heading {robot.heading}; the agent says {action}")

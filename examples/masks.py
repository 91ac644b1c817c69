"""Action masks: an agent that only ever plays cards that fit. Run it with `python examples/masks.py`."""

import numpy as np
from crazy_eights import CARDS, CrazyEights

from ebql import EBQL

# The agent finds the masks by itself: CrazyEights has a method action_masks().
agent = EBQL(CrazyEights, hidden=(64,), epsilon_steps=1_000, learning_starts=200, evaluation_period=0, seed=0)
agent.learn(1_500)

# Evaluations respect masks, too. A random player of Crazy Eights wins half of the games: a mean return of 0.
print(f"mean return of 50 games: {agent.evaluate(50, seed=0).mean:+.2f}")

# In a loop of one's own, the mask is given to predict.
game = CrazyEights()
observation, _ = game.reset(seed=1)
action, _ = agent.predict(observation, action_masks=game.action_masks())
assert game.action_masks()[action]
print("cards that fit:", np.flatnonzero(game.action_masks()[:CARDS]).tolist(), "played:", int(action))

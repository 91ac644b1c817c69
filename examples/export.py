"""An agent as an ONNX file, which onnxruntime runs without this package.

python export.py [STEPS]
"""

import sys

import gymnasium
import onnxruntime

from ebql import EBQL

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
agent = EBQL("CartPole-v1", seed=0, evaluation_period=0).learn(steps)
session = onnxruntime.InferenceSession(agent.export("agent.onnx"), providers=["CPUExecutionProvider"])

environment = gymnasium.make("CartPole-v1")
observation, _ = environment.reset(seed=1)
score, over = 0.0, False
while not over:
    values, actions = session.run(["values", "action"], {"observation": observation[None]})
    assert actions[0] == agent.predict(observation, deterministic=True)[0]
    observation, reward, terminated, truncated, _ = environment.step(int(actions[0]))
    score, over = score + float(reward), terminated or truncated
print(f"an episode by onnxruntime: return {score:.0f}; last values of {values.shape[1]} members:")
print(values[0])

"""Metrics to Weights & Biases, offline: nothing leaves this machine, and no account is needed.

python track.py [STEPS]
"""

import sys
from pathlib import Path

from ebql import EBQL
from ebql.deep import Tracking

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
tracking = Tracking("wandb", project="poles", name="first try")  # or "trackio"
agent = EBQL("CartPole-v1", seed=0, evaluation_period=0, log_period=100)
agent.learn(steps, out="run", track=tracking)
(folder,) = Path("run/wandb").glob("offline-run-*")
print(f"recorded in {folder}; send it with: wandb sync {folder}")

"""An agent in the layout of the Hugging Face Hub: write it, read its card, load it again.

python hub.py [STEPS]

With --to user/name in the place of a folder, `ebql publish` sends the same files to the Hub.
"""

import sys

from huggingface_hub import ModelCard

from ebql import EBQL
from ebql.cli import main

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
EBQL("CartPole-v1", seed=0, evaluation_period=0).learn(steps, out="run")
main(["publish", "run", "--to", "./published", "--episodes", "5", "--no-film"])

card = ModelCard.load("published/README.md")
(result,) = card.data.eval_results
print(f"the card says: {card.data.model_name}, {result.metric_name} {result.metric_value}")

agent = EBQL.from_hub("published")  # numbers and options are read; no code of the folder runs
print(f"loaded: K = {agent.ensemble_size}, {agent.steps} steps, return {agent.evaluate(5, seed=0).mean:.0f}")

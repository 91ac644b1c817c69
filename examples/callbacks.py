"""Callbacks: a metric of your own, the best agent kept, and a run that stops when it is good enough.

python callbacks.py [STEPS]
"""

import sys

from ebql import EBQL
from ebql.deep import Agent, Callback, KeepBest, Measure, StopAtScore
from ebql.deep.evaluation.evaluation import Evaluation


def solved(agent: Agent, evaluation: Evaluation) -> float:
    """Return the share of episodes that lasted 200 steps; it becomes evaluation/solved."""
    return sum(length >= 200 for length in evaluation.lengths) / len(evaluation.lengths)


class Tell(Callback):
    """Prints every evaluation."""

    def on_evaluation(self, agent: Agent, record: dict[str, float]) -> None:
        """Print what was measured."""
        score, share = record["evaluation/return"], record["evaluation/solved"]
        print(f"step {record['step']}: return {score:.1f}, solved {share:.0%}")


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    agent = EBQL("CartPole-v1", seed=0, evaluation_period=max(steps // 15, 1), evaluation_episodes=5)
    callbacks = [Measure(solved=solved), Tell(), KeepBest(), StopAtScore(400)]
    agent.learn(steps, out="run", callback=callbacks)
    best = EBQL.load("run/best.safetensors")
    print(f"the best agent was found at step {best.steps}")

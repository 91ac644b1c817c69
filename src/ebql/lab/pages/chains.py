"""The page of chains: tabular agents on the Meta-Chain, learnt while the visitor waits."""

import csv
import io
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ebql.environments import meta_chain
from ebql.environments.exact.worlds import PAPER_MEANS
from ebql.errors import InputError
from ebql.estimators.intervals import over_seeds
from ebql.lab.parameters import Query, choice, real, whole
from ebql.lab.shipped import shipped
from ebql.paper.chains.curves import ALPHAS, DQL, EPSILONS, QL
from ebql.report.palette import colours
from ebql.tabular import (
    EBQL,
    Agent,
    ClippedDoubleQLearning,
    CrossQLearning,
    EnsembleQLearning,
    Group,
    Maxmin,
    Metric,
    WeightedDoubleQLearning,
    group_mean,
    learn,
    measure,
)

AGENTS = ("QL", "DQL", "EBQL", "Maxmin", "Ensemble", "Cross", "Clipped", "Weighted")
MOST_CHAINS, MOST_ACTIONS, MOST_MEMBERS = 12, 30, 30
MOST_SEEDS, MOST_EPISODES = 100, 5_000
_SECONDS = 60.0
_POINTS = 150
_METRICS = (Metric.GREEDY_CORRECT, Metric.BIAS_MAX, Metric.BIAS_OPTIMAL, Metric.BIAS_RISKY)


@dataclass(frozen=True)
class Experiment:
    """Agents that learn on a Meta-Chain under one exploration rate and one step size."""

    means: tuple[float, ...]
    std: float
    actions: int
    epsilon: str
    alpha: str
    agents: tuple[Agent, ...]
    episodes: int
    seeds: int


def asked(query: Query) -> Experiment:
    """Return the experiment that a request describes."""
    sizes = [whole({"k": text.strip()}, "k", 10, 2, MOST_MEMBERS) for text in query.get("k", "10").split(",")]
    if len(sizes) > 5:
        raise InputError(f"k must list at most 5 ensemble sizes, not {len(sizes)}.")
    names = query.get("agents", "QL,DQL,EBQL").split(",")
    chosen = [choice({"agent": name}, "agent", "QL", AGENTS) for name in names]
    return Experiment(
        _means(query.get("means", ",".join(map(str, PAPER_MEANS)))),
        real(query, "std", 1.0, 0.0, 5.0),
        whole(query, "actions", 10, 1, MOST_ACTIONS),
        choice(query, "epsilon", "0.1", EPSILONS),
        choice(query, "alpha", "1/n^0.8", ALPHAS),
        tuple(dict.fromkeys(agent for name in chosen for agent in _agents(name, sizes))),
        whole(query, "episodes", 2_000, 100, MOST_EPISODES),
        whole(query, "seeds", 30, 5, MOST_SEEDS),
    )


def _means(text: str) -> tuple[float, ...]:
    means = tuple(real({"means": part.strip()}, "means", 0.0, -5.0, 5.0) for part in text.split(","))
    if len(means) > MOST_CHAINS:
        raise InputError(f"means must list at most {MOST_CHAINS} chains, not {len(means)}.")
    return means


def _agents(name: str, sizes: list[int]) -> list[Agent]:
    fixed = {"QL": QL, "DQL": DQL, "Clipped": ClippedDoubleQLearning(), "Weighted": WeightedDoubleQLearning()}
    if name in fixed:
        return [fixed[name]]
    makers = {"EBQL": EBQL, "Maxmin": Maxmin, "Ensemble": EnsembleQLearning, "Cross": CrossQLearning}
    return [makers[name](size) for size in sizes]


def results(experiment: Experiment, stop: threading.Event) -> Iterator[dict[str, Any]]:
    """Yield the curves of each agent, with 95% bands over seeds, until `stop` or a minute has passed."""
    world = meta_chain(experiment.means, experiment.std, experiment.actions)
    palette = colours([agent.label for agent in experiment.agents])
    for agent in {agent.plain: agent for agent in experiment.agents}.values():
        learn(world, agent, episodes=1, max_steps=1)  # compiles, once on a machine, before the clock starts
    until = time.monotonic() + _SECONDS

    def check(_: int) -> None:
        if stop.is_set():
            raise InputError("Cancelled.")
        if time.monotonic() > until:
            raise InputError("This takes more than a minute: choose fewer seeds, episodes or agents.")

    for agent in experiment.agents:
        check(0)
        history = learn(
            world,
            agent,
            episodes=experiment.episodes,
            seeds=experiment.seeds,
            epsilon=EPSILONS[experiment.epsilon],
            learning_rate=ALPHAS[experiment.alpha],
            record_every=max(1, experiment.episodes // _POINTS),
            on_seed=check,
        )
        measured = measure(history)
        bands = {}
        for metric in _METRICS:
            mean, half = over_seeds(group_mean(measured[metric], world, Group.ALL))
            bands[metric.value] = {"y": mean, "low": mean - half, "high": mean + half}
        rates = group_mean(measured[Metric.GREEDY_CORRECT], world, Group.ALL).mean(1)
        rate = over_seeds(rates)
        yield {
            "label": agent.label,
            "colour": palette[agent.label],
            "x": history.recorded_at,
            "metrics": bands,
            "rate": float(rate.mean),
            "half_width": float(rate.half_width),
        }


def regime_map() -> dict[str, Any]:
    """Return the paper's regime map: the margin of EBQL over Q-learning and double Q-learning."""
    rows = list(csv.DictReader(io.StringIO(shipped("regimes.csv"))))
    cells: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["metric"] != Metric.GREEDY_CORRECT.value:
            continue
        epsilon, alpha = (part.split(" = ")[1] for part in row["regime"].split(", "))
        line = cells.setdefault(row["regime"], {"epsilon": epsilon, "alpha": alpha, "cells": []})
        margin, half = float(row["margin"]), float(row["interval"])
        line["cells"].append(
            {
                "members": int(row["ensemble_size"]),
                "margin": margin,
                "sure": bool(np.abs(margin) > half),
                "rival": row["rival"],
            }
        )
    return {"regimes": list(cells.values())}

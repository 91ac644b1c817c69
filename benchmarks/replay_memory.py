"""What a replay of Atari frames takes: memory, bytes a frame, and the time of a draw.

    python benchmarks/replay_memory.py --games breakout pong qbert --transitions 1000000
    python benchmarks/replay_memory.py --run runs/ALE-Pong-v5-dqn-0 --transitions 200000

Frames are those of the real game, played by a trained agent (--run, ε = 0.1) or, without one, by a policy
that holds a random action for a few steps, which gets further into a game than one that changes its mind at
every step. Resident memory is the process's, before and after the replay was filled. A draw is compared with
an update of DQN on the Nature network, both on this machine in the same run, alternating.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ebql.deep.agent import Agent
from ebql.deep.building import build_learner, protocol_of
from ebql.deep.config.agents import DQNConfig
from ebql.deep.config.presets import preset_config
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.frames import FrameReplay
from ebql.deep.replay.n_step import NStep
from ebql.environments import make_lanes
from ebql.environments.atari.games import PROTOCOLS
from ebql.runs import RunFolder

LANES, BATCH, EPSILON = 8, 32, 0.1
MILLION = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--games", nargs="+", default=["breakout", "pong", "qbert"])
    parser.add_argument("--run", type=Path, help="the folder of a run whose agent plays its own game")
    parser.add_argument("--transitions", type=int, default=MILLION)
    parser.add_argument("--no-compress", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    games = [RunFolder.open(options.run).config["environment"]] if options.run else options.games
    for game in games:
        # In a process of its own: what one game leaves free, the next would take without growing.
        words = (game, options.run, options.transitions, not options.no_compress, options.threads)
        process = multiprocessing.get_context("spawn").Process(target=measure, args=words)
        process.start()
        process.join()


def measure(game: str, run: Path | None, n_transitions: int, compress: bool, threads: int) -> None:
    torch.set_num_threads(threads)
    agent = Agent.load(run) if run else None
    protocol = protocol_of(agent.config) if agent else PROTOCOLS["paper"]
    lanes = make_lanes(game, LANES, protocol=protocol)
    spec = ObservationSpec.of(lanes.observation_space)
    before = resident()
    replay = FrameReplay(n_transitions, spec, compress=compress)
    began = time.perf_counter()
    mean_return = fill(replay, lanes, agent_policy(agent) if agent else holding_policy(lanes.n_actions))
    seconds = time.perf_counter() - began
    grown = resident() - before
    lanes.close()
    scaled = grown * MILLION / n_transitions
    player = "the agent of the run" if agent else "held random actions"
    print(
        f"{game}: {replay.size:,} transitions by {player}, mean return {mean_return:.1f}, {seconds:.0f} s\n"
        f"  resident memory grew by {grown / 1e9:.3f} GB"
        f"{'' if n_transitions == MILLION else f', a million would be {scaled / 1e9:.2f} GB'}; "
        f"frames {replay.memory / 1e9:.3f} GB, {replay.memory / replay.n_frames:.0f} bytes a frame of 7,056"
    )
    draw, update = draw_and_update_times(replay, spec)
    print(
        f"  draw of {BATCH}: {1e3 * draw:.2f} ms; DQN update: {1e3 * update:.1f} ms; {draw / update:.1%}",
        flush=True,
    )


def fill(replay: FrameReplay, lanes, policy: Callable[[np.ndarray], np.ndarray]) -> float:
    """Play until the replay is full; return the mean return of the games that ended."""
    nstep = NStep(1, 0.99, lanes.n_lanes)
    observations = lanes.reset(0)
    kept = replay.begin(observations)
    returns = []
    while replay.size < replay.capacity:
        actions = policy(observations)
        taken = lanes.step(actions)
        step = replay.keep(taken)
        transitions = nstep.push(kept, actions, taken.rewards, step)
        if transitions is not None:
            replay.add(transitions)
        observations, kept = taken.observations, step.observations
        returns += [episode.ret for episode in taken.episodes]
    return float(np.mean(returns)) if returns else float("nan")


def holding_policy(n_actions: int) -> Callable[[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    held = rng.integers(0, n_actions, LANES)

    def act(_: np.ndarray) -> np.ndarray:
        change = rng.random(LANES) < 0.25
        held[change] = rng.integers(0, n_actions, np.count_nonzero(change))
        return held.copy()

    return act


def agent_policy(agent: Agent) -> Callable[[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)

    def act(observations: np.ndarray) -> np.ndarray:
        greedy = agent.predict(observations, deterministic=True)[0]
        random = rng.integers(0, agent.n_actions, len(greedy))
        return np.where(rng.random(len(greedy)) < EPSILON, random, greedy)

    return act


def draw_and_update_times(
    replay: FrameReplay, spec: ObservationSpec, rounds: int = 40
) -> tuple[float, float]:
    """Return the medians, in seconds, of a draw and of an update with what was drawn."""
    learner = build_learner(preset_config(DQNConfig, "atari-paper"), spec, n_actions=6)
    rng = np.random.default_rng(0)
    learner.update(replay.gather(np.arange(BATCH)))
    draws, updates = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        batch = replay.gather(rng.integers(0, replay.size, BATCH))
        drawn = time.perf_counter()
        learner.update(batch)
        draws.append(drawn - began)
        updates.append(time.perf_counter() - drawn)
    return statistics.median(draws), statistics.median(updates)


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


if __name__ == "__main__":
    main()

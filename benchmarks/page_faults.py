"""What it costs to get freed memory back from the system, and what is left of it when the process keeps it.

    python benchmarks/page_faults.py [--pairs 5] [--steps 300] [--out page_faults.json]

An agent with the preset atari-100k plays Pong in a process that keeps freed memory (`keep_freed_memory`), and
in one that does not, in turn. Times are the processor's, on one thread. A ratio is the median over pairs.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from deep import training
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.presets import preset_config
from ebql.deep.fast.memory import keep_freed_memory
from ebql.runs import provenance, write_json

KINDS: dict[str, type[AgentConfig]] = {"DQN": DQNConfig, "DoubleDQN": DoubleDQNConfig, "EBQL K=5": EBQLConfig}
WARM_UP = 600


def measured(kind: str, steps: int) -> dict[str, float]:
    """Return the milliseconds and page faults of a step of this agent, in this process."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    config = preset_config(KINDS[kind], "atari-100k")
    run = training(config.override(learning_starts=WARM_UP // 2, epsilon_start=0.01), "ALE/Pong-v5")
    while run.step < WARM_UP:
        run.advance()
    faults, start = page_faults(), time.process_time()
    while run.step < WARM_UP + steps:
        run.advance()
    return {
        "milliseconds": (time.process_time() - start) / steps * 1e3,
        "faults": (page_faults() - faults) / steps,
    }


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def in_a_process(kind: str, steps: int, *, keeps: bool) -> dict[str, float]:
    command = [
        sys.executable,
        __file__,
        "--only",
        kind,
        "--steps",
        str(steps),
        *(["--keep"] if keeps else []),
    ]
    result: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return result


def main() -> None:
    """Measure the agents in pairs of processes and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes for each agent")
    parser.add_argument("--steps", type=int, default=300, help="agent steps that are timed in each process")
    parser.add_argument("--out", type=Path, help="write the numbers and the versions to this JSON file")
    parser.add_argument("--only", choices=KINDS, help=argparse.SUPPRESS)  # what a process of a pair measures
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        if options.keep:
            keep_freed_memory()
        print(json.dumps(measured(options.only, options.steps)))
        return
    results: dict[str, Any] = {}
    print(f"{'a step':12}{'returned: ms':>14}{'faults':>8}{'kept: ms':>10}{'faults':>8}{'ratio':>7}")
    for kind in KINDS:
        pairs = [
            [in_a_process(kind, options.steps, keeps=keeps) for keeps in (False, True)]
            for _ in range(options.pairs)
        ]
        ratio = median(returned["milliseconds"] / kept["milliseconds"] for returned, kept in pairs)
        results[kind] = {"pairs": pairs, "ratio": ratio}
        cells = [
            median(pair[i][what] for pair in pairs) for i in (0, 1) for what in ("milliseconds", "faults")
        ]
        print(f"{kind:12}{cells[0]:14.2f}{cells[1]:8.0f}{cells[2]:10.2f}{cells[3]:8.0f}{ratio:7.2f}")
    if options.out:
        content = {"made_by": provenance(), "steps": options.steps, "agents": results}
        print(f"wrote {write_json(options.out, content)}")


if __name__ == "__main__":
    main()

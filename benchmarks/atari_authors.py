"""The code of the paper's authors on Atari, from a clone of their repository, with our options.

Their repository, github.com/tesslerc/ensemble-bootstrapped-q-learning, has the agents, the network and the
replay. It lacks `env.py`, which it took from github.com/Kaixhin/Rainbow: put that file into the clone, in a
revision that has `args.device`. Both expect the package atari_py, which no longer installs; ale_py stands in.
"""

import random
import sys
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ebql.deep.config.base import AgentConfig

KINDS = {"DQN": ("dqn",), "DoubleDQN": ("ddqn",), "EBQL K=5": ("ebql", "edqn")}
"""Our names, and theirs: one revision of their code calls EBQL `ebql`, the other `edqn`."""
FILES = ("agents/dqn.py", "env.py", "memory.py", "model.py")


def lacking(folder: Path) -> str:
    """Return what is missing to run their code from `folder`; nothing if it can run."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        return f"{folder} lacks {', '.join(missing)}: atari_authors.py says what it must hold"
    return "" if find_spec("cv2") else "their code needs OpenCV: pip install opencv-python-headless"


def authors_agent(kind: str, config: AgentConfig, folder: Path) -> Callable[[int], None]:
    """Return a function that trains one of the authors' agents on Pong; it already learns."""
    import numpy as np
    import torch

    import_authors_code(folder)
    code = (folder / "agents" / "dqn.py").read_text(encoding="utf-8")
    known = [name for name in KINDS[kind] if f"'{name}'" in code]
    arguments = authors_arguments((known or KINDS[kind])[0], config)
    np.random.seed(config.seed)  # noqa: NPY002 - their code draws from it
    random.seed(config.seed)
    torch.manual_seed(config.seed)
    game: Any = import_module("env").Env(arguments)
    game.train()
    agent: Any = import_module("agents.dqn").Agent(arguments, game)
    if agent.ddqn != (kind != "DQN"):  # they treat a name that they do not know as DQN's
        raise SystemExit(f"The code in {folder} does not know {kind} by the name {arguments.agent}.")
    agent.train()
    replay: Any = import_module("memory").ReplayMemory(arguments, config.replay_size)
    state, step = game.reset(), 0

    def advance(steps: int) -> None:
        """Play and learn as the loop of their main.py does."""
        nonlocal state, step
        for _ in range(steps):
            step += 1
            action = agent.act_e_greedy(state, config.epsilon_start)
            next_state, reward, done = game.step(action)
            replay.append(state, action, max(min(reward, 1), -1), done)
            if step >= config.learning_starts and step % config.update_period == 0:
                agent.learn(replay)
            if step >= config.learning_starts and step % config.target_period == 0:
                agent.update_target_net()
            state = game.reset() if done else next_state

    advance(config.learning_starts + 100)
    return advance


def import_authors_code(folder: Path) -> None:
    """Make the modules in `folder` importable, with ale_py in place of atari_py."""
    import ale_py
    from ale_py import roms

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    atari_py: Any = ModuleType("atari_py")
    atari_py.ALEInterface, atari_py.get_game_path = ale_py.ALEInterface, roms.get_rom_path
    sys.modules["atari_py"] = atari_py
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def authors_arguments(agent: str, config: AgentConfig) -> Namespace:
    """Return what their command line and main.py would set for `agent`, with our options."""
    import torch

    return Namespace(
        agent=agent,
        ensemble_size=getattr(config, "ensemble_size", 1),
        architecture="canonical",
        hidden_size=512,
        history_length=4,
        batch_size=config.batch_size,
        discount=config.discount,
        learning_rate=config.learning_rate,
        norm_clip=config.max_grad_norm,
        multi_step=1,
        priority_exponent=0,
        priority_weight=0.4,
        no_target=False,
        model=None,
        game="pong",
        seed=config.seed,
        max_episode_length=108_000,
        device=torch.device("cpu"),
    )

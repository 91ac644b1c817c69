"""Stable-Baselines3's DQN on Atari, wrapped as its users do, with our options."""

from collections.abc import Callable

from ebql.deep.config.base import AgentConfig


def sb3_atari_dqn(config: AgentConfig) -> Callable[[int], None]:
    """Return a function that trains SB3's DQN on Pong for a number of steps; it already learns."""
    import ale_py
    import gymnasium
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack
    from torch.optim import RMSprop

    gymnasium.register_envs(ale_py)
    games = make_atari_env("PongNoFrameskip-v4", n_envs=config.envs, seed=config.seed)
    together = max(config.envs // config.update_period, 1)  # updates after each step of all environments
    model = DQN(
        "CnnPolicy",
        VecFrameStack(games, 4),
        learning_rate=config.learning_rate,
        buffer_size=config.replay_size,
        learning_starts=config.learning_starts,
        batch_size=config.batch_size,
        train_freq=max(config.update_period // config.envs, 1),
        gradient_steps=together,
        target_update_interval=config.target_period,
        exploration_initial_eps=config.epsilon_start,
        exploration_final_eps=config.epsilon_end,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs={
            "optimizer_class": RMSprop,
            "optimizer_kwargs": {"alpha": config.rmsprop_alpha, "eps": config.optimiser_eps},
        },
        seed=config.seed,
        device="cpu",
        verbose=0,
    )

    def advance(steps: int) -> None:
        model.learn(steps, reset_num_timesteps=False, log_interval=10**9)

    advance(config.learning_starts + 100)
    return advance

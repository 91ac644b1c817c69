"""EBQL as an algorithm of Stable-Baselines3."""

from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, ReplayBufferSamples
from torch import Tensor, nn
from torch.nn import functional

from ebql.deep.networks.outputs import ValueOutput
from ebql.deep.targets import Next, ensemble_bootstrap
from ebql.errors import InputTypeError, whole_number
from ebql.sb3.policies import ENSEMBLE_SIZE, POLICIES, EnsemblePolicy, EnsembleQNetwork

_OUTPUT = ValueOutput("huber")


class EBQL(DQN):
    """Ensemble Bootstrapped Q-Learning (Peer et al., 2021) with the arguments and habits of SB3's DQN.

    Online member k selects the next action, and the mean of the other target members evaluates it. Actions
    are ε-greedy on the members' mean. The loss is summed over members. All arguments but `ensemble_size` are
    those of `DQN`. Members share the policy's features extractor and own the layers of `net_arch`.

    >>> model = EBQL("MlpPolicy", "CartPole-v1", ensemble_size=3, seed=0)
    >>> model.q_values(np.zeros((1, 4), np.float32)).shape  # (rows, K, actions)
    (1, 3, 2)
    >>> model.learn(48).num_timesteps  # a multiple of train_freq, 4
    48
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = POLICIES
    q_net: EnsembleQNetwork
    q_net_target: EnsembleQNetwork
    policy: EnsemblePolicy

    def __init__(
        self,
        policy: str | type[EnsemblePolicy],
        env: GymEnv | str,
        *arguments: Any,
        ensemble_size: int = ENSEMBLE_SIZE,
        **options: Any,
    ) -> None:
        if isinstance(policy, type) and not issubclass(policy, EnsemblePolicy):
            raise InputTypeError(
                f"{policy.__name__} has no members: derive your policy from ebql.sb3.EnsemblePolicy."
            )
        self.ensemble_size = whole_number("ensemble_size", ensemble_size, 2)
        super().__init__(policy, env, *arguments, **options)

    def _setup_model(self) -> None:
        """Build the networks; `policy_kwargs` stay as the user gave them."""
        own = self.policy_kwargs
        self.policy_kwargs = {**own, "ensemble_size": self.ensemble_size}
        super()._setup_model()
        self.policy_kwargs = own

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take `gradient_steps` updates of all members, each on one batch from the replay buffer."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        assert self.replay_buffer is not None
        losses = []
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            loss = self.loss(batch)
            losses.append(loss.item())
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

    def loss(self, batch: ReplayBufferSamples) -> Tensor:
        """Return the Huber loss: its mean over the batch, summed over members."""
        targets = self.targets(batch)
        values = self.q_net.members(batch.observations)
        actions = batch.actions.long().unsqueeze(1).expand(-1, self.ensemble_size, -1)
        predictions = values.gather(2, actions).squeeze(2)
        return functional.smooth_l1_loss(predictions, targets, reduction="none").mean(0).sum()

    @torch.no_grad()
    def targets(self, batch: ReplayBufferSamples) -> Tensor:
        """Return what each member learns for each row of the batch, (rows, K)."""
        online = self.q_net.members(batch.next_observations)
        target = self.q_net_target.members(batch.next_observations)
        members = torch.arange(self.ensemble_size, device=target.device)[None]
        bootstrap = ensemble_bootstrap(Next(online, target, target, members))
        discount = self.gamma if batch.discounts is None else batch.discounts
        discounts = (1 - batch.dones) * discount
        return _OUTPUT.target(batch.rewards.squeeze(1), discounts.squeeze(1), bootstrap)

    def q_values(self, observation: NDArray[Any] | dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return the members' action values for observations (rows, …), (rows, K, A)."""
        self.policy.set_training_mode(False)
        tensors, _ = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values: NDArray[np.float32] = self.q_net.members(tensors).cpu().numpy()
        return values

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 4,
        tb_log_name: str = "EBQL",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn for this many environment steps, as `DQN.learn` does."""
        return super().learn(
            total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar
        )

import pytest
import torch

from ebql.deep.config import DQNConfig
from ebql.deep.optimisers import make_optimiser


def test_centred_rmsprop_has_its_epsilon_inside_the_root():
    config = DQNConfig(optimiser="centred-rmsprop", learning_rate=0.1, optimiser_eps=0.19, rmsprop_alpha=0.9)
    weight = torch.tensor([5.0, 7.0])
    optimiser = make_optimiser(config, [weight])
    optimiser.step([0], [torch.tensor([2.0, 0.0])], None)
    # m = 0.2, v = 0.4, v − m² + ε = 0.4 − 0.04 + 0.19 = 0.55; outside the root it would be 0.6 + 0.19.
    assert weight.tolist() == pytest.approx([5 - 0.1 * 2 / 0.55**0.5, 7.0])
    moved = weight[0].item()
    optimiser.step([0], [torch.tensor([4.0, 0.0])], torch.tensor(4.0))
    # The divisor leaves g = 1: m = 0.28, v = 0.46, v − m² + ε = 0.46 − 0.0784 + 0.19.
    assert weight[0].item() == pytest.approx(moved - 0.1 / 0.5716**0.5)
    assert weight[1].item() == 7.0


def test_a_constant_gradient_leaves_no_variance_and_no_nan():
    config = DQNConfig(optimiser="centred-rmsprop", optimiser_eps=1e-12, rmsprop_alpha=0.5)
    weight = torch.zeros(1)
    optimiser = make_optimiser(config, [weight])
    for _ in range(200):
        optimiser.step([0], [torch.full((1,), 1e-3)], None)
    assert weight.isfinite().all()

import pytest
import torch

from ebql.deep.agents import EBQL
from ebql.deep.building import build_learner
from ebql.deep.config.agents import CONFIGS
from ebql.deep.fast import sparse
from ebql.deep.networks.encoders import MinAtarConvolution, encode
from ebql.deep.networks.observations import ObservationSpec

from ..test_learner import batch


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images_of(spec, rows=6, share=0.1):
    return torch.rand(rows, *spec.shape, generator=generator(1)) < share


def both(spec, images, n_members, blocks):
    """Return the features of set pixels and of patches, each with its gradients."""
    encoder = MinAtarConvolution(n_members, spec.image_shape, generator())
    slopes = torch.randn(n_members, len(images) // blocks, encoder.n_features, generator=generator(2))
    found = []
    for inputs in (images, encoder.unfold(encode(spec, images))):
        features = encoder(inputs, blocks)
        found.append([features, *torch.autograd.grad(features, list(encoder.parameters()), slopes)])
    return zip(*found, strict=True)


@pytest.mark.parametrize("shape", [(10, 10, 4), (10, 10, 10), (3, 3, 1), (5, 8, 2)])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_set_pixels_give_the_features_and_gradients_of_patches(shape, share):
    spec = ObservationSpec(shape, "bool")
    for of_pixels, of_patches in both(spec, images_of(spec, share=share), n_members=1, blocks=1):
        torch.testing.assert_close(of_pixels, of_patches, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [1, 3])
def test_members_see_all_images_or_their_own_block(blocks):
    spec = ObservationSpec((10, 10, 4), "bool")
    for of_pixels, of_patches in both(spec, images_of(spec), n_members=3, blocks=blocks):
        torch.testing.assert_close(of_pixels, of_patches, rtol=1e-4, atol=1e-4)


def test_one_pixel_by_hand():
    """A pixel in the corner is seen by one patch only, at the patch's own corner."""
    image = torch.zeros(1, 4, 4, 1, dtype=torch.bool)
    image[0, 3, 3] = True
    weight = torch.arange(9.0)[:, None].expand(9, 16)[None]
    features = sparse.convolved(image, weight, torch.full((1, 1, 16), -1.0), 1).view(4, 16)
    assert (features[:3] == 0).all()  # the bias alone, rectified
    assert (features[3] == 7).all()  # weight 8, minus 1; decoys: the weights 0 to 7 of the other places


def test_a_weight_that_is_no_number_reaches_the_features():
    image, weight = torch.ones(1, 3, 3, 1, dtype=torch.bool), torch.full((1, 9, 16), torch.nan)
    assert sparse.convolved(image, weight, torch.zeros(1, 1, 16), 1).isnan().all()


@pytest.mark.parametrize(
    ("spec", "observations", "applies"),
    [
        (ObservationSpec((10, 10, 4), "bool"), torch.zeros(2, 10, 10, 4, dtype=torch.bool), True),
        (ObservationSpec((4, 10, 10), "bool"), torch.zeros(2, 4, 10, 10, dtype=torch.bool), False),
        (ObservationSpec((10, 10, 4), "uint8"), torch.zeros(2, 10, 10, 4, dtype=torch.uint8), False),
        (
            ObservationSpec((10, 10, 4), "bool"),
            torch.zeros(2, 10, 10, 4, dtype=torch.bool, device="meta"),
            False,
        ),
    ],
)
def test_only_binary_images_with_channels_last_on_a_cpu_are_left_as_they_are(spec, observations, applies):
    assert sparse.applies(spec, observations) == applies


@pytest.mark.parametrize("name", CONFIGS)
def test_every_agent_learns_alike_from_pixels_and_from_patches(name, monkeypatch):
    spec = ObservationSpec((5, 5, 2), "bool")
    config = CONFIGS[name]().override(hidden=(16,), v_min=-4.0, v_max=4.0, n_step=1, torso="minatar")

    def trained():
        learner = build_learner(config, spec, n_actions=2)
        masks = config.ensemble().size if config.ensemble().data == "masked" else 0
        for update in range(4):
            rows = batch(learner.rows, n_masks=masks, seed=update)
            seen = [images_of(spec, learner.rows, share).numpy() for share in (0.2, 0.3)]
            learner.update(rows._replace(observations=seen[0], next_observations=seen[1]))
        return learner

    by_pixels = trained()
    monkeypatch.setenv("EBQL_PLAIN", "1")
    by_patches = trained()
    for a, b in zip(by_pixels.online.parameters(), by_patches.online.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-5)


def test_training_on_minatar_acts_and_learns_without_patches(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(MinAtarConvolution, "unfold", refuse)
    small = {"hidden": (8,), "ensemble_size": 2, "learning_starts": 8, "batch_size": 4}
    assert EBQL("MinAtar/Breakout-v1", **small).learn(20)._learner.updates > 0

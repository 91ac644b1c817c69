"""From a config to a network, a learner on its device, and the lanes to play in."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ebql.deep.config.base import AgentConfig
from ebql.deep.learner import Learner
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.capacity import available_memory
from ebql.environments import AtariProtocol, Environment, Lanes, atari_protocol, make_lanes
from ebql.errors import InputError

# The side of the smallest image of which a torso's convolutions leave something.
_SMALLEST = {"nature": 36, "small": 25, "minatar": 3}
# The options that the size of an agent's networks depends on.
_SIZES = "hidden, atoms, ensemble-size or snapshots"


def build_learner(config: AgentConfig, spec: ObservationSpec, n_actions: int) -> Learner:
    """Return a learner with freshly initialised members; equal seeds give equal members."""
    device = _device(config.device)
    if device.type == "cpu":
        _require_memory(config, spec, n_actions)
    return Learner(config, build_network(config, spec, n_actions, device))


def build_network(
    config: AgentConfig, spec: ObservationSpec, n_actions: int, device: torch.device | None = None
) -> QNetwork:
    """Return freshly initialised members, on `device` or PyTorch's default one."""
    ensemble = config.ensemble()
    generator = torch.Generator().manual_seed(config.seed)

    def initialised(noise_scale: float | None = None) -> QNetwork:
        return QNetwork(
            spec,
            n_actions,
            ensemble.size,
            torso=_torso(config, spec),
            hidden=config.hidden,
            own_layers=config.own_layers,
            share_torso=ensemble.share_torso,
            generator=generator,
            atoms=config.atoms,
            dueling=config.dueling,
            noise_scale=noise_scale,
        )

    network = initialised(config.noise_scale if config.noisy else None).to(device)
    if ensemble.prior_scale:
        network.add_prior(initialised().to(device), ensemble.prior_scale)
    return network


def protocol_of(config: AgentConfig) -> AtariProtocol:
    """Return how an agent with this config plays Atari games."""
    return atari_protocol(config.atari_protocol, full_action_space=config.full_action_space)


def build_lanes(config: AgentConfig, environment: Environment, n_lanes: int) -> Lanes:
    """Return lanes for an agent with this config, over whatever `make_lanes` takes."""
    return make_lanes(environment, n_lanes, protocol=protocol_of(config))


def _require_memory(config: AgentConfig, spec: ObservationSpec, n_actions: int) -> None:
    """Refuse networks that will not fit into memory; networks on the meta device have shapes but no data."""
    plain = config.override(noisy=False)
    try:
        with torch.device("meta"):
            n_weights = sum(x.numel() for x in build_network(plain, spec, n_actions).parameters())
    except RuntimeError as error:  # more than 64 bits can count
        raise InputError(f"The networks are too large: lower {_SIZES}.") from error
    ensemble = config.ensemble()
    # Online weights, gradients, the optimiser's two moments and the targets; noise doubles the parameters.
    copies = (4 + max(ensemble.snapshots, 1)) * (1 + config.noisy) + bool(ensemble.prior_scale)
    needed, available = n_weights * copies * torch.float32.itemsize, available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"The networks need about {needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB of memory are "
            f"free: lower {_SIZES}."
        )


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"Unknown device {name!r}: use cpu, cuda or cuda:1.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("No CUDA device is available here: use --device cpu.")
    return device


def _torso(config: AgentConfig, spec: ObservationSpec) -> str:
    if config.torso != "auto":
        smallest = _SMALLEST.get(config.torso)
        if smallest is not None and min(spec.image_shape[:2]) < smallest:
            height, width, _ = spec.image_shape
            raise InputError(
                f"The torso {config.torso} needs images of {smallest} × {smallest} at least, "
                f"not {height} × {width}."
            )
        return config.torso
    if not spec.is_image:
        return "mlp"
    side = min(spec.image_shape[:2])
    return "nature" if side >= _SMALLEST["nature"] else "minatar" if side >= _SMALLEST["minatar"] else "mlp"


@contextmanager
def torch_settings(config: AgentConfig) -> Iterator[None]:
    """Use the config's number of threads, and round denormal numbers, which are slow, to zero."""
    before = torch.get_num_threads()
    torch.set_num_threads(config.threads or before)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        # Back to the processor's own way: other code in the process may count on tiny numbers.
        torch.set_flush_denormal(False)

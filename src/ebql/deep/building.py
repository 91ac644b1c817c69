"""Builds what an agent consists of: its network, its learner on a device, and its lanes."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ebql.deep.config.agents import config_type
from ebql.deep.config.base import AgentConfig
from ebql.deep.fast.bfloat16 import gains_by_bfloat16
from ebql.deep.fast.memory import keep_freed_memory
from ebql.deep.learner import Learner
from ebql.deep.networks.encoders import SMALLEST, fitting_torso
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.normalisation import Normaliser
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.own import OwnModules
from ebql.deep.networks.spaces import Spaces
from ebql.deep.replay.capacity import available_memory
from ebql.environments import AtariProtocol, Environment, Lanes, atari_protocol, make_lanes
from ebql.environments.sources import given, id_of
from ebql.errors import InputError

# The options that determine the size of an agent's networks.
_SIZE_OPTIONS = "hidden, atoms, quantiles, ensemble-size or snapshots"


@dataclass(frozen=True)
class Blueprint:
    """What an agent is built from."""

    config: AgentConfig
    spaces: Spaces
    environment: Environment | None
    """Where it trains; None without an environment, or if a file does not know it."""
    preset: str | None
    """The preset that the config comes from, if any."""
    own: OwnModules

    @classmethod
    def from_json(
        cls, description: Mapping[str, Any], environment: Environment | None, own: OwnModules
    ) -> "Blueprint":
        """Return the blueprint in a saved file or a run, with `environment`, if given, for the one there."""
        return cls(
            config_type(description["agent"]).from_json(description["options"]),
            Spaces.from_json(description),
            given(environment) if environment is not None else description["environment"],
            description.get("preset"),
            own,
        )

    def to_json(self) -> dict[str, Any]:
        """Return what files keep: of the environment its id, and of the user's modules their names."""
        own = self.own.described()
        return {
            "agent": self.config.name,
            "environment": self.environment if isinstance(self.environment, str) else None,
            **self.spaces.to_json(),
            "preset": self.preset,
            "options": self.config.to_json(),
            **({"own": own} if own else {}),
        }

    @property
    def title(self) -> str:
        """The agent and its environment, in words."""
        name = None if self.environment is None else id_of(self.environment)
        return f"{self.config.name} on {name or 'an environment of its own'}"

    def learner(self) -> Learner:
        """Return a learner with freshly initialised members; equal seeds give equal members."""
        return build_learner(self.config, self.spaces.observations, self.spaces.n_actions, self.own)

    def lanes(self, n_lanes: int) -> Lanes:
        """Return lanes of the environment; refuse one whose observations or actions do not fit."""
        if self.environment is None:
            raise InputError("This agent's environment was a Python object: pass it again as `environment`.")
        lanes = build_lanes(self.config, self.environment, n_lanes)
        self.spaces.require_fit(lanes)
        return lanes


def build_learner(
    config: AgentConfig, spec: ObservationSpec, n_actions: int, own: OwnModules | None = None
) -> Learner:
    """Return a learner with freshly initialised members; equal seeds give equal members."""
    device, own = _device(config.device), own or OwnModules()
    own.check(config)
    if device.type == "cpu" and own == OwnModules():
        _require_memory(config, spec, n_actions)
    return Learner(config, build_network(config, spec, n_actions, device, own))


def build_network(
    config: AgentConfig,
    spec: ObservationSpec,
    n_actions: int,
    device: torch.device | None = None,
    own: OwnModules | None = None,
) -> QNetwork:
    """Return freshly initialised members, on `device` or PyTorch's default one."""
    ensemble = config.ensemble()
    generator = torch.Generator().manual_seed(config.seed)

    def initialised(noise_scale: float | None = None) -> QNetwork:
        own_modules = None if own is None else own.made(config, spec, n_actions, generator)
        return QNetwork(
            spec,
            n_actions,
            ensemble.size,
            torso=_torso(config, spec) if own_modules is None else "own",
            hidden=config.hidden,
            own_layers=config.own_layers,
            share_torso=ensemble.share_torso,
            generator=generator,
            atoms=config.outputs_per_action,
            dueling=config.dueling,
            noise_scale=noise_scale,
            activation=config.activation,
            layer_norm=config.layer_norm,
            own=own_modules,
            fractions=None if config.implicit_quantiles is None else config.policy_fractions,
        )

    network = initialised(config.noise_scale if config.noisy else None).to(device)
    if config.normalise_observations:
        _require_numbers(spec)
        network.normaliser = Normaliser(spec.shape)
    if ensemble.prior_scale:
        network.add_prior(initialised().to(device), ensemble.prior_scale)
    return network


def protocol_of(config: AgentConfig) -> AtariProtocol:
    """Return the protocol by which an agent with this config plays Atari games."""
    return atari_protocol(config.atari_protocol, full_action_space=config.full_action_space)


def build_lanes(config: AgentConfig, environment: Environment, n_lanes: int) -> Lanes:
    """Return lanes for an agent with this config; `environment` is anything that `make_lanes` accepts."""
    return make_lanes(environment, n_lanes, protocol=protocol_of(config), action_masks=config.action_masks)


def _require_memory(config: AgentConfig, spec: ObservationSpec, n_actions: int) -> None:
    """Refuse networks that will not fit into memory; on the meta device, networks take none."""
    plain = config.override(noisy=False)
    try:
        with torch.device("meta"):
            n_weights = sum(x.numel() for x in build_network(plain, spec, n_actions).parameters())
    except RuntimeError as error:  # a size of more than 64 bits
        raise InputError(f"The networks are too large: lower {_SIZE_OPTIONS}.") from error
    ensemble = config.ensemble()
    # Online weights, gradients, the optimiser's two moments and the targets; noise doubles all of them.
    copies = (4 + max(ensemble.snapshots, 1)) * (1 + config.noisy) + bool(ensemble.prior_scale)
    needed, available = n_weights * copies * torch.float32.itemsize, available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"The networks need about {needed / 1e9:.1f} GB, but only {available / 1e9:.1f} GB of memory is "
            f"free: lower {_SIZE_OPTIONS}."
        )


def _require_numbers(spec: ObservationSpec) -> None:
    if spec.n_categories is not None or spec.is_image or spec.dtype == "uint8":
        raise InputError(
            "normalise-observations is for vectors of numbers: images, bytes and categories are scaled "
            "already."
        )


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"Unknown device {name!r}: use cpu, cuda or cuda:1.") from error
    if device.type not in ("cpu", "cuda"):  # torch knows more, such as meta, whose numbers have no values
        raise InputError(f"Agents cannot use the device {name!r}: use cpu, cuda or cuda:1.")
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise InputError("No CUDA device is available: use --device cpu.")
        if (device.index or 0) >= torch.cuda.device_count():
            n_devices = torch.cuda.device_count()
            raise InputError(f"There is no device {name!r}: the number of CUDA devices is {n_devices}.")
    return device


def _torso(config: AgentConfig, spec: ObservationSpec) -> str:
    if config.torso != "auto":
        smallest = SMALLEST.get(config.torso)
        for image in spec.image_leaves or (spec,):
            if smallest is not None and min(image.image_shape[:2]) < smallest:
                height, width, _ = image.image_shape
                raise InputError(
                    f"The torso {config.torso} needs images of at least {smallest} × {smallest} pixels, "
                    f"not {height} × {width}."
                )
        return config.torso
    if spec.image_leaves:
        return "auto"
    return fitting_torso(spec.image_shape) if spec.is_image else "mlp"


@contextmanager
def torch_settings(config: AgentConfig) -> Iterator[None]:
    """Set the config's number of threads, and flush denormal numbers, which are slow, to zero.

    Warn of a precision that is slow on this machine.
    """
    if config.precision == "bfloat16" and not gains_by_bfloat16(_device(config.device)):
        warnings.warn(
            "This machine multiplies matrices more slowly in bfloat16 than in float32: "
            "leave out --precision bfloat16.",
            stacklevel=4,
        )
    keep_freed_memory()
    torch.set_flush_denormal(True)
    try:
        with torch_threads(config):
            yield
    finally:
        # Back to the default: other code in this process may rely on denormal numbers.
        torch.set_flush_denormal(False)


class torch_threads:  # noqa: N801 - a context manager, as a class because it is entered for every action
    """Set the config's number of threads inside the context; nested contexts cost next to nothing."""

    def __init__(self, config: AgentConfig) -> None:
        self._wanted = config.threads

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        if self._wanted and self._wanted != self._before:
            torch.set_num_threads(self._wanted)

    def __exit__(self, *_: object) -> None:
        if self._wanted and self._wanted != self._before:
            torch.set_num_threads(self._before)

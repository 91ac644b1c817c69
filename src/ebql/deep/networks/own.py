"""Networks of the user's own: an encoder below our heads, or a whole network.

They are ordinary PyTorch modules, made by a class or a function that the user passes. A module sees
observations as floats in the shape that they have in the environment: bytes are scaled to [0, 1], a category
is one-hot. It is in training mode only while a loss is computed.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import gymnasium
import torch
from torch import Tensor, nn

from ebql.deep.config.base import AgentConfig
from ebql.deep.networks.encoders import to_floats
from ebql.deep.networks.observations import ObservationSpec
from ebql.errors import InputError, InputTypeError

MakeEncoder = Callable[[gymnasium.Space[Any]], nn.Module]
"""Maps the observation space to a module from observations (rows, …) to features (rows, n)."""
MakeNetwork = Callable[[gymnasium.Space[Any], int, int], nn.Module]
"""Maps the observation space, the numbers of actions A and members K to a module from observations to outputs
(rows, K, A), or (rows, K, A, Z) with Z atoms or quantiles."""

_ROWS = 2  # observations that a new module is tried on


class OwnEncoder(nn.Module):
    """Encoders of the user's: one that members share, or one for each."""

    def __init__(self, modules: Sequence[nn.Module], n_features: int) -> None:
        super().__init__()
        self.own = nn.ModuleList(modules)
        self.n_features = n_features

    def forward(self, observations: Tensor, blocks: int = 1) -> Tensor:
        """Map observations (rows, …) to features (M, rows / blocks, n_features)."""
        rows = observations.chunk(blocks) if blocks > 1 else [observations] * len(self.own)
        return torch.stack([_called(module, own) for module, own in zip(self.own, rows, strict=True)])

    def member(self, k: int) -> Self:
        """Return the encoder of member `k`: the module itself, not a copy."""
        return type(self)([self.own[k if len(self.own) > 1 else 0]], self.n_features)

    def copies(self, n: int) -> Self:
        """Return `n` copies of a single encoder."""
        (module,) = self.own
        return type(self)([deepcopy(module) for _ in range(n)], self.n_features)


class OwnNetwork(OwnEncoder):
    """Whole networks of the user's: one of K members, or n copies of a network with one member.

    For the layers above, which are empty, outputs are features that differ by member.
    """

    def forward(self, observations: Tensor, blocks: int = 1) -> Tensor:
        """Map observations (rows, …) to outputs (K, rows / blocks, A Z), of each member's own block."""
        outputs = torch.cat([_called(module, observations) for module in self.own], 1)
        by_member = outputs.float().flatten(2).transpose(0, 1)  # under autocast they are bfloat16
        if blocks == 1:
            return by_member
        own = torch.arange(blocks, device=by_member.device)
        return by_member.reshape(blocks, blocks, -1, self.n_features)[own, own]


@dataclass(frozen=True)
class OwnModules:
    """What makes the user's modules; without both, the network is ours."""

    encoder: MakeEncoder | None = None
    network: MakeNetwork | None = None

    def check(self, config: AgentConfig) -> None:
        """Refuse options that need our layers where a whole network replaces them."""
        if self.encoder is not None and self.network is not None:
            raise InputError("Pass an encoder or a network, not both: a network includes its encoder.")
        if self.network is None:
            return
        ensemble = config.ensemble()
        refused = {
            "dueling": config.dueling,
            "noisy": config.noisy,
            "implicit-quantiles": config.implicit_quantiles is not None,
            "members cycle": ensemble.members == "cycle",
            "share-torso off": not ensemble.share_torso,
            "torso-gradient mean": ensemble.torso_gradient == "mean",
        }
        for option, given in refused.items():
            if given:
                raise InputError(
                    f"{option} does not work with a network of your own, which is one module for all "
                    "members: pass an encoder instead, or leave it out."
                )

    def made(
        self, config: AgentConfig, spec: ObservationSpec, n_actions: int, generator: torch.Generator
    ) -> OwnEncoder | None:
        """Return new modules for an agent's members, checked on a few observations; None without any.

        They draw their weights from PyTorch's global generator, which is seeded for them and then restored.
        """
        if self == OwnModules():
            return None
        ensemble, space = config.ensemble(), spec.space()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            if self.network is not None:
                network = _module("network", self.network, space, n_actions, ensemble.size)
                shape = _shape("network", self.network, network, spec, config.precision)
                n_outputs = config.outputs_per_action
                wanted = (ensemble.size, n_actions, *([] if n_outputs is None else [n_outputs]))
                _require(
                    shape[1:] == wanted, "network", self.network, f"outputs {_with_rows(*wanted)}", shape
                )
                return OwnNetwork([network], n_actions * (n_outputs or 1))
            n_encoders = 1 if ensemble.share_torso else ensemble.size
            encoders = [_module("encoder", self.encoder, space) for _ in range(n_encoders)]
            shapes = [
                _shape("encoder", self.encoder, encoder, spec, config.precision) for encoder in encoders
            ]
        for shape in shapes:
            fits = len(shape) == 2 and shape[1] > 0 and shape == shapes[0]
            _require(fits, "encoder", self.encoder, f"features {_with_rows('n')}", shape)
        return OwnEncoder(encoders, shapes[0][1])

    def described(self) -> dict[str, str]:
        """Return the names of what makes the modules, for files; nothing is ever imported by them."""
        made_by = {"encoder": self.encoder, "network": self.network}
        return {role: name_of(make) for role, make in made_by.items() if make is not None}

    def require(self, described: dict[str, str], call: str) -> None:
        """Refuse an agent whose modules were not passed; `call` is the call that lacks them."""
        for role, make in (("encoder", self.encoder), ("network", self.network)):
            name = described.get(role)
            if name is not None and make is None:
                raise InputError(
                    f"This agent has the {role} {name}, which is code and not in the file: "
                    f"{call}, {role}={name})."
                )
            if name is None and make is not None:
                raise InputError(f"This agent was made without {role}: leave {role} out.")


def name_of(make: Callable[..., Any]) -> str:
    """Return the name of a class or function, also inside a `functools.partial`."""
    if isinstance(make, partial):
        return name_of(make.func)
    return str(getattr(make, "__name__", type(make).__name__))


def _called(module: nn.Module, observations: Tensor) -> Tensor:
    """Return the module's output; dropout and batch statistics are for passes with gradients alone."""
    if module.training != torch.is_grad_enabled():
        module.train(torch.is_grad_enabled())
    output: Tensor = module(observations)
    return output


def _module(role: str, make: Any, *arguments: Any) -> nn.Module:
    if not callable(make) or isinstance(make, nn.Module):
        given = f"the module {type(make).__name__}" if isinstance(make, nn.Module) else repr(make)
        raise InputTypeError(f"{role} must be a class or function that makes a torch.nn.Module, not {given}.")
    module = make(*arguments)
    if not isinstance(module, nn.Module):
        raise InputTypeError(f"The {role} {name_of(make)} must make a torch.nn.Module, not {module!r}.")
    return module


def _shape(role: str, make: Any, module: nn.Module, spec: ObservationSpec, precision: str) -> tuple[int, ...]:
    """Return the shape of a module's output for a few observations; refuse what is no float32 tensor."""
    example = to_floats(spec, spec.examples(_ROWS))
    try:
        output: Any = _called(module, example)
        if precision == "bfloat16":  # which some modules cannot compute in
            with torch.autocast("cpu", torch.bfloat16):
                _called(module, example)
    except Exception as error:  # a user's module can raise anything
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"The {role} {name_of(make)} fails on observations of shape {tuple(example.shape)}: {why}"
        ) from error
    if not isinstance(output, Tensor) or output.dtype != torch.float32:
        found = str(output.dtype) if isinstance(output, Tensor) else type(output).__name__
        raise InputTypeError(f"The {role} {name_of(make)} must return a tensor of float32, not {found}.")
    shape = tuple(output.shape)
    _require(shape[:1] == (_ROWS,), role, make, "a row for each observation", shape)
    return shape


def _require(fits: bool, role: str, make: Any, wanted: str, shape: tuple[int, ...]) -> None:
    if not fits:
        raise InputError(
            f"The {role} {name_of(make)} must return {wanted}, "
            f"but for {_ROWS} observations it returned {shape}."
        )


def _with_rows(*axes: object) -> str:
    return f"(rows, {', '.join(map(str, axes))})"

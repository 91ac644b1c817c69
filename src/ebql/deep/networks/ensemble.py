"""Q-networks of K members, computed together: no layer loops over members.

A layer of K members is one `(K, in, out)` parameter and one product. Activations are `(M, rows, features)`.
M is 1 while the members share everything, and K from the first layer that they own. Rows may also come as K
blocks, one for each member; then each member computes its own block only.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ebql.deep import fast
from ebql.deep.fast import sparse
from ebql.deep.fast.dense import Pair
from ebql.deep.networks.encoders import MinAtarConvolution, encode, make_encoder, to_floats
from ebql.deep.networks.heads import MLP, DuelingHeads, FractionEmbedding, NoisyMLP
from ebql.deep.networks.layers import MemberLinear, MemberMLP
from ebql.deep.networks.normalisation import Normaliser
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.own import OwnEncoder, OwnNetwork


class QNetwork(nn.Module):
    """K members' action values, from a torso that they share, or from one torso each.

    A torso is an encoder and the dense layers that members share. `hidden` are the widths of all dense layers
    after the encoder. The last `own_layers` of them belong to each member, the rest to the torso: 1 is the
    authors' choice for Atari (shared convolutions; own hidden layer and own output), 0 leaves each member a
    linear output. With `atoms`, each action has that many outputs. With a `noise_scale`, every dense layer is
    noisy. With `dueling`, each member has two streams. `own` is the user's encoder in the place of `torso`,
    or the user's whole network, with no layers of ours above it. With `fractions`, outputs are quantiles as a
    function of their fractions (IQN), by default at that many midpoints.
    """

    def __init__(
        self,
        spec: ObservationSpec,
        n_actions: int,
        n_members: int,
        *,
        torso: str,
        hidden: Sequence[int],
        own_layers: int,
        share_torso: bool,
        generator: torch.Generator,
        atoms: int | None = None,
        dueling: bool = False,
        noise_scale: float | None = None,
        activation: str = "relu",
        layer_norm: bool = False,
        own: OwnEncoder | None = None,
        fractions: int | None = None,
    ) -> None:
        super().__init__()
        self.spec, self.n_members, self.n_actions, self.atoms = spec, n_members, n_actions, atoms
        self._form: dict[str, Any] = {
            "torso": torso,
            "hidden": hidden,
            "own_layers": own_layers,
            "share_torso": share_torso,
            "atoms": atoms,
            "dueling": dueling,
            "noise_scale": noise_scale,
            "activation": activation,
            "layer_norm": layer_norm,
            "fractions": fractions,
        }
        form: dict[str, Any] = {"activation": activation, "layer_norm": layer_norm}

        def mlp(n: int, sizes: Sequence[int], *, activate_last: bool) -> MLP:
            if noise_scale is None:
                return MemberMLP(n, sizes, generator, activate_last=activate_last, **form)
            return NoisyMLP(n, sizes, generator, activate_last=activate_last, noise_scale=noise_scale, **form)

        is_whole = isinstance(own, OwnNetwork)
        self._n_torsos = n_torsos = 1 if share_torso and not is_whole else n_members
        encoder = own if own is not None else make_encoder(torso, spec, n_torsos, generator)
        n_outputs = atoms or 1
        layers = () if is_whole else (*hidden, n_actions * n_outputs)
        n_shared = max(len(layers) - 1 - own_layers, 0)
        torso_sizes = (encoder.n_features, *layers[:n_shared])
        dense = mlp(n_torsos, torso_sizes, activate_last=True)
        self._embedding: tuple[FractionEmbedding, ...] = ()  # a tuple, as it is a submodule of the torso
        if fractions is not None:
            cosines = mlp(n_torsos, (FractionEmbedding.N_COSINES, torso_sizes[-1]), activate_last=True)
            self._embedding = (FractionEmbedding(cosines, fractions),)
        self.torso = nn.Sequential(encoder, dense, *self._embedding)
        own_sizes = (torso_sizes[-1], *layers[n_shared:])
        self.heads: MLP | DuelingHeads
        self.heads = by_action = mlp(n_members, own_sizes, activate_last=False)
        if dueling:
            value = mlp(n_members, (*own_sizes[:-1], n_outputs), activate_last=False)
            self.heads = DuelingHeads(value, by_action, n_actions)
        self.stages = encoder, dense, self.heads
        self._noisy = [module for module in self.modules() if isinstance(module, NoisyMLP)]
        self.normaliser: Normaliser | None = None
        """Scales observations, if the agent normalises them; the online members' one is used for all."""
        self._prior: tuple[QNetwork, float] | None = None  # in a tuple, so that it is not a submodule

    def forward(self, observations: Tensor, *, own_rows: bool = False) -> Tensor:
        """Return outputs (rows, K, A), or (rows, K, A, Z) with atoms, of observations (rows, …) as stored.

        With `own_rows`, the rows are K blocks of equal length, and the outputs (rows, 1, A[, Z]) of each
        block are those of its own member alone.
        """
        return self.outputs(self.encode(observations), own_rows=own_rows)

    def encode(self, observations: Tensor) -> Tensor:
        """Return stored observations (rows, …) as what the encoder takes: floats, or patches of images.

        Binary images stay as they are if their set pixels are convolved.
        """
        encoder = self.stages[0]
        if isinstance(encoder, MinAtarConvolution) and sparse.applies(self.spec, observations):
            return observations
        if isinstance(encoder, OwnEncoder):
            floats = to_floats(self.spec, observations)
        else:
            floats = encoder.unfold(encode(self.spec, observations))
        return floats if self.normaliser is None else self.normaliser(floats)

    def outputs(self, encoded: Tensor, *, own_rows: bool = False, fractions: Tensor | None = None) -> Tensor:
        """Return `forward` of observations that `encode` has turned into floats.

        A network of implicit quantiles returns (rows, K or 1, A, N), at fractions (rows, N).
        """
        encoder, dense, heads = self.stages
        # `forward` and not a call: looking for hooks, of which there are none, would double an action's time.
        blocks = self._n_torsos if own_rows else 1
        features, n_fractions = dense.forward(encoder.forward(encoded, blocks)), 0
        for embedding in self._embedding:
            features, n_fractions = embedding.forward(features, fractions, blocks)
        if own_rows:
            by_member = heads.forward(features.reshape(self.n_members, -1, features.shape[-1]))
            outputs = by_member.reshape(-1, 1, by_member.shape[-1])
        else:
            outputs = heads.forward(features).transpose(0, 1)
        if n_fractions:
            return outputs.reshape(-1, n_fractions, *outputs.shape[1:]).movedim(1, -1)
        return self._finished(outputs, encoded, own_rows)

    def both_outputs(self, encoded: Tensor, others: Tensor) -> Pair:
        """Return `outputs` of each, with gradients for the first only.

        Large layers read their weights once for both, which is faster than two passes.
        """
        encoder, dense, heads = self.stages
        features = encoder.forward(encoded)
        with torch.no_grad():
            features_of_others = encoder.forward(others)
        by_member, by_member_of_others = heads.both(*dense.both(features, features_of_others))
        outputs = self._finished(by_member.transpose(0, 1), encoded, own_rows=False)
        return outputs, self._finished(by_member_of_others.transpose(0, 1), others, own_rows=False)

    def _finished(self, outputs: Tensor, encoded: Tensor, own_rows: bool) -> Tensor:
        """Return outputs (rows, members, A Z) with the prior added and the atoms on their own axis."""
        if self._prior is not None:
            prior, scale = self._prior
            with torch.no_grad():
                of_prior = prior.outputs(encoded, own_rows=own_rows)
            outputs = outputs + scale * of_prior
        return (
            outputs if self.atoms is None else outputs.reshape(*outputs.shape[:2], self.n_actions, self.atoms)
        )

    def add_prior(self, prior: "QNetwork", scale: float) -> None:
        """Add `scale` times the outputs of a fixed `prior` network (Osband et al., 2018)."""
        self._prior = (prior.requires_grad_(False), scale)

    @property
    def prior(self) -> "QNetwork | None":
        """The fixed network whose outputs are added."""
        return None if self._prior is None else self._prior[0]

    @property
    def prior_scale(self) -> float:
        """What the outputs of the prior are multiplied by; 0 without a prior."""
        return 0.0 if self._prior is None else self._prior[1]

    @property
    def embedding(self) -> FractionEmbedding | None:
        """What turns features into those of quantiles, if the outputs are quantiles of any fractions."""
        return self._embedding[0] if self._embedding else None

    @property
    def own(self) -> OwnEncoder | None:
        """The user's modules, if the encoder is made of them."""
        encoder = self.stages[0]
        return encoder if isinstance(encoder, OwnEncoder) else None

    @property
    def is_implicit(self) -> bool:
        """Whether the outputs are quantiles as a function of fractions."""
        return bool(self._embedding)

    @property
    def is_noisy(self) -> bool:
        """Whether the outputs depend on noise."""
        return bool(self._noisy)

    def resample(self, generator: torch.Generator) -> None:
        """Draw new noise, if the network is noisy."""
        for mlp in self._noisy:
            mlp.resample(generator)

    def refresh_noise_cache(self) -> None:
        """Compute the noisy weights once for all passes; call this again after every change of parameters."""
        if fast.enabled():
            for mlp in self._noisy:
                mlp.refresh_cache()

    def pack(self, rows: int) -> None:
        """Prepare the weights for many passes without gradients, of about this many rows.

        Call this again after every change of the parameters.
        """
        self.refresh_noise_cache()
        if self._n_torsos > 1:  # features differ by member, and packed weights serve shared ones only
            return
        for module in self.modules():
            if isinstance(module, MemberLinear):
                module.pack(rows)

    @contextmanager
    def without_noise(self) -> Iterator[None]:
        """Leave the noise out within the context."""
        for mlp in self._noisy:
            mlp.noise_off = True
        try:
            yield
        finally:
            for mlp in self._noisy:
                mlp.noise_off = False

    def member(self, k: int) -> "QNetwork":
        """Return member `k` as a network of one; its parameters are views of this network's."""
        own = None if self.own is None else self.own.member(k)
        one = QNetwork(self.spec, self.n_actions, 1, **self._form, generator=torch.Generator(), own=own)
        for view, tensor in zip(one.tensors(), self.tensors(), strict=True):
            n_owners = len(tensor) // len(view)
            view.data = tensor.detach().chunk(n_owners)[k if n_owners > 1 else 0]
        if self._prior is not None:
            one.add_prior(self._prior[0].member(k), self._prior[1])
        return one

    def copies(self, n: int) -> "QNetwork":
        """Return a network of `n` members that share nothing, each a copy of this network of one."""
        form = {**self._form, "share_torso": False}
        own = None if self.own is None else self.own.copies(n)
        many = QNetwork(self.spec, self.n_actions, n, **form, generator=torch.Generator(), own=own)
        for tensor, copied in zip(many.tensors(), self.tensors(), strict=True):
            tensor.data = copied.detach().repeat(n, *[1] * (copied.ndim - 1))
        return many

    def tensors(self) -> list[Tensor]:
        """Return our layers' parameters and noise; the first axis of each can be cut into members."""
        ours = (*(self.stages if self.own is None else self.stages[1:]), *self._embedding)
        return [tensor for stage in ours for tensor in (*stage.parameters(), *stage.buffers())]

    def owner(self, parameter: str) -> int | None:
        """Return the member that owns this whole parameter, by its name; None if there is no such member."""
        if self.own is None or len(self.own.own) == 1:
            return None
        found = re.match(r"torso\.0\.own\.(\d+)\.", parameter)
        return None if found is None else int(found[1])

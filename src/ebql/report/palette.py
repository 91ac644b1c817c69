"""The colours of agents, the same in pictures and in the lab."""

from collections.abc import Sequence

import numpy as np

# Okabe and Ito's colours, which colour-blind people can distinguish. Markers differ too.
_FIXED = {"DQN": "#d55e00", "DoubleDQN": "#0072b2", "QL": "#d55e00", "DQL": "#0072b2"}
_SPARE = ("#cc79a7", "#e69f00", "#56b4e9", "#7a6c5d", "#8e5ea2", "#4f6d7a")
_GREENS = ("#5fd3ae", "#009e73", "#004d38")  # from few members to many


def colours(labels: Sequence[str]) -> dict[str, str]:
    """Return a colour for each label: DQN red, double DQN blue, EBQL green, darker with more members."""
    ensembles = sorted((label for label in labels if _size(label) is not None), key=lambda x: _size(x) or 0)
    shades = [0.5] if len(ensembles) == 1 else np.linspace(0.1, 1, len(ensembles))
    palette = {label: _green(float(shade)) for label, shade in zip(ensembles, shades, strict=True)}
    others = [label for label in labels if label not in palette]
    unnamed = [label for label in others if label not in _FIXED]
    palette |= {label: _FIXED[label] for label in others if label in _FIXED}
    return palette | {label: _SPARE[i % len(_SPARE)] for i, label in enumerate(unnamed)}


def _green(shade: float) -> str:
    """Return a green from light (0) over EBQL's own (0.5) to dark (1)."""
    channels = np.array([[int(green[i : i + 2], 16) for i in (1, 3, 5)] for green in _GREENS])
    mixed = [round(float(np.interp(shade, (0, 0.5, 1), channel))) for channel in channels.T]
    return "#" + "".join(f"{level:02x}" for level in mixed)


def _size(label: str) -> int | None:
    """Return the number of members if a label is EBQL with nothing but it: 5 for EBQL K=5 and EBQL 5."""
    size = label.removeprefix("EBQL ").removeprefix("K=")
    return int(size) if size != label and size.isdecimal() else None

"""Figure 4, the Meta-Chain, drawn, and its section of the report page."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from ebql.environments import PAPER_MEANS
from ebql.report.paper.section import FigureFolder, Section

RADIUS = 0.32
POSITIONS = {"C": (0.0, 0.0), "A": (2.0, 0.0), "B": (4.0, 0.0), "D": (6.6, 0.0)}
TERMINAL = {"C", "D"}


def figure_4_section(folder: FigureFolder) -> Section:
    """Draw and write figure 4."""
    return Section(
        "Figure 4: the Meta-Chain",
        "The chains differ in the mean reward behind B. In half of them the risky action is optimal, in the "
        "other half the safe one.",
        folder.write_picture("fig4", figure_4(), "One chain of the Meta-Chain MDP"),
    )


def figure_4(actions: int = 10) -> Figure:
    """Draw one chain of the Meta-Chain MDP, and list the mean rewards of all chains."""
    figure = Figure(figsize=(8.5, 3.1), layout="constrained")
    axes = figure.subplots()
    for name, (x, y) in POSITIONS.items():
        face = "#dddddd" if name in TERMINAL else "#fff3d6" if name == "A" else "#dcebfa"
        axes.add_patch(Circle((x, y), RADIUS, facecolor=face, edgecolor="black", linewidth=1.2, zorder=2))
        axes.text(x, y, f"${name}^i$", ha="center", va="center", fontsize=13, zorder=3)
    _arrow(axes, "A", "C", 0.0)
    _arrow(axes, "A", "B", 0.0)
    axes.text(1.0, 0.14, "safe, $r = 0$", ha="center", fontsize=9)
    axes.text(3.0, 0.14, "risky, $r = 0$", ha="center", fontsize=9)
    for bend in np.linspace(-0.5, 0.5, actions):
        _arrow(axes, "B", "D", bend)
    reward = rf"{actions} actions alike: $r \sim \mathcal{{N}}(\mu_i, 1)$"
    axes.text(5.3, 0.8, reward, ha="center", fontsize=10)
    for name, label in (("A", "start"), ("C", "end"), ("D", "end")):
        axes.text(POSITIONS[name][0], -0.62, label, ha="center", fontsize=9, color="#555555")
    means = ", ".join(f"{mean:+g}" for mean in PAPER_MEANS)
    axes.text(
        3.3,
        -1.15,
        rf"each episode draws a chain $i$ uniformly; $\mu_i \in \{{{means}\}}$",
        ha="center",
        fontsize=10,
    )
    axes.set(xlim=(-0.6, 7.2), ylim=(-1.4, 1.3), aspect="equal")
    axes.axis("off")
    return figure


def _arrow(axes: Axes, start: str, end: str, bend: float) -> None:
    (x0, y0), (x1, y1) = POSITIONS[start], POSITIONS[end]
    step = RADIUS if x1 > x0 else -RADIUS
    axes.add_patch(
        FancyArrowPatch(
            (x0 + step, y0),
            (x1 - step, y1),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=12,
            color="black",
            linewidth=1.1,
        )
    )

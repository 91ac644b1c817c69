"""A picture of how agents differ from one agent, over several kept studies."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from ebql.analysis.scores import ScoredStudy
from ebql.analysis.statistics import Interval
from ebql.report.curves import tidy
from ebql.report.study.words import counted
from evidence_variants import Beside, Variants, beside, besides

PANELS = {"score": "score", "throughout": "score averaged over training", "bias": "bias"}
"""The differences drawn, by their fields in `Beside`."""


def all_besides(
    agent: str, studies: Mapping[str, ScoredStudy], variants: Sequence[Variants], within: str
) -> list[Beside]:
    """Return how the other agents of the study `within`, and of all variants of it, differ from `agent`."""
    own = studies[within]
    found = [beside(own, other, agent) for other in own.contenders if other != agent]
    for of in variants:
        if of.beside == within and agent in of.baselines and of.name in studies:
            found += besides(of, agent, studies[of.name], own)
    return [one for one in found if one.score.known]


def differences_picture(found: Sequence[Beside]) -> Figure:
    """Draw each agent's differences to the same baseline, with their intervals, from the top down."""
    figure = Figure(figsize=(11.4, 0.34 * len(found) + 1.1), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (field, name) in zip(panels, PANELS.items(), strict=True):
        for place, one in enumerate(found):
            difference: Interval = getattr(one, field)
            colour = "#222222" if difference.excludes(0) else "#9a9a9a"
            axes.plot(
                [difference.low, difference.high],
                [place] * 2,
                color=colour,
                linewidth=6,
                alpha=0.35,
                solid_capstyle="butt",
            )
            axes.plot(difference.value, place, "o", color=colour, markersize=6)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(xlabel=f"{name} − {found[0].baseline}'s")
        tidy(axes)
    labels = [f"{one.agent} ({counted(one.games, 'game')}, {counted(one.seeds, 'seed')})" for one in found]
    panels[0].set_yticks(range(len(found)), labels)
    panels[0].set_ylim(len(found) - 0.5, -0.5)
    return figure

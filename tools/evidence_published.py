"""What a kept study says beside scores that others have printed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from ebql.analysis.scores import ScoredStudy
from ebql.report.study.words import list_or_range, signed
from ebql.runs.metric_names import EVALUATION_RETURN
from evidence_variants import game_name


@dataclass(frozen=True)
class Published:
    """A kept study that repeats published runs."""

    name: str
    """Its folder below `results/`."""
    title: str
    runs: str
    """What was run."""
    agent: str
    """The agent that others ran, too."""
    steps: tuple[int, ...]
    """Agent steps at which scores are quoted."""
    printed: Mapping[tuple[str, int], tuple[float, str]]
    """The printed score by game and agent steps, and its uncertainty in words."""


YOUNG_TIAN = Published(
    "minatar-young-tian",
    "Young and Tian's DQN on two MinAtar games",
    "1,000,000 steps of DQN and of Ensemble-DQN with five members, with the preset `minatar-young-tian`.",
    "DQN",
    (500_000, 1_000_000),
    {("Breakout", 500_000): (5.80, "± 1.71"), ("Breakout", 1_000_000): (11.10, "± 2.39")},
)

PUBLISHED_HEADER = ("game", "agent", "steps", "ours", "printed", "ours − printed", "seeds")


def published_rows(kept: Published, study: ScoredStudy) -> Iterator[tuple[str, ...]]:
    """Yield a row for each game, agent and quoted step: the mean of the runs' evaluations there."""
    for group in study.groups:
        game = game_name(group.environment)
        curve = group.curve(EVALUATION_RETURN)
        for step in kept.steps:
            scores = curve.values[:, curve.steps == step].ravel().tolist()
            mean = fmean(scores)
            ours = f"{mean:.2f}" + (f" ({list_or_range(scores, '.2f')})" if len(scores) > 1 else "")
            printed, difference = "–", "–"
            if group.label == kept.agent and (game, step) in kept.printed:
                value, uncertainty = kept.printed[game, step]
                printed, difference = f"{value:.2f} {uncertainty}", signed(mean - value)
            yield game, group.label, f"{step:,}", ours, printed, difference, str(len(scores))

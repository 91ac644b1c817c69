"""The rows of the tables that documents have about kept studies of DQN, double DQN and EBQL."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import ArrayLike

from ebql.analysis.comparisons import Correlation
from ebql.analysis.findings import (
    Findings,
    paired_by_environment,
    paired_over_environments,
    paired_without_one,
)
from ebql.analysis.scores import RELATIVE, ScoredStudy
from ebql.analysis.statistics import Interval
from ebql.estimators.intervals import over_seeds
from ebql.paper.atari.claims import FEWEST_GAMES, share_interval, small_sample_claim
from ebql.paper.atari.runs import cell
from ebql.report.study.words import list_or_range, signed, with_interval
from evidence_variants import BIAS, SCORE, Words, chosen, finite, game_name, in_words

_LARGE = 1000  # scores from which on decimals are noise


@dataclass(frozen=True)
class Kept:
    """A kept study that the documents quote."""

    name: str
    """Its folder below `results/`."""
    title: str
    runs: str
    """What was run, and what a score is."""
    agents: tuple[str, str, str]
    """As the runs are labelled: DQN, double DQN and EBQL."""
    short: str
    """What the rows of tables call it."""
    scale: str
    """How scores are made comparable over games."""
    fewest_seeds: int
    """The seeds in every compared game from which on rows quote it."""
    section: str
    """Where the documents have all of it."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The agents whose runs are compared by seed."""
        dqn, double, ebql = self.agents
        return (ebql, dqn), (ebql, double), (double, dqn)


MINATAR = Kept(
    "minatar",
    "Five MinAtar games",
    "300,000 steps of DQN, double DQN and EBQL with K = 5. A score is the mean of a run's last two "
    "evaluations of 20 greedy games.",
    ("DQN", "DoubleDQN", "EBQL 5"),
    "MinAtar, 300,000 steps",
    "normalised",
    fewest_seeds=3,
    section="findings.md#networks-on-five-minatar-games",
)
ATARI = Kept(
    "atari-100k",
    "Eleven Atari games at 100,000 steps",
    "100,000 steps (400,000 frames) of DQN, double DQN and EBQL with K = 5, with the preset `atari-100k`. A "
    "score is that of a run's last evaluation of 20 games with ε = 0.001.",
    ("DQN", "DoubleDQN", "EBQL K=5"),
    "Atari, 100,000 steps",
    "human-normalised",
    fewest_seeds=1,
    section="findings.md#networks-on-atari-at-100000-steps",
)


def verdict(kept: Kept, study: ScoredStudy) -> str:
    """Return which differences between scores are beyond chance, in words."""
    by_pair = {pair: paired_over_environments(study, *pair, "normalised") for pair in kept.pairs}
    ahead = [pair if found.value > 0 else pair[::-1] for pair, found in by_pair.items() if found.excludes(0)]
    if not ahead:
        return "no difference found"
    told = [
        f"{better} {in_words(study, better, worse, 'normalised', _ahead_of(worse))}"
        for better, worse in ahead
    ]
    return f"in means paired by seed, {', '.join(told)}"


def _ahead_of(other: str) -> Words:
    return f"is ahead of {other}", f"is behind {other}", f"cannot be told from {other}"


def in_unit(study: ScoredStudy) -> str:
    """Return in what the study's biases are compared, in words."""
    return "as a fraction of the return" if study.bias_scale is RELATIVE else "in clipped rewards"


def game_rows(
    kept: Kept, study: ScoredStudy, environments: Sequence[str], field: str
) -> Iterator[tuple[str, ...]]:
    """Yield the agents' means of one field of `ScoredRun` in each game with a run."""
    sign = "" if field == "score" else "+"
    for environment in environments:
        runs = [study.scored_runs(environment, agent) for agent in kept.agents]
        counts = sorted(len(own) for own in runs)
        seeds = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
        if any(runs):
            yield (
                game_name(environment),
                *(_mean([getattr(run, field) for run in own], sign) for own in runs),
                seeds,
            )


def _mean(values: Sequence[float], sign: str) -> str:
    if not values:
        return "–"
    mean, half = (float(number) for number in over_seeds(np.array(values)))
    form = f"{sign},.0f" if abs(mean) >= _LARGE else f"{sign}.2f"
    if np.isfinite(half):
        return with_interval(Interval(mean, mean - half, mean + half), sign=bool(sign))
    return f"{mean:{form}}".replace("-", "−") + (
        f" ({list_or_range(values, form)})" if len(values) > 1 else ""
    )


def paired_rows(kept: Kept, study: ScoredStudy, environments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the paired differences of games with seeds enough for an interval."""
    for agent, other in kept.pairs:
        scores = paired_by_environment(study, agent, other, "score")
        biases = paired_by_environment(study, agent, other, "bias")
        for name in environments:
            if name not in scores or not scores[name].known:
                continue
            seeds = [{run.seed for run in study.scored_runs(name, who)} for who in (agent, other)]
            yield (
                f"{agent} − {other}",
                game_name(name),
                with_interval(scores[name], sign=True),
                with_interval(biases[name], sign=True),
                f"{chosen(scores[name], SCORE)}, {chosen(biases[name], BIAS)}",
                str(len(seeds[0] & seeds[1])),
            )


def overall_rows(kept: Kept, study: ScoredStudy) -> Iterator[tuple[str, ...]]:
    """Yield the paired differences over all games compared, if their seeds are enough for an interval."""
    for agent, other in kept.pairs:
        kinds = (("normalised", SCORE), (study.bias_scale.field, BIAS))
        found = [paired_over_environments(study, agent, other, field) for field, _ in kinds]
        if all(difference.known for difference in found):
            yield (
                f"{agent} − {other}",
                *(with_interval(difference, sign=True) for difference in found),
                ", ".join(in_words(study, agent, other, *kind) for kind in kinds),
            )


def throughout_rows(kept: Kept, study: ScoredStudy, environments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the differences between scores averaged over all evaluations: over games, and in each game."""
    for agent, other in kept.pairs:
        one = paired_without_one(study, agent, other, "normalised_throughout")
        if one is not None and one.difference.known:
            in_games = paired_by_environment(study, agent, other, "throughout")
            yield (
                f"{agent} − {other}",
                with_interval(throughout(study, agent, other), sign=True),
                f"{with_interval(one.difference, sign=True)} without {game_name(one.environment)}",
                *(with_interval(in_games[name], sign=True) for name in environments),
            )


def throughout(study: ScoredStudy, agent: str, other: str) -> Interval:
    """Return the difference between normalised scores averaged over all evaluations, over games."""
    return paired_over_environments(study, agent, other, "normalised_throughout")


def robust_rows(kept: Kept, study: ScoredStudy, found: Findings) -> Iterator[tuple[str, ...]]:
    """Yield the differences over games without the game that each depends on most, and shares of wins."""
    for agent, other in kept.pairs:
        without = [
            paired_without_one(study, agent, other, what) for what in ("normalised", study.bias_scale.field)
        ]
        cells = [
            f"{with_interval(one.difference, sign=True)} without {game_name(one.environment)}"
            for one in without
            if one is not None and one.difference.known
        ]
        if len(cells) == len(without):
            yield f"{agent} − {other}", *cells, with_interval(found.improvement[agent, other])


def game_mean_rows(kept: Kept, study: ScoredStudy, found: Findings) -> Iterator[tuple[str, ...]]:
    """Yield the IQM of scores; and the mean bias over games, that of the median game, and the mean size.

    One game can decide the mean, and signs cancel in it.
    """
    iqms = (with_interval(found.aggregates[agent]["IQM"]) for agent in kept.agents)
    yield f"IQM of {kept.scale} scores", *iqms
    yield (
        f"mean bias {in_unit(study)}",
        *(with_interval(found.bias[agent], sign=True) for agent in kept.agents),
    )
    yield "bias in the median game", *(signed(median_bias(study, agent)) for agent in kept.agents)
    yield "mean absolute bias", *(f"{size_of_bias(study, agent):.2f}" for agent in kept.agents)
    biases = {agent: _game_biases(study, agent) for agent in kept.agents}
    games = [game for game in study.compared if all(game in own for own in biases.values())]
    if len(games) > 2:
        largest = max(games, key=lambda game: sum(abs(own[game]) for own in biases.values()))
        others = [game for game in games if game != largest]
        without = (f"{fmean(abs(own[game]) for game in others):.2f}" for own in biases.values())
        yield f"… without {game_name(largest)}", *without


def median_bias(study: ScoredStudy, agent: str) -> float:
    """Return the median over games of an agent's bias there, itself a mean over seeds."""
    return median(_game_biases(study, agent).values())


def size_of_bias(study: ScoredStudy, agent: str) -> float:
    """Return the mean over games of the size of an agent's bias there, itself a mean over seeds."""
    return fmean(map(abs, _game_biases(study, agent).values()))


def _game_biases(study: ScoredStudy, agent: str) -> dict[str, float]:
    """Return the mean bias of an agent in each game compared in which it was measured."""
    measured = {game: finite(study, game, agent, study.bias_scale.field) for game in study.compared}
    return {game: float(biases.mean()) for game, biases in measured.items() if len(biases)}


def correlation_rows(study: ScoredStudy, found: Findings) -> Iterator[tuple[str, ...]]:
    """Yield the correlations of bias and score that have an interval."""
    named: tuple[tuple[str, Correlation | None], ...] = (
        ("games, over all agents", found.size_of_bias_and_score),
        ("the runs of one agent in one game", found.size_of_bias_and_score_of_agents),
    )
    for where, correlation in named:
        if correlation is None or study.has_few_seeds or not np.isfinite(correlation.low):
            continue
        interval = Interval(correlation.mean, correlation.low, correlation.high)
        words = "we found no clear relation"
        if interval.excludes(0):
            words = f"runs with a smaller bias score {'higher' if correlation.mean < 0 else 'lower'}"
        games = dict(zip(found.correlated, correlation.within, strict=False))
        by_game = ", ".join(f"{game_name(name)} {signed(rho)}" for name, rho in games.items())
        in_games = by_game if correlation is found.size_of_bias_and_score else "–"
        yield where, with_interval(interval, sign=True), words, in_games


def early_rows(study: ScoredStudy) -> Iterator[tuple[str, ...]]:
    """Yield the evidence on the paper's claim about early training, if enough games were run."""
    claim = small_sample_claim([cell(group) for group in study.groups])
    for found in () if claim is None else claim.evidence:
        share = with_interval(Interval(found.value, found.low, found.high))
        yield found.quantity.removeprefix("share of games in which "), share, found.regime, found.verdict


def share_rows(kept: Kept, study: ScoredStudy) -> Iterator[tuple[str, ...]]:
    """Yield the share of games in which an agent's bias is closer to 0, or lower, if games are enough."""
    for name, won in (("has a bias closer to 0", closer_to_0), ("has a lower bias", lower_bias)):
        for agent, other in kept.pairs:
            less, games = won(study, agent, other)
            if games >= FEWEST_GAMES:
                share = Interval(less / games, *share_interval(less, games))
                yield f"{agent} {name} than {other}", with_interval(share), str(games)


def higher_score(study: ScoredStudy, agent: str, other: str) -> tuple[int, int]:
    """Return in how many games an agent scores higher, and the games without a tie."""
    return _above_0([found.value for found in paired_by_environment(study, agent, other, "score").values()])


def lower_bias(study: ScoredStudy, agent: str, other: str) -> tuple[int, int]:
    """Return in how many games an agent has a lower bias, and the games without a tie."""
    return _above_0([-found.value for found in paired_by_environment(study, agent, other, "bias").values()])


def closer_to_0(study: ScoredStudy, agent: str, other: str) -> tuple[int, int]:
    """Return in how many games an agent's mean bias is closer to 0, and the games without a tie."""
    mine, theirs = _game_biases(study, agent), _game_biases(study, other)
    return _above_0([abs(theirs[game]) - abs(mine[game]) for game in mine if game in theirs])


def _above_0(differences: ArrayLike) -> tuple[int, int]:
    signs = np.sign(differences)
    return int((signs > 0).sum()), int(np.count_nonzero(signs))


def won_in_words(
    kept: Kept, study: ScoredStudy, won: Callable[[ScoredStudy, str, str], tuple[int, int]], verb: str
) -> str:
    """Say in how many games EBQL is ahead of each of the others."""
    dqn, double, ebql = kept.agents
    told = (
        f"than {other} in {n} of {games} games"
        for other in (dqn, double)
        for n, games in [won(study, ebql, other)]
    )
    return f"{ebql} {verb} {', '.join(told)}"

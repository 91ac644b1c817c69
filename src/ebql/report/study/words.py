"""A study's findings in sentences, with their numbers, and no surer than the numbers are."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ebql.analysis.comparisons import Correlation
from ebql.analysis.findings import BASELINES, Findings
from ebql.analysis.scores import LAST_SHARE, ScoredStudy
from ebql.analysis.statistics import REPLICATES, Interval
from ebql.estimators.intervals import CONFIDENCE, FEWEST_SEEDS

_NOT_FEW_SEEDS = 20  # below this, intervals are told to be too narrow
_NUMBERS = ("no", "one", "two", "three", "four", "five")


_SCORING = (
    f"A run's score is the mean return of its evaluations in the last {LAST_SHARE:.0%} of steps (at least "
    "the last one), up to the last step at which every agent of that environment has been evaluated.",
    "Scores of an environment are put on one scale, given with each: 0 is random play (training episodes at "
    "ε ≥ 0.9; the lowest run, if there are none) or Atari's random player, 1 is the best agent's mean or "
    "Atari's human player.",
)


_COMPARING = (
    "IQM: the mean of the middle half of all runs, each environment weighing the same. Mean and median are "
    "over environments' means. Optimality gap: how far runs fall short of 1 on average.",
    f"Intervals are {CONFIDENCE:.0%} percentiles of {REPLICATES:,} stratified bootstraps, seeds drawn anew "
    "within each environment; bands of curves and intervals of single environments are Student's.",
)


_BIAS = (
    "Bias is the mean of Q̂(s, a) − discounted return over the states of the greedy policy's evaluation "
    "episodes; relative bias is it over the mean |return|.",
)


_METHOD_OF_TABLES = (
    "Of tables, the return is the exact, discounted value of the greedy policy; 0 is the value of random "
    "play and 1 of the optimal policy; bias is what the greedy policy expects from the first state minus its "
    "value, and relative bias is it over the optimal policy's absolute value.",
)


class Headline(NamedTuple):
    """The answer to who won, and whether it is sure."""

    sentence: str
    sure: bool


def headline(study: ScoredStudy, found: Findings) -> Headline:
    """Say in one sentence who won, by how much, and how sure that is."""
    if not found.ranking:
        none = "No comparison yet: agents share no environment in which one of them beats random play."
        return Headline(none, False)
    if study.has_few_seeds:
        return Headline(_what_is_not_known(study), False)
    best, where = found.best, _where(study.compared)
    top = found.aggregates[best]["IQM"]
    if len(found.ranking) == 1:
        reached = f"{best} reached an IQM of {told(top)} {where}{_points(study, best)}"
        return Headline(f"{reached}; there is no other agent to compare it with.", False)
    second = found.ranking[1]
    points = _points(study, best, second)
    lead, chance = found.lead[second], found.improvement[best, second]
    beats = f"a run of it beats one of {second} with probability {told(chance)}"
    by = told(lead, sign=True)
    if not lead.excludes(0):
        ahead = f"{best} leads {second} by {by} of IQM{points}, an interval that includes 0"
        return Headline(f"No clear winner {where}: {ahead}, and {beats}.", False)
    ahead = f"its IQM of {told(top)} is {by} above that of {second}, the next best{points}"
    return Headline(f"{best} won {where}: {ahead}, and {beats}.", True)


def further(study: ScoredStudy, found: Findings) -> list[str]:
    """Say what else a person should know at once: the baseline, and the bias; of few seeds plain means."""
    if study.has_few_seeds:
        return _means_in_words(study, found)
    sentences = []
    for rival in found.rivals[1:]:
        lead, chance = found.lead[rival], found.improvement[found.best, rival]
        ahead = "is ahead of" if lead.excludes(0) else "is not surely ahead of"
        by = f"{told(lead, sign=True)} of IQM; it wins with probability {told(chance)}"
        sentences.append(f"{found.best} {ahead} {rival}: {by}.")
    return [*sentences, *_bias_in_words(found), *correlations_in_words(study, found)[:1]]


def correlations_in_words(study: ScoredStudy, found: Findings) -> list[str]:
    """Say whether bias goes with the score, within environments: its size first, then its sign."""
    if study.has_few_seeds:
        return [f"{_seeds_per_agent(study)} cannot tell whether less bias goes with a higher score."]
    pairs = (("smaller", found.size_of_bias_and_score), ("lower (signed)", found.bias_and_score))
    return [_correlation_in_words(kind, of) for kind, of in pairs if of is not None and of.mean == of.mean]


def caveats(study: ScoredStudy, found: Findings) -> list[str]:
    """Say what the numbers leave out."""
    said = []
    if found.ranking:
        said += _on_few_seeds() if study.has_few_seeds else _on_intervals(study)
    if alone := [agent for agent in study.agents if agent not in study.contenders]:
        said.append(f"Not compared, for want of runs in common environments: {', '.join(alone)}.")
    if left_out := [name for name in study.environments if name not in study.compared]:
        said.append(
            "Environments not compared, since an agent has no finished run there or none beat the zero of "
            f"the scale: {', '.join(left_out)}."
        )
    if study.unfinished or study.waiting:
        said.append(
            f"Unfinished: {study.unfinished} of {len(study.runs)} evaluated runs; not evaluated yet, and "
            f"left out: {len(study.waiting)}. Where seeds are missing, curves are dotted."
        )
    return said


def method(study: ScoredStudy) -> tuple[str, ...]:
    """Say how runs were scored, put on one scale and compared."""
    comparing = () if study.has_few_seeds else _COMPARING
    return (*_SCORING, *comparing, *_BIAS, *(_METHOD_OF_TABLES if study.has_tables else ()))


def told(value: Interval, *, sign: bool = False) -> str:
    """Return a value with its interval, if it has one: 0.91 [0.80, 0.97]."""
    form = "+.2f" if sign else ".2f"
    within = f" [{value.low:{form}}, {value.high:{form}}]" if value.known else ""
    return f"{value.value:{form}}{within}".replace("-", "−")


def signed(value: float) -> str:
    """Return a number with its sign: +0.40, −0.40."""
    return f"{value:+.2f}".replace("-", "−")


def counted(number: int, thing: str) -> str:
    """Return a number and a thing: 1 seed, 3 seeds."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def seeds_in_words(fewest_and_most: Sequence[int]) -> str:
    """Return 5 seeds, or 3 to 5 seeds."""
    fewest, most = fewest_and_most
    return counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"


def seeds_listed(values: Sequence[float], form: str) -> str:
    """Return each of a few values; of more, the lowest and the highest."""
    if len(values) < FEWEST_SEEDS:
        return ", ".join(f"{value:{form}}" for value in values).replace("-", "−")
    return f"{min(values):{form}} to {max(values):{form}}".replace("-", "−")


def _what_is_not_known(study: ScoredStudy) -> str:
    """Say what too few seeds cannot answer, and what to do."""
    agents = study.contenders
    unknown = "rank these agents" if len(agents) > 1 else f"show how much {agents[0]} varies between runs"
    how = f"set “seeds = {FEWEST_SEEDS}” in the study and repeat the sweep"
    return f"{_seeds_per_agent(study)} cannot {unknown}: run at least {_NUMBERS[FEWEST_SEEDS]} ({how})."


def _seeds_per_agent(study: ScoredStudy) -> str:
    """Return how few seeds there are, as the beginning of a sentence."""
    fewest, most = study.compared_seeds
    seeds = f"{_NUMBERS[fewest]} {'seed' if fewest == 1 else 'seeds'}"
    return (f"{seeds} per agent" if fewest == most else f"{seeds}, as some agents have,").capitalize()


def _means_in_words(study: ScoredStudy, found: Findings) -> list[str]:
    """Return the agents' means without a judgement: biases, and scores if one environment is compared."""
    sentences = []
    if len(study.compared) == 1:
        (environment,) = study.compared
        scores = {a: [run.score for run in study.scored_runs(environment, a)] for a in study.contenders}
        means = (f"{agent} " + f"{fmean(own):.4g}".replace("-", "−") for agent, own in scores.items())
        sentences.append(f"Mean scores in {environment}: {', '.join(means)}.")
    if found.relative_bias:
        biases = ", ".join(f"{agent} {signed(own.value)}" for agent, own in found.relative_bias.items())
        sentences.append(f"Mean bias relative to the return: {biases}.")
    return sentences


def _on_few_seeds() -> list[str]:
    return [
        f"Intervals and probabilities are left out below {FEWEST_SEEDS} seeds. If two agents are equally "
        "good, all runs of one beat all runs of the other in 33%, 10% and 3% of studies with 2, 3 and 4 "
        "seeds each."
    ]


def _on_intervals(study: ScoredStudy) -> list[str]:
    said = []
    fewest, _ = study.compared_seeds
    if fewest < _NOT_FEW_SEEDS:
        said.append(
            f"With {counted(fewest, 'seed')} intervals are too narrow: of five environments with normal "
            "scores, nominal 95% intervals hold the truth in 77%, 86%, 90% and 93% of studies of 2, 3, 5 "
            "and 10 seeds."
        )
    said.append(
        "The best agent is named after the fact, which flatters it a little; intervals are not corrected "
        "for being many, and take the scale as given."
    )
    return said


def _where(environments: Sequence[str]) -> str:
    return f"in {environments[0]}" if len(environments) == 1 else f"over {len(environments)} environments"


def _points(study: ScoredStudy, *agents: str) -> str:
    """Return agents' mean scores in the points of the environment, if only one is compared."""
    if len(study.compared) > 1:
        return ""
    runs = ([run.score for run in study.scored_runs(study.compared[0], agent)] for agent in agents)
    means = " and ".join(f"{fmean(own):.4g}" for own in runs)
    return f" (mean score{'s' if len(agents) > 1 else ''} {means})"


def _bias_in_words(found: Findings) -> list[str]:
    biases = found.relative_bias
    if len(biases) < 2:
        return []
    least = min(biases, key=lambda agent: abs(biases[agent].value))
    most = max(biases, key=lambda agent: abs(biases[agent].value))
    other = next((agent for agent in BASELINES if agent in biases and agent != least), most)
    return [
        f"{least} is nearest to its returns: its bias is {told(biases[least], sign=True)} of the return, "
        f"{other}'s {told(biases[other], sign=True)}."
    ]


def _correlation_in_words(kind: str, of: Correlation) -> str:
    numbers = f"mean rank correlation {signed(of.mean)}, permutation p = {of.p_value:.2g}"
    if of.p_value > 1 - CONFIDENCE:
        return f"Within environments no sure relation between {kind} bias and score shows ({numbers})."
    direction = "higher" if of.mean < 0 else "lower"
    return f"Within environments a {kind} bias went with a {direction} score ({numbers})."

"""A study's findings in sentences, with their numbers and intervals."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ebql.analysis.beside import Beside
from ebql.analysis.comparisons import Correlation
from ebql.analysis.findings import BASELINES, Findings, verdict_changes
from ebql.analysis.runs import RecordedRun, change_notes
from ebql.analysis.scores import LAST_SHARE, ScoredRun, ScoredStudy
from ebql.analysis.statistics import REPLICATES, Interval
from ebql.estimators.intervals import CONFIDENCE, FEWEST_SEEDS, over_seeds
from ebql.runs.metric_names import BIAS_DROPPED, BIAS_HORIZON, BIAS_LIMIT, BIAS_MEAN, BIAS_METHOD

_ENOUGH_SEEDS = 20  # with fewer seeds, the page says that intervals are too narrow
_NUMBERS = ("no", "one", "two", "three", "four", "five")

_SCORING = (
    f"A run's score is the mean return of its evaluations in the last {LAST_SHARE:.0%} of steps (at least "
    "the last evaluation), up to the last step at which every agent in that environment has been evaluated.",
    "Scores are normalised in each environment; the table shows the scale. 0 is random play (training "
    "episodes at ε ≥ 0.9, or the lowest run if there are none) or Atari's random player. 1 is the best "
    "agent's mean or Atari's human player.",
)

_COMPARING = (
    "IQM is the interquartile mean: the mean of the middle half of all runs, with equal weight for every "
    "environment. Mean and median are taken over the environments' means. The optimality gap is the average "
    "amount by which runs fall short of 1.",
    f"Intervals are {CONFIDENCE:.0%} percentile intervals from {REPLICATES:,} stratified bootstrap "
    "replicates, which resample seeds within each environment. Learning curves, single environments, biases "
    "and seed-paired differences have Student's t intervals.",
)

_BIAS = (
    "Bias is the mean of Q̂(s, a) − discounted return over the states that the greedy policy visits in "
    "evaluation episodes. Relative bias is the bias divided by the mean |return|. If all runs clip their "
    "rewards alike, biases are compared in clipped rewards instead: a policy that earns next to nothing has "
    "no meaningful relative bias.",
)

_TABULAR = (
    "For tabular agents the return is the exact discounted value of the greedy policy; 0 is the value of "
    "random play, 1 that of the optimal policy. Bias is the estimated value of the initial state minus the "
    "exact value of the greedy policy. Relative bias is the bias divided by the absolute value of the "
    "optimal policy.",
)

BESIDE_HEADER = ("environment", "agent", "your score", "kept score", "difference", "what differs")
BESIDE = (
    "Kept results ship with ebql: ebql.results() lists them. Your finished runs are compared with those of "
    "the same environment, agent, preset and steps. Scores are in the units of the environment. The "
    f"difference has Welch's 95% interval if both have {FEWEST_SEEDS} seeds or more."
)


class Headline(NamedTuple):
    """Which agent is best, in one sentence."""

    sentence: str
    significant: bool
    """Whether the interval of the lead over the second best excludes 0."""


def headline(study: ScoredStudy, findings: Findings) -> Headline:
    """Say in one sentence which agent is best, by how much, and whether that is significant."""
    if not findings.ranking:
        none = "No comparison yet: the agents share no environment in which one of them beats random play."
        return Headline(none, False)
    if study.has_few_seeds:
        return Headline(_too_few_seeds(study), False)
    best, where = findings.best, _where(study.compared)
    iqm = findings.aggregates[best]["IQM"]
    if len(findings.ranking) == 1:
        reached = f"{best} reached an IQM of {with_interval(iqm)} {where}{_mean_scores(study, best)}"
        return Headline(f"{reached}; there is no other agent to compare it with.", False)
    second = findings.ranking[1]
    scores = _mean_scores(study, best, second)
    lead = findings.lead[second]
    probability = with_interval(findings.improvement[best, second])
    beats = f"a run of {best} beats a run of {second} with probability {probability}"
    if not lead.excludes(0):
        ahead = f"{best} leads {second} by {with_interval(lead)} in IQM{scores}, but the interval includes 0"
        return Headline(f"No clear winner {where}: {ahead}; {beats}.", False)
    ahead = (
        f"its IQM of {with_interval(iqm)} is {with_interval(lead)} higher than that of {second}, the second "
        f"best{scores}"
    )
    return Headline(f"{best} is the best agent {where}: {ahead}, and {beats}.", True)


def further_findings(study: ScoredStudy, findings: Findings) -> list[str]:
    """Say how the best agent compares with the baseline, and how biased agents are.

    With too few seeds, state the agents' means only.
    """
    if study.has_few_seeds:
        return _means_in_words(study, findings)
    sentences = []
    for rival in findings.rivals[1:]:
        lead, probability = findings.lead[rival], findings.improvement[findings.best, rival]
        ahead = "is ahead of" if lead.excludes(0) else "is not significantly ahead of"
        sentences.append(
            f"{findings.best} {ahead} {rival}: its IQM differs by {with_interval(lead, sign=True)} from "
            f"{rival}'s, and it beats {rival} with probability {with_interval(probability)}."
        )
    return [*sentences, *_bias_in_words(study, findings), *correlations_in_words(study, findings)[:1]]


def correlations_in_words(study: ScoredStudy, findings: Findings) -> list[str]:
    """Say whether bias and score are related within environments: |bias|, the signed bias, and in agents."""
    if study.has_few_seeds:
        return [f"{_seeds_per_agent(study)} cannot show whether less biased agents score higher."]
    pairs = (
        ("the magnitude of the bias", "a smaller bias", findings.size_of_bias_and_score),
        ("the signed bias", "a lower signed bias", findings.bias_and_score),
    )
    sentences = [
        _correlation_in_words("environments", quantity, comparative, correlation)
        for quantity, comparative, correlation in pairs
        if correlation is not None and correlation.mean == correlation.mean
    ]
    own = findings.size_of_bias_and_score_of_agents
    if own is not None and own.mean == own.mean:
        where = "the runs of one agent in one environment"
        sentences.append(_correlation_in_words(where, "the magnitude of the bias", "a smaller bias", own))
    return sentences


def bias_measurement_notes(study: ScoredStudy) -> list[str]:
    """Say for how many runs the bias could not be measured, and for how many it is drawn towards 0."""
    runs = [run for run in study.runs if any(BIAS_MEAN in record for record in run.records)]
    unmeasured = [run for run in runs if all(record.get(BIAS_MEAN) is None for record in run.records)]
    bootstrapped = [
        run for run in runs if any(record.get(BIAS_METHOD) == "bootstrapped" for record in run.records)
    ]
    sentences = []
    if unmeasured:
        sentences.append(_unmeasured_in_words(unmeasured, len(study.runs)))
    if bootstrapped:
        sentences.append(
            f"In {_of_runs(len(bootstrapped), len(study.runs))}, returns that a time limit cut short were "
            "completed with the agent's own value estimates, which draws these biases towards 0."
        )
    return sentences


def caveats(study: ScoredStudy, findings: Findings) -> list[str]:
    """Say what the numbers leave out."""
    sentences = []
    if findings.ranking:
        sentences += _on_few_seeds() if study.has_few_seeds else _on_intervals(study)
        sentences += _on_single_environments(study, findings)
    if not_compared := [agent for agent in study.agents if agent not in study.contenders]:
        sentences.append(
            f"Not compared, because they have no runs in the shared environments: {', '.join(not_compared)}."
        )
    if left_out := [name for name in study.environments if name not in study.compared]:
        sentences.append(
            "Environments not compared, because an agent has no finished run there or no agent scores above "
            f"the zero of the scale: {', '.join(left_out)}."
        )
    if study.unfinished:
        sentences.append(
            f"Unfinished: {study.unfinished} of {len(study.runs)} evaluated runs. Unfinished runs are "
            "included up to their latest step; curves are dotted where seeds are missing."
        )
    if study.waiting:
        sentences.append(f"Not evaluated yet, and left out: {counted(len(study.waiting), 'run')}.")
    return sentences + change_notes(study.runs)


def method(study: ScoredStudy) -> tuple[str, ...]:
    """Say how runs were scored, normalised and compared."""
    comparing = () if study.has_few_seeds else _COMPARING
    return (*_SCORING, *comparing, *_BIAS, *(_TABULAR if study.has_tables else ()))


def with_interval(value: Interval, *, sign: bool = False) -> str:
    """Return a value, with its interval if it has one: 0.91 [0.80, 0.97]."""
    form = "+.2f" if sign else ".2f"
    interval = f" [{value.low:{form}}, {value.high:{form}}]" if value.known else ""
    return f"{value.value:{form}}{interval}".replace("-", "−")


def signed(value: float) -> str:
    """Return a number with its sign: +0.40, −0.40."""
    return f"{value:+.2f}".replace("-", "−")


def counted(number: int, noun: str) -> str:
    """Return a number with a noun: 1 seed, 3 seeds."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def seed_counts_in_words(fewest_and_most: Sequence[int]) -> str:
    """Return 5 seeds, or 3 to 5 seeds."""
    fewest, most = fewest_and_most
    return counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"


def list_or_range(values: Sequence[float], form: str) -> str:
    """Return the values if there are fewer than `FEWEST_SEEDS`; else the lowest and the highest."""
    if len(values) < FEWEST_SEEDS:
        return ", ".join(f"{value:{form}}" for value in values).replace("-", "−")
    return f"{min(values):{form}} to {max(values):{form}}".replace("-", "−")


def mean_score(runs: Sequence[ScoredRun]) -> str:
    """Return the mean score with Student's interval, and the number of seeds."""
    if not runs:
        return "–"
    mean, half = (float(number) for number in over_seeds(np.array([run.score for run in runs])))
    interval = f" ± {half:.3g}" if np.isfinite(half) else ""
    return f"{mean:.4g}{interval} ({len(runs)})"


def each_score(runs: Sequence[ScoredRun]) -> str:
    """Return the mean and each run's score, for runs too few for an interval."""
    if not runs:
        return "–"
    scores = [run.score for run in runs]
    return f"{np.mean(scores):.4g} ({list_or_range(scores, '.4g')})".replace("-", "−")


def beside_rows(found: Sequence[Beside]) -> list[tuple[str, ...]]:
    """Return runs beside kept ones as the rows of a table under `BESIDE_HEADER`."""
    return [
        (
            item.environment,
            item.agent,
            *(
                (each_score if len(own) < FEWEST_SEEDS else mean_score)(own)
                for own in (item.your_scores, item.kept_scores)
            ),
            with_interval(item.difference, sign=True),
            "; ".join(item.marks),
        )
        for item in found
    ]


def _too_few_seeds(study: ScoredStudy) -> str:
    """Say what cannot be answered with so few seeds, and what to do."""
    agents = study.contenders
    unknown = "rank these agents" if len(agents) > 1 else f"show how much {agents[0]} varies between runs"
    how = f"set “seeds = {FEWEST_SEEDS}” in the study and repeat the sweep"
    return f"{_seeds_per_agent(study)} cannot {unknown}: run at least {_NUMBERS[FEWEST_SEEDS]} ({how})."


def _seeds_per_agent(study: ScoredStudy) -> str:
    """Return the number of seeds as the subject of a sentence that goes on with "cannot"."""
    fewest, most = study.compared_seeds
    seeds = f"{_NUMBERS[fewest]} {'seed' if fewest == 1 else 'seeds'}"
    return f"{seeds} per agent".capitalize() if fewest == most else f"Some agents have only {seeds}, which"


def _means_in_words(study: ScoredStudy, findings: Findings) -> list[str]:
    """State the agents' mean biases, and their mean scores if only one environment is compared."""
    sentences = []
    if len(study.compared) == 1:
        (environment,) = study.compared
        scores = {a: [run.score for run in study.scored_runs(environment, a)] for a in study.contenders}
        means = (f"{agent} " + f"{fmean(own):.4g}".replace("-", "−") for agent, own in scores.items())
        sentences.append(f"Mean scores in {environment}: {', '.join(means)}.")
    if findings.bias:
        biases = ", ".join(f"{agent} {signed(own.value)}" for agent, own in findings.bias.items())
        sentences.append(f"Mean {study.bias_scale.axis}: {biases}.")
    return sentences


def _on_few_seeds() -> list[str]:
    return [
        f"Intervals and probabilities are not shown with fewer than {FEWEST_SEEDS} seeds. Even if two agents "
        "are equally good, all runs of one beat all runs of the other in 33%, 10% and 3% of studies with 2, "
        "3 and 4 seeds each."
    ]


def _on_intervals(study: ScoredStudy) -> list[str]:
    sentences = []
    fewest, _ = study.compared_seeds
    if fewest < _ENOUGH_SEEDS:
        sentences.append(
            f"With {counted(fewest, 'seed')}, intervals are too narrow: with five environments and normally "
            "distributed scores, nominal 95% intervals contain the true value in 77%, 86%, 90% and 93% of "
            "studies with 2, 3, 5 and 10 seeds."
        )
    sentences.append(
        "The best agent is chosen after seeing the results, which favours it slightly. Intervals are not "
        "adjusted for multiple comparisons and treat the scale of scores as fixed."
    )
    return sentences


def _on_single_environments(study: ScoredStudy, findings: Findings) -> list[str]:
    """Say on which single environments the differences to the best agent depend."""
    return [
        f"The seed-paired difference between {findings.best} and {rival} depends on {one.environment}: "
        f"without that environment it is {with_interval(one.difference, sign=True)} in normalised scores."
        for rival in findings.rivals
        for one in verdict_changes(study, findings.best, rival, "normalised")
    ]


def _unmeasured_in_words(runs: Sequence[RecordedRun], n_all: int) -> str:
    """Say why no bias could be measured in these runs, and what to do."""
    records = [record for run in runs for record in run.records if BIAS_MEAN in record]
    dropped = sum(int(record.get(BIAS_DROPPED) or 0) for record in records)
    advice = "“ebql evaluate RUN” measures the bias of a run with this version."
    which = _of_runs(len(runs), n_all)
    if dropped == 0:
        nothing = "No run has measured its bias" if len(runs) == n_all else f"No bias was measured in {which}"
        return f"{nothing}. {advice}"
    limits = {(record.get(BIAS_HORIZON), record.get(BIAS_LIMIT)) for record in records}
    reason = "too close to the end of an episode cut off by the time limit, so their returns are incomplete"
    if len(limits) == 1 and None not in (known := next(iter(limits))):
        reason = f"fewer than {known[0]} steps before the time limit of {known[1]} steps"
    return (
        f"The bias is unknown in {which}: all {dropped:,} evaluated states were dropped ({reason}). {advice}"
    )


def _of_runs(number: int, n_all: int) -> str:
    if number == n_all:
        return "all runs" if n_all > 1 else "the only run"
    return f"{number} of {n_all} runs"


def _where(environments: Sequence[str]) -> str:
    return f"in {environments[0]}" if len(environments) == 1 else f"over {len(environments)} environments"


def _mean_scores(study: ScoredStudy, *agents: str) -> str:
    """Return the agents' mean scores in the units of the environment, if only one is compared."""
    if len(study.compared) > 1:
        return ""
    runs = ([run.score for run in study.scored_runs(study.compared[0], agent)] for agent in agents)
    means = " and ".join(f"{fmean(own):.4g}" for own in runs)
    return f" (mean score{'s' if len(agents) > 1 else ''} {means})"


def _bias_in_words(study: ScoredStudy, findings: Findings) -> list[str]:
    biases = findings.bias
    if len(biases) < 2:
        return []
    least = min(biases, key=lambda agent: abs(biases[agent].value))
    most = max(biases, key=lambda agent: abs(biases[agent].value))
    other = next((agent for agent in BASELINES if agent in biases and agent != least), most)
    return [
        f"{least} is least biased: {with_interval(biases[least], sign=True)} {study.bias_scale.unit}. The "
        f"bias of {other} is {with_interval(biases[other], sign=True)}."
    ]


def _correlation_in_words(where: str, quantity: str, comparative: str, correlation: Correlation) -> str:
    mean = with_interval(Interval(correlation.mean, correlation.low, correlation.high), sign=True)
    numbers = f"mean rank correlation {mean}, permutation p = {correlation.p_value:.2g}"
    if correlation.p_value > 1 - CONFIDENCE:
        return f"Within {where} we found no clear relation between {quantity} and score ({numbers})."
    direction = "higher" if correlation.mean < 0 else "lower"
    return f"Within {where}, runs with {comparative} had {direction} scores ({numbers})."

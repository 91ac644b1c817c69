"""The report of a study: a self-contained HTML page, with its pictures and tables as files beside it."""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ebql.analysis.beside import beside_kept
from ebql.analysis.findings import BASELINES, Findings, findings, paired_by_environment
from ebql.analysis.references import Reference
from ebql.analysis.runs import RecordedRun, ensembles, own_metrics
from ebql.analysis.scores import ScoredRun, ScoredStudy
from ebql.analysis.statistics import Interval, Scores
from ebql.estimators.intervals import CONFIDENCE, FEWEST_SEEDS
from ebql.report import page
from ebql.report.curves import HEADER, curve_table, metric_curves
from ebql.report.images import png
from ebql.report.study import plots as study_plots
from ebql.report.study import words as study_words
from ebql.report.study.words import each_score, list_or_range, mean_score, signed, with_interval
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_text
from ebql.runs.metric_names import BIAS_AGREEMENT, BIAS_MEAN, BIAS_SPREAD, EVALUATION_RETURN
from ebql.studies.model import slug

_DPI = 140
_PIXELS_PER_INCH = 97  # on the page; fewer than `_DPI`, so that pictures look sharp
_SCALE = (
    "a scale on which 0 is random play and 1 is the best agent's mean (in Atari games the human player, for "
    "tabular agents the optimal policy)"
)
# Options that identify a run among the runs of an agent.
_RUN_OPTIONS = ("seed",)


class StudyReport:
    """Writes the report of a study to a folder."""

    def __init__(self, study: ScoredStudy, title: str, out: str | Path) -> None:
        """Check the output folder, then compare the agents."""
        self.out = output_folder(out)
        self.study, self.title = study, title
        self.findings = findings(study)

    def write(self) -> Path:
        """Write the pictures, the tables and the page; return the page's path."""
        self._tables()
        body = [
            *self._head(),
            page.CONTENTS,
            *self._comparison(),
            *self._environments(),
            *self._beside(),
            *self._bias(),
            *self._costs(),
            *self._configuration(),
        ]
        return write_text(self.out / "report.html", page.page(self.title, body))

    def _head(self) -> Iterator[str]:
        study, findings = self.study, self.findings
        words = study_words.headline(study, findings)
        yield f"<h1>{escape(self.title)}</h1>"
        yield f'<p class="headline{"" if words.significant else " unsure"}">{escape(words.sentence)}</p>'
        yield from (
            f'<p class="note">{escape(sentence)}</p>'
            for sentence in study_words.further_findings(study, findings)
        )
        if findings.ranking and study.has_few_seeds:
            description = f"Normalised score and {study.bias_scale.name} of every run"
            yield self._picture("summary", study_plots.each_run(study, findings), description)
            yield self._each_run()
        elif findings.ranking:
            description = f"IQM and {study.bias_scale.name} of every agent with 95% intervals"
            yield self._picture("summary", study_plots.summary(study, findings), description)
            yield self._ranking()
        agents = study_words.counted(len(study.agents), "agent")
        environments = study_words.counted(len(study.environments), "environment")
        seeds = study_words.seed_counts_in_words(study.seeds())
        yield _small(
            f"{len(study.runs)} runs: {agents}, {environments}, {seeds} each. "
            + " ".join(study_words.caveats(study, findings))
        )

    def _each_run(self) -> str:
        study, findings = self.study, self.findings
        rows = []
        for agent in study.contenders:
            score, bias = findings.aggregates[agent]["mean"].value, findings.bias.get(agent)
            scores, biases = (_flat(own) for own in (study.scores(agent), study.comparable_biases(agent)))
            rows.append(
                (
                    agent,
                    f"{score:.2f} ({list_or_range(scores, '.2f')})".replace("-", "−"),
                    "not measured"
                    if bias is None
                    else f"{signed(bias.value)} ({list_or_range(biases, '+.2f')})",
                    _number(study.costs(agent).speed, ",.0f"),
                )
            )
        explained = (
            f"Means over runs, with each run in brackets; with {FEWEST_SEEDS} or more runs, the lowest and "
            f"the highest. Scores are on {_SCALE}. In the picture, markers are runs and vertical bars are "
            "means. Agents are listed in the order of the study."
        )
        header = ("agent", "score", study.bias_scale.name, f"{study.work_unit}/s")
        return page.table(header, rows) + _small(explained)

    def _ranking(self) -> str:
        findings = self.findings
        header = (
            "agent",
            "IQM",
            "behind the best",
            "paired by seed",
            "P(best beats it)",
            self.study.bias_scale.name,
            f"{self.study.work_unit}/s",
        )
        rows = []
        for agent in findings.ranking:
            against_best = ("", "", "")
            if agent != findings.best:
                paired = findings.paired.get(agent)
                against_best = (
                    with_interval(findings.lead[agent]),
                    "unknown" if paired is None else with_interval(paired),
                    with_interval(findings.improvement[findings.best, agent]),
                )
            bias = findings.bias.get(agent)
            rows.append(
                (
                    agent,
                    with_interval(findings.aggregates[agent]["IQM"]),
                    *against_best,
                    "not measured" if bias is None else with_interval(bias, sign=True),
                    _number(self.study.costs(agent).speed, ",.0f"),
                )
            )
        explained = (
            f"IQM: the mean of the middle half of runs. Scores are on {_SCALE}. “Behind the best” is the "
            "difference in IQM. “Paired by seed” is the mean score difference between runs with the same "
            "seed, averaged over environments. Brackets show 95% intervals."
        )
        return page.table(header, rows) + _small(explained)

    def _comparison(self) -> Iterator[str]:
        study, findings = self.study, self.findings
        if not findings.ranking or study.has_few_seeds:
            return
        yield "<h2>Comparison over all environments</h2>"
        picture = study_plots.aggregates(study, findings)
        yield self._picture("aggregates", picture, "Aggregate scores of every agent with 95% intervals")
        if len(findings.ranking) > 1:
            yield "<h3>Probability of improvement</h3>"
            picture = study_plots.improvement(findings)
            yield self._picture(
                "improvement", picture, "Probability that a run of one agent beats a run of another"
            )
            yield _small(
                "Ties count as 0.5. Bold: the interval excludes 0.5. There is no interval if, in each "
                "environment, one agent wins all pairs: resampled runs do not vary."
            )
        yield "<h3>Performance profiles</h3>"
        picture = study_plots.profiles(study, findings)
        yield self._picture("profiles", picture, "Share of runs above each normalised score")

    def _environments(self) -> Iterator[str]:
        study = self.study
        yield "<h2>Results in each environment</h2>"
        picture = metric_curves(study.groups, EVALUATION_RETURN)
        yield self._picture("curves", picture, "Return in evaluations over time")
        for metric in own_metrics(study.groups):
            yield self._picture(slug(metric), metric_curves(study.groups, metric), f"{metric} over time")
        rows = []
        few = {name: study.seeds([name])[0] < FEWEST_SEEDS for name in study.environments}
        for environment in study.environments:
            show = each_score if few[environment] else mean_score
            cells = [show(study.scored_runs(environment, agent)) for agent in study.agents]
            scale = study.references[environment]
            rows.append((environment, *cells, _scale(scale), f"{study.horizons[environment]:,}"))
        header = ("score", *study.agents, "scale 0 to 1", f"at {study.unit}")
        yield page.table(header, rows)
        shown = []
        if not all(few.values()):
            shown.append("mean ± half-width of Student's 95% interval, with the number of seeds in brackets")
        if any(few.values()):
            shown.append(
                f"where an agent has fewer than {FEWEST_SEEDS} seeds, the mean, with each seed (or the "
                "lowest and the highest) in brackets"
            )
        yield _small(f"Scores in the units of the environment: {'; '.join(shown)}.")
        yield from self._paired()
        yield page.folded("How runs are scored and compared", _bullets(study_words.method(study)))

    def _paired(self) -> Iterator[str]:
        """Yield each agent's difference to the baseline, seed by seed."""
        study = self.study
        if study.has_few_seeds or len(study.agents) < 2:
            return
        baseline = next((agent for agent in BASELINES if agent in study.agents), study.agents[0])
        compared = {"score": "score", "throughout": "score averaged over training", "bias": "bias"}
        rows = []
        for agent in study.agents:
            if agent != baseline:
                found = [paired_by_environment(study, agent, baseline, field) for field in compared]
                for environment in found[0]:
                    cells = (_paired_cell(differences.get(environment)) for differences in found)
                    rows.append((environment, agent, *cells))
        if rows:
            yield f"<h3>Difference from {escape(baseline)}, paired by seed</h3>"
            yield page.table(("environment", "agent", *compared.values()), rows)
            yield _small(
                f"Means over shared seeds with Student's {CONFIDENCE:.0%} intervals, unadjusted. A score "
                "averaged over training is the mean over all evaluations: higher if an agent learns faster."
            )

    def _beside(self) -> Iterator[str]:
        if found := beside_kept(self.study):
            yield "<h2>Comparison with the kept results</h2>"
            groups = [group for item in found for group in (item.yours, item.kept)]
            picture = metric_curves(groups, EVALUATION_RETURN)
            yield self._picture("beside", picture, "Return of these runs and of the kept runs over time")
            yield page.table(study_words.BESIDE_HEADER, study_words.beside_rows(found))
            yield _small(study_words.BESIDE)

    def _bias(self) -> Iterator[str]:
        study, findings = self.study, self.findings
        yield "<h2>Bias of the Q-values</h2>"
        notes = study_words.bias_measurement_notes(study)
        if not any(np.isfinite(group.curve(BIAS_MEAN).values).any() for group in study.groups):
            yield from (f"<p>{escape(note)}</p>" for note in notes or ["No run has measured its bias."])
            return
        yield self._picture("bias", metric_curves(study.groups, BIAS_MEAN), "Measured bias over time")
        yield from map(_small, notes)
        if findings.bias_and_score is not None:
            yield "<h3>Do less biased agents score higher?</h3>"
            yield _bullets(study_words.correlations_in_words(study, findings))
            picture = study_plots.bias_against_score(study, findings)
            caption = "Score of each run against its bias at the previous evaluation"
            yield self._picture("bias-score", picture, caption)
            correlation = " ρ is Spearman's rank correlation over all runs in the environment."
            yield _small(
                "Each marker is a run: its bias at one evaluation, and its score at the next. If both came "
                "from the same episodes, a lucky return would raise the score and lower the bias."
                f"{'' if study.has_few_seeds else correlation}"
            )
        if several := ensembles(study.groups):
            yield "<h3>Do the members of an ensemble agree?</h3>"
            spread = metric_curves(several, BIAS_SPREAD, study.agents)
            yield self._picture("spread", spread, "Standard deviation of the members' values over time")
            agreement = metric_curves(several, BIAS_AGREEMENT, study.agents)
            yield self._picture("agreement", agreement, "Share of members that agree on the action over time")
            yield _small(
                "Spread: the standard deviation of Q̂ over members. Agreement: the share of members whose "
                "greedy action is that of the ensemble. Both are means over the states on which the bias is "
                "measured."
            )

    def _costs(self) -> Iterator[str]:
        yield "<h2>Speed and memory</h2>"
        rows = []
        for agent in self.study.agents:
            cost = self.study.costs(agent)
            rows.append((agent, _number(cost.speed, ",.0f"), _number(cost.peak_memory / 2**20, ",.0f")))
        yield page.table(
            ("agent", f"{self.study.work_unit} per second", "peak memory of the process, MiB"), rows
        )
        yield _small(
            "Medians over runs while learning, without evaluations. Other load on the machine slows runs "
            "down."
        )

    def _configuration(self) -> Iterator[str]:
        study = self.study
        yield "<h2>Configuration</h2>"
        options = {agent: _options(study, agent) for agent in study.agents}
        names = list(dict.fromkeys(name for own in options.values() for name in own))
        differing = [name for name in names if len({own.get(name, "–") for own in options.values()}) > 1]
        if differing:
            yield "<p>Options that differ between agents:</p>"
            rows = ((name, *(options[agent].get(name, "–") for agent in study.agents)) for name in differing)
            yield page.table(("option", *study.agents), rows)
        for agent, own in options.items():
            yield page.folded(f"All options of {agent}", page.table(("option", "value"), own.items()))
        commands = "\n".join(_command(run) for run in study.runs)
        yield page.folded(f"Commands of all {len(study.runs)} runs", f"<pre>{escape(commands)}</pre>")
        yield _small(_versions(study.runs))
        made = provenance()
        yield _small(f"This page was made on {made['date']} by “{made['command']}”.")

    def _tables(self) -> None:
        study, findings = self.study, self.findings
        self._csv("runs", ScoredRun._fields, (map(_finite_or_none, run) for run in study.scored))
        members = (BIAS_SPREAD, BIAS_AGREEMENT) if ensembles(study.groups) else ()
        metrics = (EVALUATION_RETURN, BIAS_MEAN, *members, *own_metrics(study.groups))
        self._csv("curves", HEADER, curve_table(study.groups, metrics))
        self._csv(
            "scales",
            ("environment", "at_step", "zero", "one", "zero_is", "one_is", "compared"),
            (
                (name, study.horizons[name], *(scale or [None] * 4), name in study.compared)
                for name, scale in study.references.items()
            ),
        )
        self._csv(
            "comparisons",
            ("quantity", "agent", "other", "value", "low", "high"),
            _comparison_rows(study, findings),
        )
        self._csv(
            "profiles",
            ("agent", "threshold", "share", "low", "high"),
            (
                (agent, *map(_finite_or_none, row))
                for agent, own in findings.profiles.items()
                for row in np.transpose(own).tolist()
            ),
        )

    def _csv(self, name: str, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
        write_csv(self.out / f"{name}.csv", header, (tuple(row) for row in rows))

    def _picture(self, name: str, figure: Figure, description: str) -> str:
        image = png(figure, _DPI)
        write_bytes(self.out / f"{name}.png", image)
        return page.wide(page.picture(image, description, round(_PIXELS_PER_INCH * figure.get_figwidth())))


def _comparison_rows(study: ScoredStudy, findings: Findings) -> Iterator[tuple[object, ...]]:
    def row(quantity: str, agent: str, other: str, interval: Interval) -> tuple[object, ...]:
        return quantity, agent, other, *map(_finite_or_none, interval)

    for agent, own in findings.aggregates.items():
        yield from (row(name, agent, "", interval) for name, interval in own.items())
    yield from (row(study.bias_scale.name, agent, "", interval) for agent, interval in findings.bias.items())
    yield from (row("IQM difference", findings.best, other, it) for other, it in findings.lead.items())
    yield from (
        row("paired mean difference", findings.best, other, it) for other, it in findings.paired.items()
    )
    yield from (row("probability of improvement", a, b, it) for (a, b), it in findings.improvement.items())


def _finite_or_none(value: object) -> object:
    """Return None instead of a number that is not finite, for an empty cell."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else "unknown"


def _paired_cell(difference: Interval | None) -> str:
    return "not measured" if difference is None else with_interval(difference, sign=True)


def _scale(scale: Reference | None) -> str:
    if scale is None:
        return "none"
    zero = 0.0 if abs(scale.zero) < 1e-9 * (scale.one - scale.zero) else scale.zero
    return f"{zero:.4g} to {scale.one:.4g}"


def _flat(scores: Scores) -> list[float]:
    return [value for own in scores for value in own.tolist()]


def _options(study: ScoredStudy, agent: str) -> dict[str, str]:
    """Return an agent's options as text; an option that differs between its runs lists all values."""
    runs = [run for group in study.groups if group.label == agent for run in group.runs]
    names = dict.fromkeys(name for run in runs for name in run.options if name not in _RUN_OPTIONS)
    options = {name: _distinct(run.options.get(name) for run in runs) for name in names}
    return options | {"steps": _distinct(run.config.get("steps") for run in runs)}


def _distinct(values: Iterable[Any]) -> str:
    return " or ".join(dict.fromkeys(json.dumps(value) for value in values))


def _command(run: RecordedRun) -> str:
    command = run.config.get("command", "")
    return command if isinstance(command, str) else shlex.join(command)


def _versions(runs: Sequence[RecordedRun]) -> str:
    names = dict.fromkeys(name for run in runs for name in run.config.get("versions", {}))
    versions = (
        f"{name} {' or '.join(dict.fromkeys(str(run.config['versions'].get(name, 'none')) for run in runs))}"
        for name in names
    )
    dates = sorted(run.config["date"] for run in runs)
    return f"Runs started between {dates[0]} and {dates[-1]}, with {', '.join(versions)}."


def _small(text: str) -> str:
    return f'<p class="small note">{escape(text)}</p>'


def _bullets(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"

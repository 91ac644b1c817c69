"""A study's report: one page that needs nothing else, and its pictures and tables beside it."""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ebql.analysis.findings import Findings, findings
from ebql.analysis.references import Reference
from ebql.analysis.runs import RecordedRun
from ebql.analysis.scores import ScoredRun, ScoredStudy
from ebql.analysis.statistics import Interval, Scores
from ebql.estimators.intervals import FEWEST_SEEDS, over_seeds
from ebql.report import page
from ebql.report.curves import HEADER, curve_table, metric_curves
from ebql.report.images import png
from ebql.report.study import plots as study_plots
from ebql.report.study import words as study_words
from ebql.report.study.words import seeds_listed, signed, told
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_text
from ebql.runs.metric_names import BIAS_MEAN, EVALUATION_RETURN

_DPI = 140
_PIXELS_AN_INCH = 97  # on the page, which shows pictures a little smaller than they are, and so sharper
_SCALE = (
    "a scale from 0, random play, to 1: the best agent's mean, on Atari the human player, of tables the "
    "optimal policy"
)
# Options that say which run it is and not what was run.
_OF_A_RUN = ("seed",)


class StudyReport:
    """Writes a report into a folder, section by section."""

    def __init__(self, study: ScoredStudy, title: str, out: str | Path) -> None:
        """Check the folder first, then compare the agents."""
        self.out = output_folder(out)
        self.study, self.title = study, title
        self.found = findings(study)

    def write(self) -> Path:
        """Write the pictures, the tables and the page; return the page's path."""
        self._tables()
        body = [
            *self._head(),
            *self._comparison(),
            *self._environments(),
            *self._bias(),
            *self._costs(),
            *self._configuration(),
        ]
        return write_text(self.out / "report.html", page.page(self.title, body))

    def _head(self) -> Iterator[str]:
        study, found = self.study, self.found
        words = study_words.headline(study, found)
        yield f"<h1>{escape(self.title)}</h1>"
        yield f'<p class="headline{"" if words.sure else " unsure"}">{escape(words.sentence)}</p>'
        yield from (
            f'<p class="note">{escape(sentence)}</p>' for sentence in study_words.further(study, found)
        )
        if found.ranking and study.has_few_seeds:
            description = "Normalised score and relative bias of every run"
            yield self._picture("summary", study_plots.each_run(study, found), description)
            yield self._each_run()
        elif found.ranking:
            description = "IQM and relative bias of every agent with 95% intervals"
            yield self._picture("summary", study_plots.summary(study, found), description)
            yield self._ranking()
        agents = study_words.counted(len(study.agents), "agent")
        environments = study_words.counted(len(study.environments), "environment")
        seeds = study_words.seeds_in_words(study.seeds())
        yield _small(
            f"{len(study.runs)} runs: {agents}, {environments}, {seeds} each. "
            + " ".join(study_words.caveats(study, found))
        )

    def _each_run(self) -> str:
        study, found = self.study, self.found
        rows = []
        for agent in study.contenders:
            score, bias = found.aggregates[agent]["mean"].value, found.relative_bias.get(agent)
            scores, biases = (_flat(own) for own in (study.scores(agent), study.relative_biases(agent)))
            rows.append(
                (
                    agent,
                    f"{score:.2f} ({seeds_listed(scores, '.2f')})".replace("-", "−"),
                    "not measured"
                    if bias is None
                    else f"{signed(bias.value)} ({seeds_listed(biases, '+.2f')})",
                    _number(study.costs(agent).speed, ",.0f"),
                )
            )
        explained = (
            f"Means over runs; in brackets each run, or of {FEWEST_SEEDS} runs and more the lowest and the "
            "highest. In the picture a mark is a run and a stroke the mean. Scores are on "
            f"{_SCALE}. Agents are in the study's order."
        )
        header = ("agent", "score", "relative bias", f"{study.work_unit}/s")
        return page.table(header, rows) + _small(explained)

    def _ranking(self) -> str:
        found = self.found
        header = (
            "agent",
            "IQM",
            "behind the best",
            "same seeds",
            "P(best beats it)",
            "relative bias",
            f"{self.study.work_unit}/s",
        )
        rows = []
        for agent in found.ranking:
            of_best = ("", "", "")
            if agent != found.best:
                paired = found.paired.get(agent)
                of_best = (
                    told(found.lead[agent]),
                    "unknown" if paired is None else told(paired),
                    told(found.improvement[found.best, agent]),
                )
            bias = found.relative_bias.get(agent)
            rows.append(
                (
                    agent,
                    told(found.aggregates[agent]["IQM"]),
                    *of_best,
                    "not measured" if bias is None else told(bias, sign=True),
                    _number(self.study.costs(agent).speed, ",.0f"),
                )
            )
        explained = (
            f"IQM: the mean of the middle half of runs, of scores on {_SCALE}. “Behind the best” is of the "
            "IQM; “same seeds” the mean difference between runs of one seed, averaged over environments. 95% "
            "intervals in brackets."
        )
        return page.table(header, rows) + _small(explained)

    def _comparison(self) -> Iterator[str]:
        study, found = self.study, self.found
        if not found.ranking or study.has_few_seeds:
            return
        yield "<h2>Agents over environments</h2>"
        picture = study_plots.aggregates(study, found)
        yield self._picture("aggregates", picture, "Aggregate scores of every agent with 95% intervals")
        if len(found.ranking) > 1:
            yield "<h3>How often one beats another</h3>"
            picture = study_plots.improvement(found)
            yield self._picture("improvement", picture, "Probability that a run of one agent beats another's")
            yield _small("Ties count a half. Bold: the interval excludes a half.")
        yield "<h3>Performance profiles</h3>"
        picture = study_plots.profiles(study, found)
        yield self._picture("profiles", picture, "Share of runs above each normalised score")

    def _environments(self) -> Iterator[str]:
        study = self.study
        yield "<h2>Environment by environment</h2>"
        picture = metric_curves(study.groups, EVALUATION_RETURN)
        yield self._picture("curves", picture, "Return of the greedy policy over time")
        rows = []
        few = {name: study.seeds([name])[0] < FEWEST_SEEDS for name in study.environments}
        for environment in study.environments:
            show = _each_score if few[environment] else _mean_score
            cells = [show(study.scored_runs(environment, agent)) for agent in study.agents]
            scale = study.references[environment]
            rows.append((environment, *cells, _scale(scale), f"{study.horizons[environment]:,}"))
        header = ("score", *study.agents, "scale 0 to 1", f"at {study.unit}")
        yield page.table(header, rows)
        shown = []
        if not all(few.values()):
            shown.append("mean ± half of Student's 95% interval, and seeds in brackets")
        if any(few.values()):
            shown.append(
                f"where an agent has fewer than {FEWEST_SEEDS} seeds, the mean, and in brackets each seed or "
                "the lowest and the highest"
            )
        yield _small(f"In the environment's own points: {'; '.join(shown)}.")
        yield page.folded("How runs are scored and compared", _bullets(study_words.method(study)))

    def _bias(self) -> Iterator[str]:
        study, found = self.study, self.found
        yield "<h2>How wrong the values are</h2>"
        if not any(np.isfinite(group.curve(BIAS_MEAN).values).any() for group in study.groups):
            yield "<p>No run has measured its bias.</p>"
            return
        yield self._picture("bias", metric_curves(study.groups, BIAS_MEAN), "Measured bias over time")
        if found.bias_and_score is not None:
            yield "<h3>Does less bias go with a higher score?</h3>"
            yield _bullets(study_words.correlations_in_words(study, found))
            picture = study_plots.bias_against_score(study, found)
            yield self._picture("bias-score", picture, "Score of each run against its bias")
            correlation = "; ρ is Spearman's rank correlation within the environment, agents together"
            yield _small(f"One mark a run{'' if study.has_few_seeds else correlation}.")

    def _costs(self) -> Iterator[str]:
        yield "<h2>Speed and memory</h2>"
        rows = []
        for agent in self.study.agents:
            cost = self.study.costs(agent)
            rows.append((agent, _number(cost.speed, ",.0f"), _number(cost.peak_memory / 2**20, ",.0f")))
        yield page.table(
            ("agent", f"{self.study.work_unit} a second", "peak memory of the process, MiB"), rows
        )
        yield _small(
            "Medians over runs, once they learned, evaluations apart; other work on the machine counts in."
        )

    def _configuration(self) -> Iterator[str]:
        study = self.study
        yield "<h2>What was run</h2>"
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
        yield page.folded(f"The commands of {len(study.runs)} runs", f"<pre>{escape(commands)}</pre>")
        yield _small(_versions(study.runs))
        made = provenance()
        yield _small(f"This page: {made['date']}, “{made['command']}”.")

    def _tables(self) -> None:
        study, found = self.study, self.found
        self._csv("runs", ScoredRun._fields, (map(_known, run) for run in study.scored))
        self._csv("curves", HEADER, curve_table(study.groups))
        self._csv(
            "scales",
            ("environment", "at_step", "zero", "one", "zero_is", "one_is", "compared"),
            (
                (name, study.horizons[name], *(scale or [None] * 4), name in study.compared)
                for name, scale in study.references.items()
            ),
        )
        self._csv(
            "comparisons", ("quantity", "agent", "other", "value", "low", "high"), _comparison_rows(found)
        )
        self._csv(
            "profiles",
            ("agent", "threshold", "share", "low", "high"),
            (
                (agent, *map(_known, row))
                for agent, own in found.profiles.items()
                for row in np.transpose(own).tolist()
            ),
        )

    def _csv(self, name: str, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
        write_csv(self.out / f"{name}.csv", header, (tuple(row) for row in rows))

    def _picture(self, name: str, figure: Figure, description: str) -> str:
        image = png(figure, _DPI)
        write_bytes(self.out / f"{name}.png", image)
        return page.wide(page.picture(image, description, round(_PIXELS_AN_INCH * figure.get_figwidth())))


def _comparison_rows(found: Findings) -> Iterator[tuple[object, ...]]:
    def row(quantity: str, agent: str, other: str, interval: Interval) -> tuple[object, ...]:
        return quantity, agent, other, *map(_known, interval)

    for agent, own in found.aggregates.items():
        yield from (row(name, agent, "", interval) for name, interval in own.items())
    yield from (row("relative bias", agent, "", interval) for agent, interval in found.relative_bias.items())
    yield from (row("IQM difference", found.best, other, it) for other, it in found.lead.items())
    yield from (row("paired mean difference", found.best, other, it) for other, it in found.paired.items())
    yield from (row("probability of improvement", a, b, it) for (a, b), it in found.improvement.items())


def _known(value: object) -> object:
    """Return a value for a table, in which what is not known is empty."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else "unknown"


def _scale(scale: Reference | None) -> str:
    if scale is None:
        return "none"
    zero = 0.0 if abs(scale.zero) < 1e-9 * (scale.one - scale.zero) else scale.zero
    return f"{zero:.4g} to {scale.one:.4g}"


def _mean_score(runs: Sequence[ScoredRun]) -> str:
    if not runs:
        return "–"
    mean, half = (float(number) for number in over_seeds(np.array([run.score for run in runs])))
    interval = f" ± {half:.3g}" if np.isfinite(half) else ""
    return f"{mean:.4g}{interval} ({len(runs)})"


def _each_score(runs: Sequence[ScoredRun]) -> str:
    """Return the mean and each run's score, for too few runs for an interval."""
    if not runs:
        return "–"
    scores = [run.score for run in runs]
    return f"{np.mean(scores):.4g} ({seeds_listed(scores, '.4g')})".replace("-", "−")


def _flat(scores: Scores) -> list[float]:
    return [value for own in scores for value in own.tolist()]


def _options(study: ScoredStudy, agent: str) -> dict[str, str]:
    """Return an agent's options as text; one that is not the same in all its runs lists its values."""
    runs = [run for group in study.groups if group.label == agent for run in group.runs]
    names = dict.fromkeys(name for run in runs for name in run.options if name not in _OF_A_RUN)
    found = {name: _distinct(run.options.get(name) for run in runs) for name in names}
    return found | {"steps": _distinct(run.config.get("steps") for run in runs)}


def _distinct(values: Iterable[Any]) -> str:
    return " or ".join(dict.fromkeys(json.dumps(value) for value in values))


def _command(run: RecordedRun) -> str:
    command = run.config.get("command", "")
    return command if isinstance(command, str) else shlex.join(command)


def _versions(runs: Sequence[RecordedRun]) -> str:
    names = dict.fromkeys(name for run in runs for name in run.config.get("versions", {}))
    told_versions = (
        f"{name} {' or '.join(dict.fromkeys(str(run.config['versions'].get(name, 'none')) for run in runs))}"
        for name in names
    )
    dates = sorted(run.config["date"] for run in runs)
    return f"Runs begun from {dates[0]} to {dates[-1]}, with {', '.join(told_versions)}."


def _small(text: str) -> str:
    return f'<p class="small note">{escape(text)}</p>'


def _bullets(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"

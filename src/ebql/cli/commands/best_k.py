"""`ebql best-k`: how to estimate the best of known means, or what the winner of a test is worth."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from ebql.errors import InputError
from ebql.terminal.console import Console

if TYPE_CHECKING:
    from ebql.estimators import Moments, Value, Winner
    from ebql.estimators.winner import Sheet

_STDS = (1.0,)
_SAMPLES = 100
_FEWEST, _MOST, _PAIRS = 500, 4_000, 400_000  # simulated data sets, and pairs of arms in all of them


def best_k(
    means: tuple[float, ...] = (),
    stds: tuple[float, ...] = _STDS,
    samples: int = _SAMPLES,
    csv: Path | None = None,
    control: str | None = None,
    splits: int | None = None,
    seed: int | None = None,
) -> None:
    """Choose how to estimate the largest of several means, or say what the winner of a test is worth.

    With --means, compare the single, double and ensemble estimators by exact theory for Gaussian arms, and
    the rules of other methods by simulation. With --csv, estimate the true mean of an A/B/n test's winner,
    corrected for the winner's curse (selection bias).

    Args:
        means: The arms' means, e.g. --means 1.0 0.8 0.5.
        stds: The standard deviation of one sample: one for all arms, or one per arm.
        samples: Samples of each arm.
        csv: A column of samples per arm; or variant, converted; or variant, visitors, conversions.
        control: With --csv: the arm to compare the winner with.
        splits: No longer needed: estimates average over all splits.
        seed: No longer needed: nothing is drawn at random.
    """
    if bool(means) == (csv is not None):
        raise InputError("Give either --means (theory) or --csv (a file of samples), not both.")
    if csv is None:
        if len(means) < 2 or samples < 2:
            raise InputError(
                "Give at least 2 --means and at least 2 --samples: otherwise there is nothing to choose."
            )
        if control is not None:
            raise InputError("--control names an arm of a --csv file: leave it out with --means.")
        _compare(means, stds, samples)
        return
    if stds != _STDS or samples != _SAMPLES:
        raise InputError("A --csv file brings its own samples: leave out --stds and --samples.")
    if splits is not None or seed is not None:
        Console(stderr=True).print(
            "note: --splits and --seed no longer have any effect; estimates average over all splits.",
            highlight=False,
            soft_wrap=True,
        )
    from ebql.estimators.winner import read_sheet

    _show_winner(read_sheet(csv), control)


def _compare(means: Sequence[float], stds: Sequence[float], samples: int) -> None:
    from ebql.estimators import ensemble_moments, optimal_ensemble_size, single_moments

    best = optimal_ensemble_size(means, stds, samples)
    ensemble_name = f"ensemble, K = {best}"
    methods = {
        "single": single_moments(means, stds, samples),
        "double": ensemble_moments(means, stds, samples, 2),
        ensemble_name: ensemble_moments(means, stds, samples, best),
    }
    table = Table(title=f"Estimating the largest of {len(means)} means from {samples} samples of each")
    for heading in ("estimator", "bias", "sd", "RMSE", "P(picks a best arm)"):
        table.add_column(heading, justify="left" if heading == "estimator" else "right")
    right = [mean == max(means) for mean in means]
    for name, moments in methods.items():
        table.add_row(name, *_numbers(moments), f"{moments.selection[right].sum():.4f}")
    console = Console(highlight=False)
    console.print(table)
    least = _least({name: float(moments.mse) for name, moments in methods.items()})
    console.print(f"Use: [bold]{least}[/] (least RMSE).")
    if least == "single":
        console.print(f"It overestimates on average; to avoid that, use [bold]{ensemble_name}[/].")
    console.print(_other_rules(means, stds, samples))
    console.print("No parameter was tuned. Which rule errs least depends on the gaps between the arms.")


def _other_rules(means: Sequence[float], stds: Sequence[float], samples: int) -> Table:
    """Return the simulated errors of the rules of other methods, whose members share the samples equally."""
    import numpy as np

    from ebql.estimators import apply_rule, error_intervals
    from ebql.paper.family.estimators import METHODS

    arms, spreads = np.asarray(means), np.broadcast_to(stds, len(means))
    replications = max(_FEWEST, min(_MOST, _PAIRS // arms.size**2))  # the weighted estimator pairs all arms
    rng = np.random.default_rng(0)
    rows = []
    for method in METHODS:
        if method.rule in ("q-learning", "ensemble-bootstrap") or method.members > samples:
            continue
        noise = rng.standard_normal((replications, method.members, arms.size))
        members = arms + noise * spreads * (method.members / samples) ** 0.5
        errors = error_intervals(apply_rule(method.rule, members, 0, method.parameter) - arms.max())
        rows.append((method.label, errors))
    rows.sort(key=lambda row: row[1].mse.value)
    table = Table(title=f"Rules of other methods, {replications:,} simulated data sets")
    for heading in ("rule", "bias", "sd", "RMSE"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for label, (bias, variance, mse) in rows:
        told = f"{bias.value:+.4g} ± {(bias.high - bias.low) / 2:.2g}"
        table.add_row(label, told, f"{variance.value**0.5:.4g}", f"{mse.value**0.5:.4g}")
    return table


def _numbers(moments: "Moments") -> list[str]:
    return [f"{moments.bias:+.4g}", f"{moments.variance**0.5:.4g}", f"{moments.mse**0.5:.4g}"]


def _least(errors: Mapping[str, float]) -> str:
    """Return the name of the least error; the earlier name where they tie."""
    return min(errors, key=lambda name: errors[name])


def _show_winner(sheet: "Sheet", control: str | None) -> None:
    from ebql.estimators.winner import winner_of, words

    winner = winner_of(sheet.arms, control=control)
    console = Console(highlight=False)
    console.print(f"[bold]{escape(words.headline(winner))}[/]", soft_wrap=True)
    console.print(escape(words.estimand(winner)))
    for caution in words.cautions(winner):
        console.print(f"[yellow]{escape(caution)}[/]")
    console.print(_arms_table(winner))
    console.print(_values_table(winner))
    console.print(escape(words.recommendation(winner)))
    console.print(_intervals_table(winner))
    for method, explanation in words.METHODS.items():
        console.print(f"[bold]{method}[/]: {escape(explanation)}")
    samples = int(sheet.arms.counts.sum())
    read = f"Read {samples} samples of {len(sheet.arms.names)} arms ({sheet.layout})."
    console.print(escape(" ".join((read, *sheet.notes))))


def _arms_table(winner: "Winner") -> Table:
    from ebql.estimators.winner import words

    arms = winner.arms
    table = Table(title="The arms")
    for heading in ("arm", "samples", "rate" if arms.binary else "mean"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for index, name in enumerate(arms.names):
        style = "bold" if index == winner.index else ""
        mean = words.number(winner, float(arms.means[index]))
        table.add_row(escape(name), str(arms.counts[index]), mean, style=style)
    return table


def _values_table(winner: "Winner") -> Table:
    from ebql.estimators.winner import words

    table = Table(title="Estimates and their expected errors")
    for heading in ("estimate", "value", "bias", "RMSE"):
        table.add_column(heading, justify="left" if heading == "estimate" else "right")
    for method in words.METHODS:
        value: Value = getattr(winner, method)
        bias, rmse = words.difference(winner, value.bias), words.difference(winner, value.rmse).lstrip("+")
        style = "bold" if method == winner.recommended else ""
        table.add_row(method, words.number(winner, value.estimate), bias, rmse, style=style)
    return table


def _intervals_table(winner: "Winner") -> Table:
    from ebql.estimators.winner import words

    table = Table(title=f"Intervals, {100 * winner.confidence:g}%")
    for heading in ("interval", "from, to", "valid"):
        table.add_column(heading)
    for name, ends, valid in (
        ("conditional", winner.interval, "for any true means, given that this arm was selected"),
        ("shrinkage", winner.shrinkage_interval, "if the true means come from one Gaussian distribution"),
        ("naive", winner.naive_interval, "only for an arm that was chosen before the test"),
    ):
        table.add_row(name, words.interval(winner, ends), valid)
    return table

"""`ebql curves`: learning curves of runs."""

from pathlib import Path

import tyro

from ebql.errors import InputError
from ebql.terminal.console import Console


def curves(
    runs: tyro.conf.Positional[tuple[Path, ...]], out: Path = Path("curves"), accept_changes: bool = False
) -> None:
    """Draw scores, biases and your own metrics of runs over steps, with 95% bands over seeds.

    If an agent has fewer than five seeds in an environment, there are no bands there: each seed is a thin
    line. Runs that differ only in their seed form one curve. Unfinished runs are included up to their latest
    step.

    Args:
        runs: Run folders, or folders that contain some.
        out: The folder for curves.png, curves.csv and runs.csv, the last evaluation of each run.
        accept_changes: Continue even though files of a run were changed by hand; a note names them.
    """
    from ebql.analysis.runs import change_notes, grouped, own_metrics, read_runs
    from ebql.report.curves import HEADER, RUN_HEADER, curve_table, learning_curves, run_table
    from ebql.report.images import png
    from ebql.runs import output_folder, write_bytes, write_csv
    from ebql.runs.metric_names import BIAS_MEAN, EVALUATION_RETURN

    if not runs:
        raise InputError("Which runs? Give at least one run folder: ebql curves RUN [RUN ...] --out DIR.")
    found = read_runs(runs, accept_changes=accept_changes)
    evaluated = [run for run in found if run.evaluated]
    if not evaluated:
        raise InputError("None of these runs has been evaluated yet.")
    groups = grouped(evaluated)
    own = own_metrics(groups)
    metrics = (EVALUATION_RETURN, BIAS_MEAN, *own)
    folder = output_folder(out)
    picture = write_bytes(folder / "curves.png", png(learning_curves(groups, metrics)))
    table = write_csv(folder / "curves.csv", HEADER, curve_table(groups, metrics))
    write_csv(folder / "runs.csv", (*RUN_HEADER, *own), run_table(groups, metrics))
    unfinished = sum(not run.finished for run in evaluated)
    summary = f"{len(evaluated)} runs, {unfinished} of them unfinished"
    if left_out := len(found) - len(evaluated):
        summary += f"; {left_out} left out, not evaluated yet"
    for note in change_notes(evaluated):
        Console(stderr=True).print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    Console(stderr=True).print(
        f"{summary}  → {picture}, {table}", highlight=False, markup=False, soft_wrap=True
    )

"""`ebql tune`: search for good options."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from ebql.cli.importing import Imports, import_named
from ebql.errors import InputError
from ebql.terminal.console import Console

if TYPE_CHECKING:
    from ebql.studies.tuning.search import Search, TrialResult


def tune(
    environment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")],
    agent: str = "ebql",
    trials: int = 50,
    steps: int = 50_000,
    preset: str | None = None,
    space: Path | None = None,
    workers: int = 1,
    seed: int = 0,
    out: Path | None = None,
    imports: Imports = (),
) -> None:
    """Search for good options with Optuna: trials of short runs, of which poor ones are pruned early.

    Every trial is kept in the folder: repeat the command to continue, or with more trials to extend the
    search. It ends with a table, a picture, and a study that compares the best options with the preset on
    seeds that no trial used.

    Args:
        environment: The environment's id.
        agent: The agent to tune; `ebql agents` lists them.
        trials: Trials in all, with those of earlier commands; pruned and failed ones count.
        steps: Agent steps of each trial.
        preset: The values of the options that do not vary; by default the one for the environment.
        space: A TOML file with the options that vary and their values; by default those of the preset.
        workers: Trials at a time on this machine.
        seed: Controls the search; trial i trains with this seed plus i.
        out: The folder of the search; by default tuning/ENV-AGENT.
        imports: Import this module first, which may register environments or agents; can be repeated.
    """
    for name, number in (("trials", trials), ("steps", steps), ("workers", workers)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, not {number}.")
    import_named(imports)
    console = Console(stderr=True)
    with console.status("preparing the search"):  # torch takes seconds to import
        from ebql.cli.commands.train import agent_types
        from ebql.deep.config.agents import config_type
        from ebql.deep.config.presets import preset_config, preset_of
        from ebql.environments import canonical_name
        from ebql.studies.tuning.search import Search, best_of, best_study, require_optuna, run_search
        from ebql.studies.tuning.space import default_space, read_space

        require_optuna()
        kind, environment = config_type(agent), canonical_name(environment)
        preset = preset or preset_of(environment, kind)
        config = preset_config(kind, preset)
        dimensions = read_space(space, config) if space else default_space(preset, config)
        agent_types()[agent](
            environment, preset=preset, seed=seed
        )  # refuse now what every trial would refuse
    folder = out or Path("tuning", f"{environment.replace('/', '-')}-{agent}")
    search = Search(environment, agent, preset, dimensions, steps, trials, seed, folder, imports)
    given: dict[str, object] = {
        "--agent": agent,
        "--trials": trials,
        "--steps": steps,
        "--preset": preset,
        "--space": space,
        "--workers": workers,
        "--seed": seed,
        "--out": folder,
    }
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    modules = [word for module in imports for word in ("--import", module)]
    console.print(
        f"{agent} on {environment}: {trials} trials over {', '.join(dimensions)} → {folder}", highlight=False
    )
    n_shown = -1

    def tick(ended: list["TrialResult"]) -> None:
        nonlocal n_shown
        if len(ended) == n_shown:
            return
        n_shown = len(ended)
        scores = [trial.score for trial in ended if trial.outcome == "complete" and trial.score is not None]
        best = f", best score {max(scores):.5g}" if scores else ""
        pruned = sum(trial.outcome == "pruned" for trial in ended)
        console.print(f"{n_shown} of {trials} trials ended, {pruned} pruned{best}", highlight=False)

    try:
        ended = run_search(search, workers, tick)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Stopped. → to continue: {shlex.join(['ebql', 'tune', environment, *words, *modules])}"
        ) from None
    best = best_of(ended)
    _write(search, ended, best_study(search, best, len(ended)))
    options = ", ".join(f"{name} {value}" for name, value in best.options.items())
    console.print(
        f"best: trial {best.number}, score {best.score:.5g}: {options}", highlight=False, markup=False
    )
    console.print(
        f"→ next: {shlex.join(['ebql', 'sweep', str(folder / 'best.toml'), *modules])}",
        highlight=False,
        markup=False,
    )


def _write(search: "Search", ended: list["TrialResult"], best: str) -> None:
    """Write the trials as a table and a picture, and the study of the best options."""
    from ebql.report.images import png
    from ebql.report.tuning import trials_figure, trials_table
    from ebql.runs import write_bytes, write_csv, write_text

    title = f"{search.agent} on {search.environment}, {search.steps:,} steps a trial"
    write_csv(search.folder / "trials.csv", *trials_table(ended, search.space))
    write_bytes(search.folder / "trials.png", png(trials_figure(ended, search.space, title)))
    write_text(search.folder / "best.toml", best)

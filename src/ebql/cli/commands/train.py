"""`ebql train` and `ebql resume`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape

from ebql.cli.importing import Imports, import_named
from ebql.cli.option_groups import flattened, grouped, options_of, titled_by_group
from ebql.cli.parsing import told_in_one_line
from ebql.deep.config.agents import CONFIGS, config_type
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.presets import PRESETS, preset_config, preset_of
from ebql.deep.training.tracking import Tracker, Tracking
from ebql.errors import InputError
from ebql.terminal.console import Console
from ebql.terminal.progress import progress


@dataclass(frozen=True, kw_only=True)
class Train:
    """The options of `ebql train` itself; those of the agent are beside them on the command line."""

    environment: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")] = None
    """The environment's id: CartPole-v1, MinAtar/Breakout-v1, ALE/Pong-v5 (or pong), …"""
    agent: Annotated[str, tyro.conf.arg(metavar="AGENT")] = "ebql"
    """The agent to train; `ebql agents` lists them."""
    steps: int = 100_000
    """Agent steps in total, summed over all environments; with --from, updates."""
    learn_from: Annotated[str | None, tyro.conf.arg(name="from", metavar="DATA")] = None
    """Learn from this data alone: an npz file, a run folder or a Minari dataset; see docs/offline.md."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The run's folder; by default runs/ENV-AGENT-SEED."""
    preset: Annotated[str | None, tyro.conf.arg(metavar="PRESET")] = None
    """The set of defaults for all other options; by default the one for the environment."""
    track: Tracker | None = None
    """Also send the metrics to this tracker; it must be installed."""
    track_project: str = "ebql"
    """The tracker's project."""
    track_name: str | None = None
    """The name of the tracker's run; by default that of the run's folder."""
    imports: Imports = ()
    """Import this module first, which may register environments or agents of your own; can be repeated."""


def train(environment: tyro.conf.Positional[str], agent: str = "ebql", steps: int = 100_000) -> None:
    """Train an agent on an environment; `ebql train --help` lists all options of the agent."""
    train_command([environment, "--agent", agent, "--steps", str(steps)])


def train_command(arguments: Sequence[str]) -> None:
    """Run `ebql train` with these arguments. Its options are those of the agent that the arguments name."""
    import_named(_words_after("--import", arguments))
    kind = config_type(_word_after("--agent", arguments) or "ebql")
    _refuse_options_of_others(arguments, kind)
    preset = _word_after("--preset", arguments)
    if preset is None:
        from ebql.environments import canonical_name

        words = _positional(arguments, kind)
        data = _word_after("--from", arguments)
        if not words and data is not None:
            words = [_environment_of(data)]
        presets = (preset_of(canonical_name(word), kind) for word in words)
        preset = next((name for name in presets if name != "plain"), "plain")
    command = {"agent": kind.name, "preset": preset}
    defaults = {field.name: command.get(field.name, field.default) for field in fields(Train)}
    options = options_of(Train, defaults) + options_of(kind, vars(preset_config(kind, preset)))
    with told_in_one_line(), titled_by_group():
        parsed: Any = tyro.cli(
            grouped(options, kind),
            args=arguments,
            config=(tyro.conf.OmitArgPrefixes,),
            prog="ebql train",
            description=f"Train an agent on an environment. Agents: {', '.join(CONFIGS)}. "
            f"Presets: {', '.join(PRESETS)}. Defaults below are those of {kind.name} with preset {preset}.",
        )
    values = flattened(parsed)
    own = {name: values.pop(name) for name in defaults}
    run(Train(**own), kind(**values))


def run(wanted: Train, options: AgentConfig) -> None:
    """Train as the command line says, and show progress."""
    if wanted.steps <= 0:
        raise InputError(f"steps must be positive, not {wanted.steps}.")
    options.validate()
    from ebql.environments import canonical_name

    if wanted.environment is None and wanted.learn_from is None:
        raise InputError("Which environment? For example: ebql train CartPole-v1")
    environment = canonical_name(wanted.environment or _environment_of(str(wanted.learn_from)))
    out = wanted.out or Path("runs", f"{environment.replace('/', '-')}-{wanted.agent}-{options.seed}")
    tracking = _tracking(wanted.track, wanted.track_project, wanted.track_name)
    title, opening = _introduced(environment, options, wanted.steps, out, wanted.learn_from)
    with progress(title, wanted.steps, out, opening) as shown:
        learner = agent_types()[options.name](environment, preset=wanted.preset, **options.to_json())
        shared = {"out": out, "callback": shown.record, "heartbeat": shown.heartbeat, "track": tracking}
        if wanted.learn_from is None:
            learner.learn(wanted.steps, **shared)
        else:
            learner.learn_offline(wanted.learn_from, wanted.steps, **shared)


def resume(
    folder: tyro.conf.Positional[Path],
    steps: int | None = None,
    track: Tracker | None = None,
    track_project: str = "ebql",
    track_name: str | None = None,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Resume a run from its last checkpoint; results are bit-identical to those of an uninterrupted run.

    Args:
        folder: The run folder.
        steps: Agent steps in total; by default as many as the run was started with.
        track: Also send the metrics to this tracker; it must be installed.
        track_project: The tracker's project.
        track_name: The name of the tracker's run; by default that of the run's folder.
        accept_changes: Continue even though files of a run were changed by hand; the run records it.
        imports: Import this module first, which may register environments or agents; can be repeated.
    """
    if steps is not None and steps <= 0:
        raise InputError(f"steps must be positive, not {steps}.")
    import_named(imports)
    with Console(stderr=True).status(f"opening {escape(str(folder))}"):  # torch takes seconds to import
        kinds = agent_types()
    from ebql.deep.saving import open_run

    about = open_run(folder, accept_changes=accept_changes).config
    until = steps or int(about["steps"])
    options = config_type(about["agent"]).from_json(about["options"])
    data = about.get("data", {}).get("source")
    title, opening = _introduced(about["environment"], options, until, folder, data)
    tracking = _tracking(track, track_project, track_name)
    with progress(title, until, folder, opening) as shown:
        kinds[about["agent"]].resume(
            folder,
            steps=steps,
            accept_changes=accept_changes,
            callback=shown.record,
            heartbeat=shown.heartbeat,
            track=tracking,
        )


def agent_types() -> dict[str, Any]:
    """Return the agents by name; if torch is missing, say how to install it."""
    import ebql

    try:
        ebql.DQN  # noqa: B018 - imports torch, or says what is missing
    except ImportError as error:
        raise InputError(str(error)) from error
    from ebql.deep.agents import AGENTS

    return dict(AGENTS)


def _environment_of(data: str) -> str:
    """Return the environment that data was collected in; refuse data that does not say it."""
    agent_types()  # says what to install if torch is missing
    from ebql.deep.training.datasets import environment_of

    environment = environment_of(data)
    if environment is None:
        raise InputError(f"{data} does not name its environment: ebql train ENV --from {data}")
    return environment


def _introduced(
    environment: str | None, config: AgentConfig, until: int, folder: Path, data: str | None
) -> tuple[str, Callable[[int], str]]:
    """Return a run's title, and a function from its first step to a line that says what it will do.

    `data` is what a run learns from instead of the environment.
    """
    title = f"{config.name} on {environment}" + (f" from {data}" if data else "")
    unit = "updates" if data else "steps"

    def opening(step: int) -> str:
        size = config.ensemble().size
        members = f", {size} members" if size > 1 else ""
        steps = f"{unit} {step:,} to {until:,}" if step else f"{until:,} {unit}"
        protocol = _protocol(environment, config)
        return f"{title}: {steps}{members} → {folder}" + (f"\n{protocol}" if protocol else "")

    return title, opening


def _protocol(environment: str | None, config: AgentConfig) -> str | None:
    """Return one line that says how an Atari game is played; None for other environments."""
    from ebql.deep.building import protocol_of
    from ebql.environments import is_atari
    from ebql.environments.atari.games import wrapping_score

    if environment is None or not is_atari(environment):
        return None
    line = f"{environment}, {protocol_of(config)}"
    if limit := wrapping_score(environment):
        line += f"; its score starts again from 0 at {limit:,}"
    return line


def _tracking(track: Tracker | None, project: str, name: str | None) -> Tracking | None:
    """Return where metrics go; refuse a tracker that is not installed."""
    return None if track is None else Tracking.of(Tracking(track, project, name))


def _refuse_options_of_others(arguments: Sequence[str], kind: type[AgentConfig]) -> None:
    options = {name: {field.name for field in fields(other)} for name, other in CONFIGS.items()}
    for word in arguments:
        flag = word.partition("=")[0]
        if not flag.startswith("--"):
            continue
        option = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
        others = [name for name, known in options.items() if option in known]
        if others and kind.name not in others:
            *most, last = others
            known = f"{', '.join(most)} and {last} do" if most else f"{last} does"
            raise InputError(f"{kind.name} has no {flag}; {known}.")


def _positional(arguments: Sequence[str], kind: type[AgentConfig]) -> list[str]:
    """Return the arguments that are neither options nor the (first) value of an option."""
    flags = {"-h", "--help"}
    for field in fields(kind):
        if field.type is bool:
            name = field.name.replace("_", "-")
            flags |= {f"--{name}", f"--no-{name}"}
    words, before = [], ""
    for word in arguments:
        takes_value = before.startswith("--") and "=" not in before
        is_value = takes_value and before.replace("_", "-") not in flags
        if not word.startswith("-") and not is_value:
            words.append(word)
        before = word
    return words


def _word_after(option: str, arguments: Sequence[str]) -> str | None:
    return next(_words_after(option, arguments), None)


def _words_after(option: str, arguments: Sequence[str]) -> Iterator[str]:
    for i, word in enumerate(arguments):
        if word.startswith(f"{option}="):
            yield word.partition("=")[2]
        elif word == option and i + 1 < len(arguments):
            yield arguments[i + 1]

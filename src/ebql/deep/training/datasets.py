"""Transitions to learn from without an environment: arrays, an npz file, a run's replay, a Minari dataset.

All of them become what a replay keeps. Arrays and Minari datasets hold single steps, from which n-step
returns are summed as in training. The replay of a run holds n-step returns already.
"""

import json
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.deep import saving
from ebql.deep.config.agents import config_type
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.checks import option_name
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.spaces import Spaces
from ebql.deep.replay.n_step import learnt_rewards
from ebql.deep.replay.ring import Array
from ebql.deep.training.trainer import part_of
from ebql.environments.modules import require_imported
from ebql.errors import InputError, InputTypeError

DataSource = Any
"""A mapping of arrays, the path of an npz file or of a run's folder, a Minari dataset, or its id."""

COLUMNS = ("observations", "actions", "rewards", "next_observations", "terminations")
_OPTIONAL = "truncations"
# A replay keeps rewards and discounts as these options made them.
_STORED_WITH = ("n_step", "discount", "reward_scale", "reward_clip")


class Data(NamedTuple):
    """Transitions as a replay keeps them, without masks."""

    about: dict[str, Any]
    """Where the data comes from: the run's `config.json` keeps it."""
    replay: dict[str, Array]
    """The state of a `Replay`, or of a `FrameReplay` if it has frames."""


class Steps(NamedTuple):
    """Single steps, one a row, in the order in which they were taken."""

    observations: Array
    actions: NDArray[np.int64]
    """(rows,) counted from 0."""
    rewards: NDArray[np.float64]
    next_observations: Array
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ended: NDArray[np.bool_]
    """(rows,) whether the next row is not the step that followed."""


def read_data(source: DataSource, config: AgentConfig, spaces: Spaces) -> Data:
    """Return the data of this source as an agent with this config stores it; refuse what does not fit."""
    if isinstance(source, Mapping):
        return _from_arrays(source, {"kind": "arrays"}, config, spaces)
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_file():
            about = {"kind": "npz", "source": str(path)}
            return _from_arrays(_read_npz(path), about, config, spaces)
        if (path / "config.json").is_file():
            return _from_run(path, config, spaces)
        source = _load_minari(str(source))
    if hasattr(source, "iterate_episodes"):
        about = {"kind": "minari", "source": source.spec.dataset_id}
        return _from_arrays(_minari_columns(source), about, config, spaces)
    raise InputTypeError(
        "Data must be a mapping of arrays, an npz file, a run folder or a Minari dataset, "
        f"not {type(source).__name__}."
    )


def is_frames(replay: Mapping[str, Array]) -> bool:
    """Return whether this is the state of a `FrameReplay`."""
    return "seen" in replay


def environment_of(source: str) -> str | None:
    """Return the id of the environment that a run or a Minari dataset was made in; None if it says none."""
    path, environment = Path(source), None
    if (path / "config.json").is_file():
        environment = saving.open_run(path).config["environment"]
    elif not path.exists() and (spec := _load_minari(source).spec.env_spec) is not None:
        environment = str(spec.id)
    if environment is not None:
        require_imported(environment)
    return environment


def _from_arrays(
    columns: Mapping[str, Any], about: dict[str, Any], config: AgentConfig, spaces: Spaces
) -> Data:
    steps = checked_steps(columns, spaces)
    return Data({**about, "rows": len(steps.actions)}, n_step_rows(steps, config))


def checked_steps(columns: Mapping[str, Any], spaces: Spaces) -> Steps:
    """Return columns of equal length as steps; refuse what does not fit the spaces, in one line."""
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise InputError(f"The data lacks {', '.join(missing)}; it needs {', '.join(COLUMNS)}.")
    arrays = {name: np.asarray(columns[name]) for name in (*COLUMNS, _OPTIONAL) if name in columns}
    n_rows = len(arrays["actions"]) if arrays["actions"].ndim else 0
    if not n_rows:
        raise InputError("The data has no transitions: actions is empty.")
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) != n_rows:
            rows = "none" if array.ndim == 0 else str(len(array))
            raise InputError(
                f"The data's columns differ in length: actions has {n_rows} rows, {name} {rows}."
            )
        if "observations" not in name and array.ndim != 1:
            raise InputError(f"The data's {name} must have one number per row, not shape {array.shape[1:]}.")
    observations, after = (
        _checked_observations(name, arrays[name], spaces.observations)
        for name in ("observations", "next_observations")
    )
    terminated, truncated = (
        _checked_flags(name, arrays[name]) if name in arrays else np.zeros(n_rows, bool)
        for name in ("terminations", _OPTIONAL)
    )
    ended = terminated | truncated
    follows = (after[:-1] == observations[1:]).all(tuple(range(1, after.ndim)))
    ended[:-1] |= ~follows
    ended[-1] = True
    actions, rewards = _checked_actions(arrays["actions"], spaces), _checked_rewards(arrays["rewards"])
    return Steps(observations, actions, rewards, after, terminated, truncated, ended)


def _checked_observations(name: str, array: Array, spec: ObservationSpec) -> Array:
    if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
        raise InputError(f"The data's {name} are {array.dtype}, but the environment's are {spec.dtype}.")
    if array.shape[1:] != spec.shape:
        raise InputError(
            f"The data's {name} have shape {array.shape[1:]}, but the environment's have {spec.shape}."
        )
    try:
        rows, _ = spec.rows(array)
    except InputError as error:
        raise InputError(f"The data's {name} do not fit: {error}") from error
    if spec.n_categories is not None:
        last = spec.first_category + spec.n_categories - 1
        if rows.min() < spec.first_category or rows.max() > last:
            raise InputError(
                f"The data's {name} lie between {rows.min()} and {rows.max()}, "
                f"but the environment's between {spec.first_category} and {last}."
            )
    return rows


def _checked_actions(array: Array, spaces: Spaces) -> NDArray[np.int64]:
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"The data's actions must be whole numbers, not {array.dtype}.")
    last = spaces.first_action + spaces.n_actions - 1
    if array.min() < spaces.first_action or array.max() > last:
        raise InputError(
            f"The data's actions lie between {array.min()} and {array.max()}, "
            f"but the environment's between {spaces.first_action} and {last}."
        )
    return array.astype(np.int64) - spaces.first_action


def _checked_rewards(array: Array) -> NDArray[np.float64]:
    if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
        raise InputError(f"The data's rewards must be numbers, not {array.dtype}.")
    rewards = array.astype(np.float64)
    if not np.isfinite(rewards).all():
        row = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise InputError(f"The data's reward in row {row} is {rewards[row]}: rewards must be finite.")
    return rewards


def _checked_flags(name: str, array: Array) -> NDArray[np.bool_]:
    if array.dtype != bool:
        raise InputError(f"The data's {name} must be True or False, not {array.dtype}: use .astype(bool).")
    return array.copy()


def n_step_rows(steps: Steps, config: AgentConfig) -> dict[str, Array]:
    """Return the state of a replay that an agent with this config would have filled with these steps.

    As in training, a sum of rewards ends with its episode, and the discount of m steps is γᵐ, or 0 if the
    episode terminated within them.
    """
    follows, discount = ~steps.ended[:-1], config.discount
    if config.n_step > 1:
        _require_order(steps, config)
    rewards = learnt_rewards(steps.rewards, config.reward_scale, config.reward_clip)
    totals, lengths = rewards.copy(), np.ones(len(rewards), np.int64)
    for _ in range(config.n_step - 1):  # from sums of m steps to sums of m + 1
        totals[:-1] = np.where(follows, rewards[:-1] + discount * totals[1:], rewards[:-1])
        lengths[:-1] = np.where(follows, lengths[1:] + 1, 1)
    last = np.arange(len(rewards)) + lengths - 1
    powers = np.array([discount**m for m in range(config.n_step + 1)])
    return {
        "observations": steps.observations,
        "actions": steps.actions,
        "rewards": totals.astype(np.float32),
        "discounts": np.where(steps.terminated[last], 0, powers[lengths]).astype(np.float32),
        "next_observations": steps.next_observations[last],
        "next": np.array(0),
    }


def _require_order(steps: Steps, config: AgentConfig) -> None:
    """Refuse shuffled rows: sums over their steps would silently be single rewards."""
    open_rows = np.count_nonzero(~(steps.terminated | steps.truncated)[:-1])
    followed = np.count_nonzero(~steps.ended[:-1])
    if 2 * followed < open_rows:
        raise InputError(
            f"n-step {config.n_step} needs rows in the order of their episodes, but only {followed} of "
            f"{open_rows} are followed by their next step: sort them, or use n-step 1."
        )


def _read_npz(path: Path) -> dict[str, Array]:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.lib.npyio.NpzFile):
            with file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{str(path)!r} cannot be read as an npz file: {error}") from error
    raise InputError(f"{str(path)!r} is a single array, not an npz file of columns.")


def _from_run(path: Path, config: AgentConfig, spaces: Spaces) -> Data:
    """Return the replay in a run's last checkpoint, if it was stored with the agent's own options."""
    description = saving.open_run(path).config
    found = Spaces.from_json(description)
    if found != spaces:
        raise InputError(
            f"The run {str(path)!r} has observations {found.observations} and {found.n_actions} actions; "
            f"this agent has {spaces.observations} and {spaces.n_actions}."
        )
    checkpoint = saving.open_run(path).checkpoints.load_latest()
    replay = {} if checkpoint is None else part_of(checkpoint.arrays, "replay")
    replay.pop("masks", None)
    if not config.action_masks:
        replay.pop("legal", None)
    if not len(replay.get("actions", ())):
        raise InputError(f"The run {str(path)!r} has no transitions in its last checkpoint.")
    options = config_type(description["agent"]).from_json(description["options"])
    for name in (*_STORED_WITH, "compress") if is_frames(replay) else _STORED_WITH:
        there, here = getattr(options, name), getattr(config, name)
        if there != here:
            raise InputError(
                f"The run {str(path)!r} stored its replay with {option_name(name)} {there}, "
                f"but this agent has {here}: set it to {there}."
            )
    return Data({"kind": "run", "source": str(path), "rows": len(replay["actions"])}, replay)


def _load_minari(name: str) -> Any:
    """Return the local Minari dataset of this id or path. Nothing is downloaded or imported for it."""
    missing = InputError(f"There is no npz file, run folder or local Minari dataset {name!r}.")
    try:
        minari = import_module("minari")
        import_module("h5py")
    except ImportError as error:
        raise InputError(f'{missing} Minari datasets need minari: pip install "ebql[minari]"') from error
    folder = Path(name, "data")
    if not folder.is_dir():
        try:
            folder = Path(minari.storage.get_dataset_path(name), "data")
        except ValueError as error:
            raise missing from error
    try:
        metadata = json.loads((folder / "metadata.json").read_bytes())
    except OSError as error:
        raise missing from error
    except ValueError as error:
        raise InputError(f"The Minari dataset {name!r} cannot be read: {error}") from error
    # Without its spaces, Minari would make the environment by the module and class that the file names.
    if not isinstance(metadata, dict) or not {"observation_space", "action_space"} <= metadata.keys():
        raise InputError(f"The Minari dataset {name!r} does not say its spaces.")
    try:
        return minari.MinariDataset(folder)
    except Exception as error:  # a damaged file can raise anything
        raise InputError(f"The Minari dataset {name!r} cannot be read: {error}") from error


def _minari_columns(dataset: Any) -> dict[str, Array]:
    """Return the steps of all episodes, one after the other."""
    parts: dict[str, list[Array]] = {name: [] for name in (*COLUMNS, _OPTIONAL)}
    for episode in dataset.iterate_episodes():
        if not isinstance(episode.observations, np.ndarray):
            raise InputError("The Minari dataset's observations are not a single array.")
        truncations = np.array(episode.truncations, bool)
        truncations[-1:] = True  # an unfinished episode ends here, too
        parts["observations"].append(episode.observations[:-1])
        parts["next_observations"].append(episode.observations[1:])
        parts["actions"].append(episode.actions)
        parts["rewards"].append(episode.rewards)
        parts["terminations"].append(np.array(episode.terminations, bool))
        parts[_OPTIONAL].append(truncations)
    if not parts["actions"]:
        raise InputError("The Minari dataset has no episodes.")
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}

"""How runs begin: new ones, and those that continue from their last checkpoint."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebql.deep.replay.ring import Array
from ebql.deep.saving import open_run
from ebql.deep.training.callbacks import Callbacks
from ebql.deep.training.run_loop import Heartbeat, Recorder, failure_report
from ebql.deep.training.trainer import Learning, part_of
from ebql.errors import InputError, UserError
from ebql.runs import Checkpoint, RunFolder, noted_versions
from ebql.typed import count

_FIRST_STEP = "first_step"
"""In the description of a run of an agent that had learnt before: its weights are in checkpoints alone."""


@contextmanager
def new_run(
    out: str | Path | None, training: Learning, until: int, about: Mapping[str, Any]
) -> Iterator[Recorder | None]:
    """Begin a run in the folder `out`, and yield what records it; yield None without a folder.

    `about` describes the agent and where it learns, so that the run can be resumed until its last step.
    """
    if out is None:
        yield None
        return
    before = {_FIRST_STEP: training.step} if training.step else {}
    with (
        RunFolder.begun(out, {"kind": "deep", **about, **before, "steps": until}) as folder,
        closing(Recorder(folder, position=0, step=training.step)) as recorder,
    ):
        recorder.checkpoint(training)
        with failure_report(folder):
            yield recorder


@dataclass(frozen=True)
class StoppedRun:
    """A run that can continue. No other process can change it meanwhile."""

    folder: RunFolder
    checkpoint: Checkpoint | None
    """The last one; None if the run was killed before its first checkpoint, so that it starts afresh."""
    accept_changes: bool

    @classmethod
    @contextmanager
    def opened(cls, path: str | Path, *, accept_changes: bool) -> Iterator["StoppedRun"]:
        """Open and lock the run in this folder; refuse one whose checkpoints were deleted."""
        folder = open_run(path, accept_changes=accept_changes)
        with folder.locked():
            checkpoint = folder.checkpoints.load_latest()
            if checkpoint is None and folder.last_step():
                raise InputError(
                    f"The checkpoints of the run {str(path)!r} were deleted: it can't be trained further."
                )
            yield cls(folder, checkpoint, accept_changes)

    @property
    def description(self) -> dict[str, Any]:
        """What the run was started with: the content of its `config.json`."""
        return self.folder.config

    def restored(
        self, prepare: Callable[[], Learning], prepare_offline: Callable[[dict[str, Array]], Learning]
    ) -> Learning:
        """Return a training where the run stopped, made in its environment or from the data in its files."""
        if self.checkpoint is None and {"data", _FIRST_STEP} & self.description.keys():
            raise InputError("The run was stopped before it had saved what it began with: start it again.")
        if self.checkpoint is None or "data" not in self.description:
            training = prepare()
        else:
            with self._restoring():
                training = prepare_offline(part_of(self.checkpoint.arrays, "replay"))
        if self.checkpoint is not None:
            with self._restoring():
                training.restore(self.checkpoint.tensors, self.checkpoint.state, self.checkpoint.arrays)
                count(self.checkpoint.state["metrics_position"])
        return training

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """Turn what the content of the checkpoint raises into one line.

        A checkpoint whose checksums are right and whose content is wrong was written by somebody else.
        """
        try:
            yield
        except UserError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            step = None if self.checkpoint is None else self.checkpoint.step
            why = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
            raise InputError(f"The checkpoint of step {step} does not fit its run ({why}).") from error

    def end(self, step: int, steps: int | None) -> int:
        """Return the last step of the run, now at `step`: its own, or `steps` if the user asked for more."""
        own: int = self.description["steps"]
        if steps is not None and steps <= step:
            where = "finished at" if step >= own else "at"
            raise InputError(f"The run is already {where} step {step}: ask for more steps.")
        return own if steps is None else steps

    @contextmanager
    def continued(self, training: Learning, until: int) -> Iterator[Recorder]:
        """Continue the run with a restored training, and yield what records it."""
        folder = self.folder
        if until > self.description["steps"]:  # so that another resume continues to the new end
            folder = folder.updated(steps=until)
        if folder.changed:
            folder = folder.updated()  # with a note that it was changed
        folder = noted_versions(folder, training.step)
        position = 0 if self.checkpoint is None else self.checkpoint.state["metrics_position"]
        recorder = Recorder(folder, position, training.step, accept_changes=self.accept_changes)
        with closing(recorder):
            if self.checkpoint is None:  # or a second kill would leave records without one
                recorder.checkpoint(training)
            with failure_report(folder):
                yield recorder


@contextmanager
def progress_line(
    wanted: bool, callbacks: Callbacks, heartbeat: Heartbeat | None, title: str, until: int, out: Any
) -> Iterator[Heartbeat | None]:
    """Show a run's progress if `wanted`; yield the heartbeat that the run should call."""
    if not wanted:
        yield heartbeat
        return
    from ebql.terminal.progress import progress  # rich takes a moment to import

    folder = None if out is None else Path(out)

    def opening(step: int) -> str:
        return f"{title}: steps {step:,} to {until:,}" + (f" → {folder}" if folder else "")

    with progress(title, until, folder, opening) as shown:
        callbacks.add(shown.record)

        def beat(step: int) -> None:
            shown.heartbeat(step)
            if heartbeat is not None:
                heartbeat(step)

        yield beat

"""A run from its first step to its last: metrics, evaluations, checkpoints, and how it stops."""

import math
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tensorboardX import SummaryWriter

from ebql.deep.training.callbacks import Callbacks
from ebql.deep.training.trainer import Learning, crossings
from ebql.errors import Interrupted, RunError
from ebql.runs import LostLogError, MetricsLog, RunFolder, peak_memory, write_text
from ebql.runs.metric_names import BIAS_DEVIATION, FRAMES, LOSS, UPDATES

Record = dict[str, Any]
Heartbeat = Callable[[int], None]

_BETWEEN_HEARTBEATS = 1.0  # seconds


class Recorder:
    """Writes a run's metrics, events and checkpoints into its folder.

    Timings go to a file of their own, `timing.jsonl`, because a resumed run must write a `metrics.jsonl`
    that is identical to the byte.
    """

    def __init__(self, folder: RunFolder, position: int, step: int, *, accept_changes: bool = False) -> None:
        self.folder = folder
        self._metrics = folder.metrics(position, accept_changes=accept_changes)
        self._timing = MetricsLog.continued(folder.timing_path)
        self._events = SummaryWriter(str(folder.path / "events"), purge_step=step + 1, max_queue=100)
        self._since = (time.perf_counter(), step)

    def record(self, record: Record) -> None:
        """Append one record of metrics, and write its scalars as TensorBoard events."""
        try:
            self._metrics.append(record)
            self._timing.append({"step": record["step"], **self._speed(record["step"])})
            for name, value in record.items():
                if isinstance(value, int | float) and name != "step":  # text is not plotted
                    self._events.add_scalar(name, value, record["step"])
        except OSError as error:
            raise RunError(f"Cannot write the metrics of step {record['step']}: {error.strerror}.") from error
        except ValueError as error:  # JSON has no NaN or infinity
            raise RunError(
                f"A value was not a finite number at step {record['step']}: try a lower learning-rate."
            ) from error

    def _speed(self, step: int) -> Record:
        (then, before), self._since = self._since, (time.perf_counter(), step)
        elapsed = self._since[0] - then
        speed = (step - before) / elapsed
        if step > before:
            self._events.add_scalar("steps_per_second", speed, step)
        return {"seconds": elapsed, "time": time.time(), **peak_memory()}

    def checkpoint(self, training: Learning) -> None:
        """Save everything that a resumed run needs."""
        tensors, state, arrays = training.state()
        try:
            state["metrics_position"] = self._metrics.position()
        except OSError as error:  # a quota or a failing disk may show only now
            raise RunError(f"Cannot write the metrics of step {training.step}: {error.strerror}.") from error
        self.folder.checkpoints.save(training.step, tensors, state, arrays)

    def close(self) -> None:
        """Close the files; a full disk was already reported when a record was written."""
        for file in (self._metrics, self._timing, self._events):
            with suppress(OSError):
                file.close()


def run(
    training: Learning,
    until: int,
    evaluate: Callable[[], Record] | None,
    callbacks: Callbacks,
    recorder: Recorder | None = None,
    heartbeat: Heartbeat | None = None,
) -> None:
    """Train until the agent step `until`; log, evaluate and save at the intervals of the config.

    `heartbeat` is called with the agent step, before the first step and then about once a second. A callback
    can stop the run early; a run with a folder then saves a checkpoint first. A request to stop does not wait
    for the end of an evaluation, except for the last one: the resumed run begins with it.
    """
    config = training.config
    next_heartbeat = -math.inf

    def beat() -> None:
        nonlocal next_heartbeat
        if heartbeat is not None and (now := time.monotonic()) >= next_heartbeat:
            next_heartbeat = now + _BETWEEN_HEARTBEATS
            heartbeat(training.step)

    def report(record: Record, *, is_evaluation: bool = False) -> None:
        if (frames := training.frames_per_step) > 1:
            record = {"step": record["step"], FRAMES: frames * record["step"], **record}
        if recorder is not None:
            try:
                recorder.record(record)
            except LostLogError:
                with suppress(RunError):  # the whole folder may be gone
                    recorder.checkpoint(training)
                raise
        callbacks.record(record)
        if is_evaluation:
            callbacks.call("on_evaluation", record)

    def take_evaluation(*, last: bool, is_periodic: bool) -> None:
        training.evaluation_due = evaluate is not None
        if evaluate is None:
            return
        try:
            with stops.interrupting(enabled=not last):
                evaluated = evaluate()
        except _EvaluationInterrupted:
            return
        training.evaluation_due = False
        report({"step": training.step, **evaluated}, is_evaluation=True)
        if is_periodic:  # not after the last step alone: a longer run does not evaluate there
            training.learner.steer(evaluated.get(BIAS_DEVIATION))

    def save(*, is_due: bool, last: bool) -> None:
        """Save a checkpoint if it is due or the run was asked to stop, and then stop."""
        if recorder is None:
            return
        stop = stops.requested()  # read once, so that the run never stops without a checkpoint
        if is_due or stop is not None or callbacks.stopped:
            recorder.checkpoint(training)
            callbacks.call("on_checkpoint", {"step": training.step, "folder": recorder.folder.path})
        if stop is not None and not last:
            message = f"Stopped at step {training.step}; to continue: ebql resume {recorder.folder.path}"
            raise Interrupted(message, stop)

    with _stop_requests(enabled=recorder is not None) as stops:
        beat()
        if training.evaluation_due:
            take_evaluation(last=False, is_periodic=True)
            save(is_due=False, last=False)
        while training.step < until and not callbacks.stopped:
            before, updates = training.step, training.learner.updates
            training.advance()
            beat()
            if callbacks.see_steps:
                record = {"step": training.step, UPDATES: training.learner.updates, LOSS: training.loss}
                callbacks.step(record, updated=training.learner.updates > updates)
            last = training.step >= until
            if last or crossings(before, training.step, config.log_period):
                report(training.metrics())
            period = 0 if evaluate is None else config.evaluation_period
            is_periodic = period > 0 and crossings(before, training.step, period) > 0
            if last or is_periodic:
                take_evaluation(last=last, is_periodic=is_periodic)
            is_due = last or crossings(before, training.step, config.checkpoint_period) > 0
            save(is_due=is_due, last=last)
    callbacks.call("on_end", {"step": training.step, "stopped": training.step < until})


@contextmanager
def failure_report(folder: RunFolder) -> Iterator[None]:
    """When a run fails, add to the error how to resume it, and write the traceback to `failure.txt`."""
    try:
        yield
    except RunError as failure:
        with suppress(OSError):  # a full disk may be why the run failed
            write_text(folder.path / "failure.txt", traceback.format_exc())
        steps = folder.checkpoints.steps()
        remedy = f" To continue from step {steps[-1]}: ebql resume {folder.path}" if steps else ""
        raise RunError(f"{failure}{remedy}") from failure


class _EvaluationInterrupted(KeyboardInterrupt):
    """A request to stop arrived during an evaluation."""


class _StopRequests:
    """Whether the run was asked to stop, and what such a request interrupts."""

    def __init__(self) -> None:
        self._signal: int | None = None
        self._interrupts = False

    def requested(self) -> int | None:
        """Return the number of the signal that asked the run to stop; None if none did."""
        return self._signal

    @contextmanager
    def interrupting(self, *, enabled: bool) -> Iterator[None]:
        """Raise `_EvaluationInterrupted` within the context once the run is asked to stop, if `enabled`."""
        self._interrupts = enabled
        try:
            if enabled and self._signal is not None:
                raise _EvaluationInterrupted
            yield
        finally:
            self._interrupts = False

    def request(self, number: int, _frame: object) -> None:
        """Handle the first signal; the second one stops the run at once."""
        self._signal = number
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with suppress(
            OSError, RuntimeError, ValueError
        ):  # stderr is closed, or was interrupted during a write
            print(
                "stopping after a checkpoint; press Ctrl-C again to stop at once", file=sys.stderr, flush=True
            )
        if self._interrupts:
            raise _EvaluationInterrupted


@contextmanager
def _stop_requests(*, enabled: bool) -> Iterator[_StopRequests]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop."""
    requests = _StopRequests()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield requests
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        signal.signal(number, requests.request)
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

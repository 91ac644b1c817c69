"""Hostile input: command lines, study files, CSV files, run folders, checkpoints and saved agents.

Proven by a case: the command line answers with exit code 0, or with 1 or 2 and one line that begins with
"error:". It never shows a traceback, sends no control character to the terminal, and imports no module that
a file names. A command that is still training after its time has accepted its input.
"""

import io
import json
import os
import shutil
import signal
import struct
import sys
import traceback
import zlib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from crash.cases import Case, scratch
from crash.corruption import saved_agent, unfinished
from crash.hostile_values import CELLS, COMMANDS, DEEP, JSON, STUDY, VALUES, WORDS
from crash.processes import TIME_IS_UP, in_child, limit_time

_SECONDS = 4
_MEMORY_BYTES = 16 << 30


def inputs(count: int) -> Iterator[Case]:
    """Hostile inputs of each kind, `count` each; command lines twice as many."""
    for kind in _MAKERS:
        for i in range(count * (2 if kind == "command" else 1)):
            yield Case("hostile", kind, str(i))


def check_input(case: Case) -> str | None:
    """Run one command with hostile input, in a folder of its own."""
    rng = case.rng()
    with scratch() as folder:
        (folder / "stranger.py").write_text("open('ran', 'w').close()\n")
        words = _MAKERS[case.workload](folder, rng)
        outcome = in_child(lambda: _command(folder, words), seconds=120)
        shown = " ".join(ascii(word[:60]) for word in words)
        if not outcome.done:
            return f"ebql {shown}: {outcome}"
        code, told = outcome.value["code"], outcome.value["told"]
        if wrong := _wrong(code, told, outcome.value["error"]):
            return f"ebql {shown}: {wrong}"
        if case.workload != "command" and (folder / "ran").exists():
            return f"ebql {shown}: a module that the file names was imported"
    return None


def _command(folder: Path, words: list[str]) -> dict[str, Any]:
    """Call the command line as a person would; a time limit ends what has begun to train."""
    import resource

    from ebql.cli import main

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as `python -m` has it, so that a stranger's module could be found
    told, error, code = io.StringIO(), None, 0
    for number in TIME_IS_UP:
        signal.signal(number, _time_is_up)
    limit_time(_SECONDS)
    try:
        with redirect_stdout(told), redirect_stderr(told):
            code = main(words)
    except _TimeIsUp:
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException as problem:
        error = f"{type(problem).__name__}: {str(problem)[:200]} [{_where(problem)}]"
    limit_time(0)
    return {"code": code, "told": told.getvalue(), "error": error}


class _TimeIsUp(BaseException):
    """The command has begun to work: its input was accepted."""


def _time_is_up(*_: object) -> None:
    raise _TimeIsUp


def _where(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    return " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed(frames[-3:]))


def _wrong(code: int, told: str, error: str | None) -> str | None:
    if error is not None:
        return f"a traceback: {error}"
    if "Traceback (most recent call last)" in told:
        return f"a traceback: {told.strip().splitlines()[-1][:200]}"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if code and not any(line.startswith("error:") for line in told.splitlines()):
        return f"exit code {code} without a line that says why: {told[-200:]!r}"
    if hidden := [c for c in told if ord(c) < 32 and c not in "\n\t\r"]:
        return f"control character {hidden[0]!r} sent to the terminal"
    return None


def _hostile_command(folder: Path, rng: Random) -> list[str]:
    """Replace, insert or drop words of a command that is otherwise good."""
    _write_good_files(folder)
    words = rng.choice(COMMANDS).split()
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(words) + 1)
        change = rng.choice(("replace", "replace", "insert", "drop"))
        if change == "insert" or place == len(words):
            words.insert(place, rng.choice(WORDS))
        elif change == "replace":
            words[place] = rng.choice(WORDS)
        elif len(words) > 1:
            del words[place]
    return words


def _hostile_study(folder: Path, rng: Random) -> list[str]:
    """Change values, keys or lines of a study; or bytes of its file."""
    lines = STUDY.strip().splitlines()
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(lines))
        key = lines[place].partition("=")[0].strip()
        lines[place] = rng.choice(
            (
                f"{key} = {rng.choice(VALUES)}",
                f"{key} = {rng.choice(VALUES)}",
                f"{rng.choice(('label', 'name', 'x', 'seed', 'steps', 'kind'))} = {rng.choice(VALUES)}",
                "[[agent]]",
                f"[{key or 'a'}]",
                "",
            )
        )
    content = "\n".join(lines).encode(errors="surrogatepass")
    if rng.random() < 0.15:
        content = content[: rng.randrange(len(content))] + rng.randbytes(rng.randint(1, 30))
    (folder / "study.toml").write_bytes(content)
    return ["sweep", "study.toml", "--out", "study", "--dry-run"]


def _hostile_csv(folder: Path, rng: Random) -> list[str]:
    """A table of samples with hostile cells, rows of different lengths and odd bytes."""
    separator = rng.choice(",;\t,|")
    rows = [[f"{rng.gauss(0, 1):.3f}" for _ in range(rng.randint(1, 4))] for _ in range(rng.randint(0, 8))]
    rows.insert(
        0, [rng.choice(("a", "b", "", "\x1b[31m", "=1", "a", "[red]")) for _ in range(rng.randint(0, 4))]
    )
    for _ in range(rng.randint(0, 3)):
        row = rng.choice(rows)
        row.insert(rng.randrange(len(row) + 1), rng.choice(CELLS))
    content = rng.choice(("\n", "\r\n", "\r")).join(separator.join(row) for row in rows).encode()
    if rng.random() < 0.2:
        content = (
            rng.choice((b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b""))
            + content
            + rng.randbytes(rng.randint(0, 9))
        )
    (folder / "samples.csv").write_bytes(content)
    return ["best-k", "--csv", "samples.csv", "--splits", "2"]


def _hostile_agent(folder: Path, rng: Random) -> list[str]:
    """A file that is valid safetensors, with a hostile header or description."""
    content = saved_agent(rng.choice(("dqn-probe", "ebql-chain"))).read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    about = json.loads(header["__metadata__"]["about"])
    if rng.random() < 0.7:
        _spoil(about, rng)
        header["__metadata__"]["about"] = rng.choice((json.dumps(about),) * 4 + (DEEP, "", "{}", "null"))
    else:
        _spoil(header, rng)
    text = json.dumps(header).encode()
    length = len(text) if rng.random() < 0.9 else rng.choice((0, 1, len(text) + 99, 2**63, 2**64 - 1))
    (folder / "agent.safetensors").write_bytes(struct.pack("<Q", length) + text + content[8 + size :])
    return ["evaluate", "agent.safetensors", "--episodes", "1", *_seals_ignored(rng)]


def _hostile_folder(folder: Path, rng: Random) -> list[str]:
    """A run folder, one of whose JSON files says something hostile."""
    shutil.copytree(unfinished("dqn-probe"), folder / "run")
    path = folder / "run" / rng.choice(("config.json", "metrics.jsonl", "timing.jsonl", "attempts.jsonl"))
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    place = rng.randrange(len(lines))
    content = json.loads(lines[place])
    _spoil(content, rng)
    lines[place] = rng.choice((json.dumps(content),) * 6 + (DEEP, "null", "[]", "1", '{"step": 1e999}'))
    path.write_text("\n".join(lines) + "\n")
    command = rng.choice(
        (["resume", "run"], ["evaluate", "run", "--episodes", "1"], ["curves", "run", "--out", "c"])
    )
    return [*command, *_seals_ignored(rng)]


def _hostile_checkpoint(folder: Path, rng: Random) -> list[str]:
    """A checkpoint with right checksums, whose manifest or state says something hostile."""
    shutil.copytree(unfinished(rng.choice(("ddqn-frozenlake", "ebql-chain"))), folder / "run")
    *others, last = sorted(path for path in (folder / "run" / "checkpoints").iterdir() if path.name.isdigit())
    for other in others:
        shutil.rmtree(other)
    manifest = json.loads((last / "manifest.json").read_bytes())["manifest"]
    if rng.random() < 0.5:
        state = json.loads((last / "state.json").read_bytes())
        _spoil(state, rng)
        content = json.dumps(state).encode()
        (last / "state.json").write_bytes(content)
        manifest["files"]["state.json"] = {"bytes": len(content), "crc32": zlib.crc32(content)}
    else:
        _spoil(manifest, rng)
    sealed = {"crc32": zlib.crc32(json.dumps(manifest).encode()), "manifest": manifest}
    (last / "manifest.json").write_text(json.dumps(sealed))
    return rng.choice((["resume", "run"], ["evaluate", "run", "--episodes", "1"]))


def _seals_ignored(rng: Random) -> list[str]:
    """Return the option that ignores seals and checksums, mostly: a stranger can compute them."""
    return ["--accept-changes"] if rng.random() < 0.8 else []


def _spoil(content: dict[str, Any], rng: Random) -> None:
    """Replace, delete or add one value, anywhere in a JSON object."""
    at: Any = content
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.7:
            at = at[key]
            continue
        change = rng.random()
        if change < 0.15:
            del at[key]
        elif change < 0.25 and isinstance(at, dict):
            at[rng.choice(("", "x", "__class__", "\x1b[1m", "format"))] = rng.choice(JSON)
        else:
            at[key] = rng.choice(JSON)
        return


def _write_good_files(folder: Path) -> None:
    """Write what the commands name, so that a single hostile word is all that is wrong."""
    (folder / "good.csv").write_text("a,b\n1,2\n2,3\n3,1\n2,2\n")
    (folder / "study.toml").write_text(STUDY)
    (folder / "study").mkdir()
    (folder / "study" / "study.toml").write_text(STUDY)
    shutil.copytree(unfinished("dqn-probe"), folder / "run")
    shutil.copy(saved_agent("dqn-probe"), folder / "agent.safetensors")


_MAKERS = {
    "command": _hostile_command,
    "study": _hostile_study,
    "csv": _hostile_csv,
    "agent": _hostile_agent,
    "folder": _hostile_folder,
    "checkpoint": _hostile_checkpoint,
}

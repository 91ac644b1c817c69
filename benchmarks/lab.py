"""How fast the lab opens a folder of 1,000 runs, and how it reads a log of a million lines.

Writes `results/benchmarks/lab.json`. The million lines are read in parts of about a second, so the longest
answer is what a visitor waits for; the page shows what is known so far.
"""

import json
import tempfile
import time
from pathlib import Path

from ebql.lab.answers import encoded
from ebql.lab.files.index import Index
from ebql.lab.pages.runs import View, curves, listed
from ebql.runs import RunFolder, provenance, write_json

RUNS, LINES = 1_000, 1_000_000
OUT = Path(__file__).parent.parent / "results" / "benchmarks" / "lab.json"


def write_runs(folder: Path) -> None:
    lines = "".join(
        json.dumps({"step": 100 * i, "loss": 1 / i, "return": float(i)}) + "\n" for i in range(1, 201)
    )
    for number in range(RUNS):
        options = {"seed": number, "evaluation_period": 1_000}
        about = {"kind": "deep", "label": None, "agent": "dqn", "environment": "CartPole-v1"}
        run = RunFolder.create(folder / f"run-{number}", about | {"steps": 20_000, "options": options})
        run.metrics_path.write_text(lines)
        run.timing_path.write_text('{"step": 100, "seconds": 1.0}\n{"step": 200, "seconds": 1.0}\n')


def write_long_log(folder: Path) -> None:
    options = {"seed": 0}
    about = {"kind": "deep", "label": None, "agent": "dqn", "environment": "CartPole-v1"}
    run = RunFolder.create(folder / "long", about | {"steps": LINES, "options": options})
    with run.metrics_path.open("w") as file:
        for i in range(1, LINES + 1):
            file.write(
                f'{{"step": {i}, "loss": {1 / i}, "return": {i % 500}, "epsilon": 0.1, "updates": {i}}}\n'
            )


def seconds(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def open_folder(folder: Path) -> dict[str, float]:
    index = Index(folder)
    first = seconds(lambda: encoded(listed(index)))
    time.sleep(2.1)  # after this the folder is searched again
    again = seconds(lambda: encoded(listed(index)))
    return {"first_read_seconds": first, "opened_again_seconds": again}


def read_long_log(folder: Path) -> dict[str, float]:
    (run,) = Index(folder).runs.values()
    answers, share = [], 0.0
    while share < 1:
        began = time.perf_counter()
        told = curves([run], ["loss"], View())
        text = encoded(told)
        answers.append(time.perf_counter() - began)
        share = told["read"]
    began = time.perf_counter()
    encoded(curves([run], ["loss"], View(smooth=0.1)))
    return {
        "first_answer_seconds": answers[0],
        "longest_answer_seconds": max(answers),
        "all_read_seconds": sum(answers),
        "answer_after_reading_seconds": time.perf_counter() - began,
        "answer_bytes": len(text),
        "file_megabytes": (run.path / "metrics.jsonl").stat().st_size / 1e6,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        many, long = Path(folder, "many"), Path(folder, "one")
        write_runs(many)
        write_long_log(long)
        measured = {
            "runs": {"count": RUNS, **open_folder(many)},
            "log": {"lines": LINES, **read_long_log(long)},
        }
    for name, numbers in measured.items():
        print(name, ", ".join(f"{key} {number:,.3g}" for key, number in numbers.items()))
    write_json(OUT, {"made_by": provenance(), **measured})


if __name__ == "__main__":
    main()

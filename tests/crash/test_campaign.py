"""A bounded sample of the crash campaign, and proof that it can fail. The whole of it is `make crash`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash import campaign
from crash.cases import Case
from ebql.runs.provenance import commit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the campaign finds open files in /proc")

TOOLS = Path(__file__).parents[2] / "tools"


def python(*words):
    """Run Python in a process of its own: the campaign forks, which pytest's threads would not survive."""
    paths = os.pathsep.join([str(TOOLS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )


# Damaged files of runs are left to the whole campaign.
SAMPLED = ("kill", "multikill", "power", "error", "saved-agent", "reader", "hostile")


def test_a_sample_of_the_campaign_finds_nothing():
    done = python("-m", "crash", "--sample", "--scenario", *SAMPLED)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
    assert done.stdout.count("| 0 |") == len(SAMPLED)


def test_a_log_spares_what_this_commit_has_passed(tmp_path):
    one, two, three, four = (Case("kill", "dqn-probe", f"{i}-before") for i in range(4))
    lines = [[commit(), one.name, None], [commit(), two.name, "other bits"], ["another", three.name, None]]
    (tmp_path / "log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert campaign._passed(tmp_path / "log", [one, two, three, four]) == [campaign.Verdict(one, None)]
    assert campaign._passed(tmp_path / "none", [one]) == []


@pytest.mark.cluster
def test_a_study_survives_the_death_of_its_driver():
    done = python("-m", "crash.cluster", "driver")
    assert done.returncode == 0, done.stdout + done.stderr


# Each breaks the code as a careless change would, then performs a case that must notice.
MUTANTS = """
import json
import os
import sys
import numpy as np
from crash import campaign, workloads
from crash.cases import Case
from crash.processes import in_child
from pathlib import Path

for name in list(workloads.WORKLOADS):
    if name != "dqn-probe":
        del workloads.WORKLOADS[name]

def write_in_place():
    import ebql.runs.folder as folder
    folder.write_json = lambda path, content: Path(path).write_bytes(json.dumps(content).encode())

def sync_nothing():
    class Careless:
        fsync = staticmethod(lambda descriptor: None)
        __getattr__ = lambda self, name: getattr(os, name)
    for name, module in list(sys.modules.items()):
        if name.startswith("ebql.runs.") and hasattr(module, "os"):
            module.os = Careless()

def forget_the_optimiser():
    from ebql.deep.learner import Learner
    restore = Learner.restore
    Learner.restore = lambda self, tensors: restore(
        self, {name: np.zeros_like(x) if "optimiser" in name else x for name, x in tensors.items()}
    )

def trust_every_file():
    class Matching(int):
        __eq__ = lambda self, other: True
        __ne__ = lambda self, other: False
    import ebql.runs.checkpoints as checkpoints
    checkpoints.zlib = type("Checksums", (), {"crc32": staticmethod(lambda *_: Matching())})

def show_a_traceback():
    import importlib
    importlib.import_module("ebql.cli.main").UserError = ZeroDivisionError

with campaign.prepared():
    from crash.cases import reference
    middle = reference("dqn-probe").n_until_saved - 3
    def verdict(mutant, *cases):
        def broken():
            mutant()
            return [campaign.perform(Case(*case)).wrong for case in cases]
        return in_child(broken, seconds=120).value
    print(json.dumps({
        "write_in_place": verdict(write_in_place, *(
            ("kill", "dqn-probe", f"{number}-amid") for number in range(5, 16)
        )),
        "sync_nothing": verdict(sync_nothing, ("power", "dqn-probe", f"{middle // 2}-data")),
        "forget_the_optimiser": verdict(forget_the_optimiser, ("kill", "dqn-probe", f"{middle}-before")),
        "trust_every_file": verdict(trust_every_file, *(
            ("corruption", "dqn-probe", f"{file}-flip-0") for file in ("tensors.safetensors", "array-000.bin")
        )),
        "show_a_traceback": verdict(show_a_traceback, *(("hostile", "csv", str(i)) for i in range(6))),
    }))
"""


def test_the_campaign_notices_code_that_is_broken():
    done = python("-c", MUTANTS)
    assert done.returncode == 0, done.stderr[-2_000:]
    verdicts = json.loads(done.stdout)
    unnoticed = [mutant for mutant, told in verdicts.items() if not any(told)]
    assert not unnoticed, verdicts
    assert "cannot be continued" in str(verdicts["write_in_place"])
    assert "other bits" in str(verdicts["forget_the_optimiser"])
    assert "a traceback" in str(verdicts["show_a_traceback"])

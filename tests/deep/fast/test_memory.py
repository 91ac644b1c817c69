import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these limits")

# A block above glibc's limit gets pages of its own, which go back to the system with it. One below the limit
# is part of the heap. The limit lasts as long as the process, so each case has its own.
IN_HEAP = """
import torch
from ebql.deep.building import torch_settings
from ebql.deep.config.agents import CONFIGS
with torch_settings(CONFIGS["dqn"]()):
    block = torch.empty(20 * 2**20, dtype=torch.uint8).data_ptr()
heap = next(line for line in open("/proc/self/maps") if "[heap]" in line)
begin, end = (int(address, 16) for address in heap.split()[0].split("-"))
print(begin <= block < end)
"""


@pytest.mark.parametrize(("plain", "in_heap"), [("", "True"), ("1", "False")])
def test_training_keeps_freed_memory_except_on_the_plain_path(plain, in_heap):
    run = subprocess.run(
        [sys.executable, "-c", IN_HEAP],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"EBQL_PLAIN": plain},
    )
    assert run.stdout.strip() == in_heap

"""The word before numba compiles."""

import importlib.util
import sys

import pytest

from ebql.compiled import announced_compilation

SOURCE = """
from ebql.compiled import compiled

@compiled
def inner(x):
    return x + 1

@compiled
def outer(x):
    return inner(x) * 2
"""


@pytest.fixture
def imported(tmp_path):
    """Import functions anew, as another process would; what numba caches of them is kept in between."""
    path = tmp_path / "kernel_of_a_test.py"
    path.write_text(SOURCE)

    def import_anew():
        spec = importlib.util.spec_from_file_location(path.stem, path)
        sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield import_anew
    sys.modules.pop(path.stem, None)


def test_compilation_is_told_once_before_it_happens_and_never_from_the_cache(imported):
    first, told = imported(), []
    with announced_compilation(lambda: told.append(len(first.outer.signatures))):
        assert first.outer(1) == 4
        assert first.outer(1.0) == 4.0
    assert told == [0]
    assert len(first.outer.signatures) == 2

    again = imported()
    with announced_compilation(lambda: told.append("again")):
        assert again.outer(1) == 4
    assert again.outer.stats.cache_hits
    assert told == [0]

    assert again.outer(1j) == 2 + 2j  # nobody listens any more
    assert told == [0]

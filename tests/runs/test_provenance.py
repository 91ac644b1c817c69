import numpy as np

from ebql.runs import peak_memory


def test_the_peak_of_memory_is_in_bytes_and_never_falls():
    before = peak_memory()["peak_memory_bytes"]
    block = np.ones(100 << 20, np.uint8)
    after = peak_memory()["peak_memory_bytes"]
    assert 10 << 20 < before <= after
    assert after > block.nbytes

import pytest
import torch

from ebql.deep.fast import bfloat16


@pytest.mark.parametrize(("seconds", "gains"), [(0.5, True), (2.0, False)])
def test_a_processor_gains_if_its_products_take_less_time(seconds, gains, monkeypatch):
    times = {torch.float32: 1.0, torch.bfloat16: seconds}
    monkeypatch.setattr(bfloat16, "seconds_per_product", times.__getitem__)
    assert bfloat16.gains_by_bfloat16(torch.device("cpu")) is gains


def test_the_shortest_product_after_the_warm_up_counts(monkeypatch):
    durations = iter([0.001, 0.001, 9.0, 5.0, 7.0, 6.0, 8.0])  # the first two are decoys: the warm-up
    now = [0.0]

    def clock():
        """Return the start of a product, then its end."""
        clock.calls += 1
        if clock.calls % 2 == 0:
            now[0] += next(durations)
        return now[0]

    clock.calls = 0
    monkeypatch.setattr(bfloat16, "perf_counter", clock)
    assert bfloat16.seconds_per_product.__wrapped__(torch.float32) == pytest.approx(5.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_trial_leaves_random_numbers_alone(dtype):
    before = torch.get_rng_state()
    assert bfloat16.seconds_per_product.__wrapped__(dtype) > 0
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("capability", "gains"), [((8, 0), True), ((9, 0), True), ((7, 5), False)])
def test_a_gpu_gains_if_it_has_units_for_it(capability, gains, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability if device.index else 0)
    assert bfloat16.gains_by_bfloat16(torch.device("cuda:1")) is gains

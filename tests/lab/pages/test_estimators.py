import json

import numpy as np
import pytest

from ebql.errors import InputError
from ebql.estimators import (
    apply_rule,
    ensemble_moments,
    exact_moments,
    optimal_split,
    order_moments,
    single_moments,
)
from ebql.lab.pages.estimators import Arms, asked, exact, simulated
from ebql.lab.pages.rules import Members, rules


def test_the_errors_are_those_of_the_estimators():
    arms = Arms(4, 0.5, 2.0, 30, 5)
    means = [0.0, -0.5, -0.5, -0.5]
    told = {row["key"]: row for row in exact(arms)["estimators"]}
    best = optimal_split(means, 2.0, 30)
    expected = {
        "single": single_moments(means, 2.0, 30),
        "double": ensemble_moments(means, 2.0, 30, 2),
        "ensemble": ensemble_moments(means, 2.0, 30, 5),
        "split": exact_moments(means, 2.0, 30, best.n_index),
    }
    assert list(told) == list(expected)
    for key, moments in expected.items():
        assert told[key]["bias"] == moments.bias
        assert told[key]["variance"] == moments.variance
        assert told[key]["mse"] == moments.mse
        np.testing.assert_array_equal(told[key]["selection"], moments.selection)


def test_the_curve_of_splits_has_its_minimum_at_the_optimum():
    for samples in (2, 3, 40, 500):
        found = exact(Arms(3, 0.3, 1.0, samples, 2))
        least = int(np.argmin(found["splits"]["mse"]))
        assert found["splits"]["n_index"][least] == found["optimum"]["n_index"]
        assert found["splits"]["mse"][least] == pytest.approx(found["optimum"]["mse"])
        assert len(found["splits"]["n_index"]) <= 161


def test_simulated_estimates_agree_with_the_exact_ones():
    arms = Arms(5, 0.4, 1.0, 20, 4)
    *_, last = simulated(arms, seed=3)
    assert last["drawn"] == last["of"] == 20_000
    for row in exact(arms)["estimators"]:
        told = last["estimators"][row["key"]]
        assert told["counts"].sum() == 20_000
        assert told["mean"] == pytest.approx(row["bias"], abs=5 * (row["variance"] / 20_000) ** 0.5)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"n": "1"}, "n must be a whole number from 2 to 500"),
        ({"arms": "21"}, "arms must be"),
        ({"gap": "-1"}, "gap must be a number from 0 to 5"),
        ({"spread": "0"}, "spread must be"),
        ({"n": "4", "k": "5"}, "k must be at most n"),
    ],
)
def test_parameters_out_of_range_are_refused_in_one_line(query, line):
    with pytest.raises(InputError, match=line):
        asked(query)


def test_requests_answer_in_numbers_or_in_words(client):
    told = client.get("/api/estimators", params={"arms": 2, "gap": 0, "n": 10, "k": 2}).json()
    # Two equal arms with standard error σ/√10: the expected maximum is σ/√(10 π).
    assert told["estimators"][0]["bias"] == pytest.approx((1 / (10 * np.pi)) ** 0.5)
    refused = client.get("/api/estimators?n=one")
    assert refused.status_code == 400
    assert refused.json() == {"error": "n must be a whole number from 2 to 500, not 'one'."}


def test_the_stream_of_histograms_ends(client):
    text = client.get("/api/estimators/simulation?n=2&k=2&arms=2").text
    events = [block.split("\n") for block in text.strip().split("\n\n")]
    assert events[-1] == ["event: done", "data: {}"]
    assert json.loads(events[-2][1].removeprefix("data: "))["drawn"] == 20_000
    refused = client.get("/api/estimators/simulation?n=1").text
    assert refused.startswith("event: refused\n")
    assert "n must be a whole number from 2 to 500" in refused


def test_the_page_shows_the_same_numbers_when_a_slider_moves(visit):
    page = visit("/estimators")
    row = page.locator('#errors tr[data-key="ensemble"]')
    row.wait_for()
    assert page.locator("#story").inner_text().startswith("Ten arms are worth the same")
    slider = page.get_by_label("Gap of the best arm")
    slider.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    moments = ensemble_moments([0.0] + [-0.3] * 9, 1.0, 20, 5)
    visit.until(lambda: float(row.get_attribute("data-bias")) == moments.bias)
    assert float(row.get_attribute("data-mse")) == moments.mse
    assert f"−{abs(moments.bias):.3f}" in row.inner_text()
    assert "gap=0.3" in page.url
    visit.until(lambda: int(page.locator("#drawn").get_attribute("data-drawn")) > 1000)
    page.get_by_role("button", name="4 · An even split").click()
    best = optimal_split([0.0, -0.1], 0.5, 100)
    page.get_by_text(f"The best split is {best.n_index} of 100.").wait_for()


def test_an_address_out_of_range_is_told_and_the_page_still_works(visit):
    page = visit("/estimators?arms=99&n=many")
    told = page.locator("#notice")
    told.wait_for()
    assert "arms must be from 2 to 20, in steps of 1, not “99”: 20 is shown." in told.inner_text()
    assert "n must be from 2 to 200, in steps of 1, not “many”" in told.inner_text()
    page.locator('#errors tr[data-key="single"]').wait_for()
    assert "arms=20" in page.url
    page.get_by_label("Gap of the best arm").press("ArrowRight")
    visit.until(told.is_hidden)


def test_all_other_rules_are_shown_and_say_whether_they_are_exact(visit):
    page = visit("/estimators?arms=4&gap=0.3&spread=1&n=20&k=5")
    rows = page.locator("#rules tbody tr")
    visit.until(lambda: rows.count() == len(rules(5)))
    maxmin = page.locator('#rules tr[data-key="maxmin"]')
    exact = order_moments([0.0, -0.3, -0.3, -0.3], 0.5, 5, 1)
    assert float(maxmin.get_attribute("data-bias")) == exact.bias
    assert "exact" in maxmin.inner_text()
    assert f"{100 * exact.selection[0]:.0f}%" in maxmin.inner_text()
    clipped = page.locator('#rules tr[data-key="clipped-double"]')
    visit.until(lambda: "±" in clipped.inner_text())
    assert "simulated" in clipped.inner_text()
    visit.until(lambda: page.locator("#drawn").get_attribute("data-drawn") == "20000")
    _, low, high = (float(number) for number in clipped.get_attribute("data-bias").split(","))
    at = Members(np.array([0.0, -0.3, -0.3, -0.3]), 1.0, 20, 5)
    values = apply_rule("clipped-double", at.draw(np.random.default_rng(5), 20_000))
    assert abs(values.mean() - (low + high) / 2) < 2.5 * (high - low)

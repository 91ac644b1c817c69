import json

import numpy as np
import pytest

from ebql.experiments.ledger import Claim, Evidence, Verdict, by_seeds, exactly, weakest


@pytest.mark.parametrize(
    ("low", "high", "claimed", "verdict"),
    [
        (0.1, 0.3, ">", Verdict.HOLDS),
        (-0.3, -0.1, ">", Verdict.FAILS),
        (-0.1, 0.1, ">", Verdict.MIXED),
        (0.1, 0.3, "<", Verdict.FAILS),
        (-0.3, -0.1, "<", Verdict.HOLDS),
        (-0.1, 0.1, "<", Verdict.MIXED),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, claimed, verdict):
    assert Evidence("r", "q", (low + high) / 2, low, high, claimed).verdict is verdict


def test_thresholds_shift_the_question():
    assert exactly("n", 1, "<", 2).verdict is Verdict.HOLDS
    assert exactly("n", 3, "<", 2).verdict is Verdict.FAILS


def test_a_claim_holds_only_if_all_its_evidence_does():
    good, bad = exactly("a", 1.0), exactly("b", -1.0)
    assert Claim("n", "s", "t", (good, good)).verdict is Verdict.HOLDS
    assert Claim("n", "s", "t", (bad,)).verdict is Verdict.FAILS
    mixed = Claim("n", "s", "t", (good, bad))
    assert mixed.verdict is Verdict.MIXED
    assert mixed.summary == "holds 1, fails 1, open 0 of 2"
    assert json.loads(json.dumps(mixed.as_json()))["evidence"][1]["verdict"] == "fails"


def test_the_weakest_evidence_is_found_on_either_side():
    above = [exactly("a", 3.0), exactly("b", 1.0), exactly("c", 2.0)]
    below = [exactly("a", -3.0, "<"), exactly("b", -1.0, "<"), exactly("c", -2.0, "<")]
    assert weakest(above).quantity == weakest(below).quantity == "b"


def test_evidence_over_seeds_has_the_interval_of_its_mean():
    evidence = by_seeds("r", "q", np.array([1.0, 2.0, 3.0]))
    assert evidence.value == 2.0
    assert evidence.high - 2.0 == pytest.approx(2.0 - evidence.low) == pytest.approx(4.302652730 / 3**0.5)

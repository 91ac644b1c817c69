import json

import numpy as np
import pytest

from ebql.paper.ledger import Claim, Evidence, Verdict, by_seeds, exactly, weakest


@pytest.mark.parametrize(
    ("low", "high", "claimed", "verdict"),
    [
        (0.1, 0.3, ">", Verdict.HOLDS),
        (-0.3, -0.1, ">", Verdict.FAILS),
        (-0.1, 0.1, ">", Verdict.OPEN),
        (0.1, 0.3, "<", Verdict.FAILS),
        (-0.3, -0.1, "<", Verdict.HOLDS),
        (-0.1, 0.1, "<", Verdict.OPEN),
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
    undecided = Evidence("r", "q", 0.0, -1.0, 1.0)
    assert Claim("n", "s", "t", (bad, undecided)).verdict is Verdict.FAILS
    assert Claim("n", "s", "t", (good, undecided)).verdict is Verdict.MIXED
    assert Claim("n", "s", "t", (undecided, undecided)).verdict is Verdict.OPEN
    assert mixed.summary == "holds 1, fails 1, open 0 of 2"
    assert json.loads(json.dumps(mixed.as_json()))["evidence"][1]["verdict"] == "fails"


def test_the_weakest_evidence_is_found_on_either_side():
    above = [exactly("a", 3.0), exactly("b", 1.0), exactly("c", 2.0)]
    below = [exactly("a", -3.0, "<"), exactly("b", -1.0, "<"), exactly("c", -2.0, "<")]
    assert weakest(above).quantity == weakest(below).quantity == "b"


def test_what_is_refuted_is_weaker_than_what_is_open():
    refuted, undecided = Evidence("r", "a", -0.15, -0.2, -0.1), Evidence("r", "b", -0.1, -0.3, 0.1)
    assert weakest([undecided, refuted]) is refuted


def test_an_exact_value_on_the_threshold_is_not_beyond_it():
    assert exactly("share", 0.5, "<", 0.5).verdict is Verdict.FAILS


def test_evidence_over_seeds_has_the_interval_of_its_mean():
    evidence = by_seeds("r", "q", np.arange(5.0))
    assert evidence.value == 2.0
    assert evidence.high - 2.0 == pytest.approx(2.0 - evidence.low)
    assert evidence.high - 2.0 == pytest.approx(2.776445105 * 0.5**0.5)  # t of 4 degrees of freedom

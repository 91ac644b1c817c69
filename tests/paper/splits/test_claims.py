from ebql.paper.ledger import Verdict
from ebql.paper.splits.claims import estimator_claims, figure_1_claims, figure_2_claims
from ebql.paper.splits.curves import best_splits, split_curves


def test_the_theory_holds():
    assert {claim.verdict for claim in estimator_claims()} == {Verdict.HOLDS}


def test_the_claims_of_the_figures_hold():
    curves = split_curves(lambda _: None, points=2, replications=100)
    assert [claim.verdict for claim in figure_1_claims(curves)] == [Verdict.HOLDS]
    results = best_splits(lambda _: None, points=13)
    assert [claim.verdict for claim in figure_2_claims(results)] == [Verdict.HOLDS]


def test_figure_1_does_not_hold_if_the_best_split_never_reaches_its_peak():
    curves = split_curves(lambda _: None, gaps=(0.02, 0.1, 0.05), points=2, replications=100)
    assert [claim.verdict for claim in figure_1_claims(curves)] != [Verdict.HOLDS]

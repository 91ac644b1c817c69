import numpy as np
import pytest

from ebql.estimators.winner import Arms, winner_of, words


@pytest.fixture
def rates():
    return winner_of(Arms.from_successes([2000] * 3, [100, 130, 110], ["A", "B", "C"]), control="A")


def test_the_headline_is_one_sentence_with_estimate_interval_and_lift(rates):
    told = words.headline(rates)
    assert told.startswith(
        "B won with a rate of 6.5%; its true rate, corrected for having been picked as the"
    )
    assert f"best of 3 arms, is about {100 * rates.shrinkage.estimate:.4g}% (95% interval " in told
    assert f"{100 * rates.interval.low:.4g}% to {100 * rates.interval.high:.4g}%)" in told
    assert f"a lift of {100 * rates.lift.estimate:+.3g} percentage points over A (" in told
    assert told.endswith(").")
    assert "\n" not in told


def test_means_have_no_percent_and_without_a_control_there_is_no_lift():
    winner = winner_of(Arms.from_moments([50] * 2, [1.25, 0.5], [1.0, 1.0], ["x", "y"]))
    told = words.headline(winner)
    assert told.startswith("x won with a mean of 1.25; its true mean, ")
    assert "%" not in told.replace("95% interval", "")
    assert "lift" not in told
    assert "lift" not in words.estimand(winner)


def test_the_estimand_says_which_arm_and_that_the_best_may_be_another(rates):
    told = words.estimand(rates)
    assert told.startswith("Estimated: the true rate of B, given that it won, and its lift over A.")
    assert "best arm may be another one" in told


def test_the_recommendation_names_the_method_its_error_and_the_luck(rates):
    told = words.recommendation(rates)
    assert told.startswith(
        f"Use: shrinkage, {100 * rates.shrinkage.estimate:.4g}%, with an expected error of "
    )
    assert f"owes {100 * rates.naive.bias:+.3g} percentage points to luck" in told
    apart = winner_of(Arms.from_moments([100] * 8, [9.0, *[0.1 * i for i in range(7)]], [1.0] * 8))
    assert "Use: naive, 9," in words.recommendation(apart)
    assert "stands so far apart" in words.recommendation(apart)


def test_cautions_are_told_where_they_apply(rates):
    assert words.cautions(rates) == []
    control = winner_of(rates.arms, control="B")
    assert words.cautions(control) == ["The control, B, has the highest rate itself: there is no lift."]
    rare = winner_of(Arms.from_successes([100] * 2, [3, 3], ["A", "B"]))
    tied, few = words.cautions(rare)
    assert tied == "2 arms share the highest rate; A is the first of them."
    assert few.startswith("An arm has 3 conversions or failures")
    small = winner_of(Arms.from_moments([12, 50], [1.0, 0.0], [1.0, 1.0]))
    assert words.cautions(small)[0].startswith("An arm has 12 samples")
    # One of 50 arms leads by much, but not by more than chance allows: shrinkage and interval disagree.
    lead = winner_of(Arms.from_moments([10_000] * 50, [4.0] + [-1.0, 1.0] * 24 + [0.0], [100.0] * 50))
    assert lead.estimate.estimate < lead.interval.low
    assert any("lies outside the interval" in caution for caution in words.cautions(lead))


def test_skewed_samples_are_told_if_there_are_too_few():
    rng = np.random.default_rng(3)
    few, enough = rng.lognormal(size=(3, 60)), rng.lognormal(size=(3, 20_000))
    (told,) = words.cautions(winner_of(Arms.from_samples(few)))
    skewness = Arms.from_samples(few).skewness
    assert told.startswith(f"The samples are skewed (skewness {skewness:.1f}), and an arm has 60:")
    assert f"fewer than {25 * skewness**2:,.0f}." in told
    assert words.cautions(winner_of(Arms.from_samples(-few)))  # to the left as well
    assert words.cautions(winner_of(Arms.from_samples(enough))) == []
    assert words.cautions(winner_of(Arms.from_samples(rng.normal(size=(3, 60))))) == []


def test_summaries_that_look_like_revenue_are_told_if_there_are_few_samples():
    def cautions(count, std):
        return words.cautions(winner_of(Arms.from_moments([count] * 2, [10.0, 8.0], [std, 2.0])))

    (told,) = cautions(999, 10.5)
    assert told.startswith("A standard deviation above the mean suggests skewed samples")
    assert cautions(1000, 10.5) == cautions(999, 9.5) == []

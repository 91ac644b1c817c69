import numpy as np
import pytest

from ebql.analysis.findings import (
    UNKNOWN,
    findings,
    paired_by_environment,
    paired_over_environments,
    paired_without_one,
    verdict_changes,
)
from ebql.analysis.scores import read_scores


@pytest.fixture
def found_with(write_run, tmp_path):
    """Write a run of DQN and one of EBQL for each pair of scores, and compare them."""

    def find(*scores):
        for seed, (dqn, ensemble) in enumerate(scores):
            write_run(f"d{seed}", [dqn] * 3, seed=seed, biases=[5 - seed] * 3)
            write_run(
                f"e{seed}", [ensemble] * 3, seed=seed, agent="ebql", ensemble_size=5, biases=[-0.1 * seed] * 3
            )
        return findings(read_scores(tmp_path))

    return find


@pytest.fixture
def found(found_with):
    # Normalised, with the lowest run 0 and EBQL's mean of 10 as 1: DQN 0 to .4 and EBQL .8 to 1.2.
    return found_with((0, 8), (2, 10), (4, 12), (1, 9), (3, 11))


def test_the_best_agent_is_ranked_first_and_compared_with_all_others(found):
    assert found.ranking == ["EBQL K=5", "DQN"]
    assert found.rivals == ["DQN"]
    assert found.aggregates["DQN"]["mean"].value == pytest.approx(0.2)
    assert found.lead["DQN"].value == pytest.approx(0.8)
    assert found.lead["DQN"].excludes(0)
    # Every run of EBQL beats every run of DQN, so the bootstrap does not vary and gives no interval.
    assert found.improvement["EBQL K=5", "DQN"].value == 1
    assert found.improvement["DQN", "EBQL K=5"].value == 0
    assert not any(share.known for share in found.improvement.values())


def test_runs_of_one_seed_are_paired(found):
    assert found.paired["DQN"] == pytest.approx((0.8, 0.8, 0.8))


def test_profiles_begin_with_all_and_end_with_none(found):
    profile = found.profiles["DQN"]
    assert profile.thresholds[[0, -1]].tolist() == pytest.approx([0, 1.2])
    assert profile.share[-1] == 0


def test_few_seeds_have_means_but_no_intervals_and_no_probabilities(found_with):
    found = found_with((0, 8), (2, 10), (4, 12), (2, 10))
    assert found.aggregates["DQN"]["mean"].value == pytest.approx(0.2)
    assert found.lead["DQN"].value == found.paired["DQN"].value == pytest.approx(0.8)
    unknown = [*found.aggregates["DQN"].values(), found.lead["DQN"], found.paired["DQN"]]
    assert not any(interval.known for interval in unknown)
    assert np.isnan(found.profiles["DQN"].low).all()
    assert found.profiles["DQN"].share[0] == 0.75
    assert np.isnan(list(found.improvement.values())).all()


def test_bias_and_score_are_correlated_within_environments(found_with):
    found = found_with((0, 8), (2, 10), (4, 12))
    assert found.correlated == ["W-v0"]
    # Biases 5 4 3 0 -0.1 -0.2 fall as the scores rise.
    assert found.bias_and_score.mean == pytest.approx(-1)
    # Their sizes rank 6 5 4 1 2 3 against 1 to 6: the squared differences sum to 62.
    assert found.size_of_bias_and_score.mean == pytest.approx(1 - 6 * 62 / 210)
    assert found.bias == {}


def test_luck_in_the_same_episodes_is_no_relation_of_bias_and_score(write_run, tmp_path):
    # In each evaluation Q̂ is 9, so the bias is 9 minus the return. Ranks of the returns at two evaluations:
    first, last = (2, 5, 3, 1, 4), (1, 2, 3, 4, 5)  # squared differences sum to 20, which is no correlation
    for seed, returns in enumerate(zip(first, last, strict=True)):
        write_run(f"d{seed}", returns, seed=seed, steps=20, biases=[9 - value for value in returns])
    found = findings(read_scores(tmp_path))
    assert found.bias_and_score.mean == pytest.approx(0)
    assert found.size_of_bias_and_score_of_agents.mean == pytest.approx(0)


def test_one_evaluation_cannot_relate_bias_and_score(write_run, tmp_path):
    for seed in range(5):
        write_run(f"d{seed}", [seed], seed=seed, steps=10, biases=[1])
    assert findings(read_scores(tmp_path)).bias_and_score is None


def test_without_common_ground_nothing_is_compared(write_run, tmp_path):
    write_run("d", [1], environment="A", biases=[None])
    write_run("e", [1], environment="B", agent="double-dqn", biases=[None])
    found = findings(read_scores(tmp_path))
    assert not found.ranking
    assert not found.lead
    assert found.bias_and_score is None


def test_differences_are_paired_in_each_environment(write_run, tmp_path):
    for seed in range(6):
        write_run(f"d{seed}", [1, 1, seed], biases=[0, 0, 1], seed=seed)
        write_run(
            f"e{seed}", [1, 1, seed + 2], seed=seed + 1, agent="ebql", ensemble_size=5, biases=[0, 0, seed]
        )
    study = read_scores(tmp_path)
    scores = paired_by_environment(study, "EBQL K=5", "DQN", "score")
    assert scores == {"W-v0": pytest.approx((1, 1, 1))}  # seeds 1 to 5; EBQL's seed s has s + 1
    biases = paired_by_environment(study, "EBQL K=5", "DQN", "bias")["W-v0"]
    assert biases.value == 1
    assert biases.low == pytest.approx(1 - 2.776445 * (2.5 / 5) ** 0.5)


def test_differences_are_averaged_over_environments(write_run, tmp_path):
    for seed in range(5):
        for environment, gain in (("A", 4), ("B", 8)):
            where = {"environment": environment, "seed": seed}
            write_run(f"{environment}d{seed}", [0, 10 + seed], biases=[0, 2], **where)
            ebql = {"agent": "ebql", "ensemble_size": 5, "biases": [0, 1]}
            write_run(f"{environment}e{seed}", [0, 10 + seed + gain], **where, **ebql)
    study = read_scores(tmp_path)
    by_environment = paired_by_environment(study, "EBQL K=5", "DQN", "normalised")
    over_both = paired_over_environments(study, "EBQL K=5", "DQN", "normalised")
    assert over_both.value == pytest.approx((by_environment["A"].value + by_environment["B"].value) / 2)
    assert over_both.known
    assert paired_over_environments(study, "EBQL K=5", "Maxmin", "normalised") is UNKNOWN


@pytest.fixture
def with_leads(write_run, tmp_path):
    """Write DQN and EBQL on a game for each lead; EBQL scores so much more, give or take 1.

    DoubleDQN scores nothing, so that 0 is 0 on the scale of each game.
    """

    def write(*leads):
        for game, lead in zip("ABCDE", leads, strict=False):
            for seed in range(6):
                where = {"environment": game, "seed": seed, "biases": [0, 0]}
                score = 50 + lead + (-1) ** seed
                write_run(f"{game}0{seed}", [0, 0], agent="double-dqn", **where)
                write_run(f"{game}d{seed}", [0, 50], **where)
                write_run(f"{game}e{seed}", [0, score], agent="ebql", ensemble_size=5, **where)
        return read_scores(tmp_path)

    return write


PAIR = ("EBQL K=5", "DQN", "normalised")


def test_a_lead_in_one_environment_rests_on_it(with_leads):
    study = with_leads(0, 40, 0, 0)
    assert paired_over_environments(study, *PAIR).excludes(0)
    one = paired_without_one(study, *PAIR)
    assert one.environment == "B"
    assert one.difference == paired_over_environments(study, *PAIR, without="B")
    assert one.difference.value == pytest.approx(0)
    assert verdict_changes(study, *PAIR) == [one]


def test_a_lead_in_every_environment_rests_on_none(with_leads):
    study = with_leads(5, 40, 5, 5)
    assert paired_without_one(study, *PAIR).environment == "B"
    assert verdict_changes(study, *PAIR) == []


def test_a_lead_that_one_environment_turns_round_rests_on_it(with_leads):
    study = with_leads(-5, 40, -5, -5)
    assert paired_over_environments(study, *PAIR).low > 0
    (one,) = verdict_changes(study, *PAIR)
    assert one.environment == "B"
    assert one.difference.high < 0


def test_no_difference_rests_on_no_environment(with_leads):
    assert verdict_changes(with_leads(0, 0, 0), *PAIR) == []


def test_a_lead_can_rest_on_each_of_several_environments(with_leads):
    study = with_leads(3, 3, -3)
    assert paired_over_environments(study, *PAIR).low > 0
    assert [one.environment for one in verdict_changes(study, *PAIR)] == ["A", "B"]


def test_where_no_lead_is_found_none_is_sought_in_the_other_environments(with_leads):
    study = with_leads(1, 1, 1, -3)
    assert not paired_over_environments(study, *PAIR).excludes(0)
    assert paired_over_environments(study, *PAIR, without="D").low > 0
    assert verdict_changes(study, *PAIR) == []


def test_of_two_environments_none_is_left_out(with_leads):
    study = with_leads(0, 40)
    assert paired_without_one(study, *PAIR) is None
    assert verdict_changes(study, *PAIR) == []


def test_agents_without_shared_seeds_rest_on_nothing(with_leads):
    assert paired_without_one(with_leads(0, 0, 0), "EBQL K=5", "Maxmin", "normalised") is None


def test_seeds_not_shared_are_not_paired(write_run, tmp_path):
    write_run("d", [1, 2])
    write_run("e", [3, 4], agent="double-dqn", seed=1)
    found = findings(read_scores(tmp_path))
    assert found.paired == {}
    assert np.isnan(found.lead["DQN"].low)

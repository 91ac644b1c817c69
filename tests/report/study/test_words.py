import pytest

from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.analysis.statistics import Interval
from ebql.report.study.words import caveats, further, headline, told


@pytest.fixture
def said(write_run, tmp_path):
    """Write runs of agents, a list of scores each, in some environments, and say what is found."""

    def say(scores, environments=("A", "B"), biases=None):
        for environment in environments:
            for agent, own in scores.items():
                size = {"ensemble_size": 5} if agent == "ebql" else {}
                for seed, score in enumerate(own):
                    bias = None if biases is None else [biases[agent]] * 3
                    write_run(
                        f"{environment}{agent}{seed}",
                        [score] * 3,
                        seed=seed,
                        agent=agent,
                        environment=environment,
                        biases=bias or [None] * 3,
                        **size,
                    )
        study = read_scores(tmp_path)
        found = findings(study)
        return headline(study, found), further(found), " ".join(caveats(study, found))

    return say


def test_a_sure_winner_is_named_with_numbers(said):
    words, _, more = said({"dqn": [0, 1, 2, 1, 1], "ebql": [9, 10, 11, 10, 10]})
    assert words.sure
    assert words.sentence.startswith("EBQL K=5 won over 2 environments: its IQM of 1.00 [")
    assert "is +0.90 [" in words.sentence
    assert words.sentence.endswith("a run of it beats one of DQN with probability 1.00 [1.00, 1.00].")
    assert "With 5 seeds intervals are too narrow" in more


def test_few_seeds_are_no_win(said):
    words, _, _ = said({"dqn": [0, 1, 2], "ebql": [9, 10, 11]})
    assert not words.sure
    assert words.sentence.startswith("EBQL K=5 is ahead over 2 environments, but on 3 seeds only: its IQM")


def test_an_interval_with_zero_is_no_win(said):
    words, _, _ = said({"dqn": [0, 10, 5, 4, 3], "ebql": [1, 9, 6, 4, 5]})
    assert not words.sure
    assert words.sentence.startswith("No clear winner over 2 environments: EBQL K=5 leads DQN by +")
    assert "an interval that includes 0" in words.sentence


def test_one_seed_is_said_to_tell_nothing_and_one_environment_speaks_in_points(said):
    words, _, more = said({"dqn": [4], "ebql": [9]}, environments=["A"])
    assert words.sentence == (
        "One seed each, so nothing is sure: EBQL K=5 scored highest in A, with an IQM of 1.00 against 0.00 "
        "of DQN (mean scores 9 and 4)."
    )
    assert "no intervals" in more


def test_an_agent_alone_and_none(said, write_run, tmp_path):
    words, rest, _ = said({"dqn": [4, 5]}, environments=["A"])
    assert "in A (mean score 4.5); there is no other agent" in words.sentence
    assert rest == []
    write_run("other", [1], agent="double-dqn", environment="C", biases=[None])
    study = read_scores(tmp_path)
    assert headline(study, findings(study)).sentence.startswith("No comparison yet")


def test_the_baseline_is_named_if_another_is_second(said):
    scores = {"dqn": [0, 1, 2], "double-dqn": [9, 10, 12], "ebql": [9, 10, 13]}
    _, (first, *_), _ = said(scores, biases={"dqn": 3, "double-dqn": 2, "ebql": 1})
    assert first.startswith("EBQL K=5 is ahead of DQN: +")


def test_whether_bias_goes_with_score_is_said(said):
    scores = {"dqn": [0, 1, 2], "double-dqn": [5, 6, 7], "ebql": [9, 10, 13]}
    _, sentences, _ = said(scores, biases={"dqn": 3, "double-dqn": -2, "ebql": 1})
    assert (
        "Within environments a smaller bias went with a higher score (mean rank correlation −0.95"
        in sentences[-1]
    )


def test_what_is_left_out_is_said(said, write_run):
    write_run("c", [1, 2], environment="C")
    write_run("d", [], environment="C", seed=1)
    _, _, more = said({"dqn": [0, 1], "ebql": [2, 3]})
    assert "Environments not compared" in more
    assert more.count(" C.") == 1
    assert "Unfinished: 1 of 9 evaluated runs; not evaluated yet, and left out: 1." in more


def test_numbers_carry_their_interval_if_there_is_one():
    assert told(Interval(0.5, -0.25, 1.0)) == "0.50 [−0.25, 1.00]"
    assert told(Interval(0.5, float("nan"), float("nan")), sign=True) == "+0.50"

import pytest

from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.analysis.statistics import Interval
from ebql.report.study.words import (
    bias_measurement_notes,
    caveats,
    correlations_in_words,
    further_findings,
    headline,
    list_or_range,
    method,
    with_interval,
)
from ebql.runs import MetricsLog, read_metrics


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
        return headline(study, found), further_findings(study, found), " ".join(caveats(study, found))

    return say


def test_a_sure_winner_is_named_with_numbers(said):
    words, _, more = said({"dqn": [0, 1, 2, 1, 1], "ebql": [9, 10, 11, 10, 10]})
    assert words.significant
    assert words.sentence.startswith("EBQL K=5 is the best agent over 2 environments: its IQM of 1.00 [")
    assert "is 0.90 [" in words.sentence
    assert words.sentence.endswith("a run of EBQL K=5 beats a run of DQN with probability 1.00.")
    assert "With 5 seeds, intervals are too narrow" in more


RUN_MORE = "run at least five (set “seeds = 5” in the study and repeat the sweep)."


def test_few_seeds_rank_nobody_and_the_headline_says_what_to_do(said):
    words, rest, more = said({"dqn": [0, 1, 2], "ebql": [9, 10, 11]}, biases={"dqn": 3, "ebql": 1})
    assert words == (f"Three seeds per agent cannot rank these agents: {RUN_MORE}", False)
    assert rest == []  # no correlation; several environments have no mean score in common
    assert "Intervals and probabilities are not shown with fewer than 5 seeds" in more
    assert "best agent" not in more


def test_the_agent_with_the_fewest_seeds_decides(said):
    words, _, _ = said({"dqn": [0, 1, 2, 1, 1, 0], "ebql": [9, 10]})
    assert words == (f"Some agents have only two seeds, which cannot rank these agents: {RUN_MORE}", False)


def test_few_seeds_of_one_environment_have_their_means_told_without_a_winner(said, tmp_path, edit_log):
    scores = {"dqn": [-4, -5], "double-dqn": [1, 2]}
    _, rest, _ = said(scores, environments=["A"], biases={"dqn": 3, "double-dqn": 2})
    assert rest == ["Mean scores in A: DQN −4.5, DoubleDQN 1.5."]
    for path in tmp_path.glob("*/metrics.jsonl"):
        bias = 0.5 if path.parent.name.startswith("Adqn") else -0.25
        edit_log(path, '"bias/mean"', f'"bias/normalised": {bias}, "bias/mean"')
    study = read_scores(tmp_path)
    assert (
        further_findings(study, findings(study))[1]
        == "Mean bias relative to the return: DQN +0.50, DoubleDQN −0.25."
    )


def test_few_seeds_cannot_tell_whether_bias_goes_with_score(said, tmp_path):
    said({"dqn": [0, 1], "ebql": [9, 10]}, biases={"dqn": 3, "ebql": 1})
    study = read_scores(tmp_path)
    assert correlations_in_words(study, findings(study)) == [
        "Two seeds per agent cannot show whether less biased agents score higher."
    ]
    explanation = " ".join(method(study))
    assert "A run's score is" in explanation
    assert "bootstrap" not in explanation


def test_a_few_values_are_listed_and_more_are_a_range():
    assert list_or_range([3.0, -1.0, 2.0, 2.5], ".1f") == "3.0, −1.0, 2.0, 2.5"
    assert list_or_range([3.0, -1.0, 2.0, 2.5, 0.0], ".1f") == "−1.0 to 3.0"


def test_an_interval_with_zero_is_no_win(said):
    words, _, _ = said({"dqn": [0, 10, 5, 4, 3], "ebql": [1, 9, 6, 4, 5]})
    assert not words.significant
    assert words.sentence.startswith("No clear winner over 2 environments: EBQL K=5 leads DQN by ")
    assert "but the interval includes 0" in words.sentence


def test_a_difference_that_rests_on_one_environment_is_a_caveat(write_run, tmp_path):
    for environment, lead in (("A", 0), ("B", 40), ("C", 0)):
        for seed in range(6):
            where = {"environment": environment, "seed": seed, "biases": [None]}
            score = 50 + lead + (-1) ** seed
            write_run(f"{environment}0{seed}", [0], agent="double-dqn", **where)
            write_run(f"{environment}d{seed}", [50], **where)
            write_run(f"{environment}e{seed}", [score], agent="ebql", ensemble_size=5, **where)
    study = read_scores(tmp_path)
    (sentence,) = [words for words in caveats(study, findings(study)) if "depends on" in words]
    told = "The seed-paired difference between EBQL K=5 and DQN depends on B: without that environment it is "
    assert sentence.startswith(told)
    assert sentence.endswith("] in normalised scores.")


def test_one_environment_speaks_in_points(said):
    words, _, _ = said({"dqn": [4, 4, 3, 5, 4], "ebql": [9] * 5}, environments=["A"])
    assert "higher than that of DQN, the second best (mean scores 9 and 4)" in words.sentence


def test_one_seed_is_said_to_tell_nothing(said):
    words, _, _ = said({"dqn": [4], "ebql": [9]}, environments=["A"])
    assert words.sentence == f"One seed per agent cannot rank these agents: {RUN_MORE}"


def test_an_agent_alone_and_none(said, write_run, tmp_path):
    words, rest, _ = said({"dqn": [4, 5, 4, 5, 4.5]}, environments=["A"])
    assert "in A (mean score 4.5); there is no other agent" in words.sentence
    assert rest == []
    write_run("other", [1], agent="double-dqn", environment="C", biases=[None])
    study = read_scores(tmp_path)
    assert headline(study, findings(study)).sentence.startswith("No comparison yet")


def test_few_seeds_of_an_agent_alone_do_not_show_its_spread(said):
    words, _, _ = said({"dqn": [4, 5]}, environments=["A"])
    assert words.sentence == f"Two seeds per agent cannot show how much DQN varies between runs: {RUN_MORE}"


def test_the_baseline_is_named_if_another_is_second(said):
    scores = {"dqn": [0, 1, 2, 1, 1], "double-dqn": [9, 10, 12, 9, 9], "ebql": [9, 10, 13, 10, 10]}
    _, (first, *_), _ = said(scores, biases={"dqn": 3, "double-dqn": 2, "ebql": 1})
    assert first.startswith("EBQL K=5 is ahead of DQN: its IQM differs by +")


def test_whether_bias_goes_with_score_is_said(said):
    scores = {"dqn": [0, 1, 2, 3, 4], "double-dqn": [5, 6, 7, 8, 8.5], "ebql": [9, 10, 13, 11, 12]}
    _, sentences, _ = said(scores, biases={"dqn": 3, "double-dqn": -2, "ebql": 1})
    assert (
        "Within environments, runs with a smaller bias had higher scores (mean rank correlation −0.94"
        in sentences[-1]
    )


def test_what_is_left_out_is_said(said, write_run):
    write_run("c", [1, 2], environment="C")
    write_run("d", [], environment="C", seed=1)
    _, _, more = said({"dqn": [0, 1], "ebql": [2, 3]})
    assert "Environments not compared" in more
    assert more.count(" C.") == 1
    assert "Unfinished: 1 of 9 evaluated runs. Unfinished runs are included up to their latest step" in more
    assert "Not evaluated yet, and left out: 1 run." in more


def test_numbers_carry_their_interval_if_there_is_one():
    assert with_interval(Interval(0.5, -0.25, 1.0)) == "0.50 [−0.25, 1.00]"
    assert with_interval(Interval(0.5, float("nan"), float("nan")), sign=True) == "+0.50"


@pytest.fixture
def notes(write_run, tmp_path):
    """Write runs with these bias fields in each evaluation, and return the notes on them."""

    def note(*fields_of_runs):
        for seed, fields in enumerate(fields_of_runs):
            log = write_run(f"r{seed}", [1, 2], seed=seed) / "metrics.jsonl"
            records = read_metrics(log)
            for record in records:
                if "bias/mean" in record:
                    record.update({f"bias/{name}": value for name, value in fields.items()})
            with MetricsLog(log, 0) as edited:
                for record in records:
                    edited.append(record)
        return bias_measurement_notes(read_scores(tmp_path))

    return note


ADVICE = "“ebql evaluate RUN” measures the bias of a run with this version."


def test_runs_of_earlier_versions_whose_states_were_all_dropped_say_so_and_what_to_do(notes):
    assert notes({"mean": None, "dropped": 600}, {"mean": 0.5, "dropped": 3}) == [
        "The bias is unknown in 1 of 2 runs: all 1,200 evaluated states were dropped (too close to the end "
        f"of an episode cut off by the time limit, so their returns are incomplete). {ADVICE}"
    ]


def test_a_known_limit_and_horizon_are_named(notes):
    (note,) = notes({"mean": None, "dropped": 50, "limit": 100, "horizon": 459})
    assert note.startswith("The bias is unknown in the only run: all 100 evaluated states were dropped")
    assert "(fewer than 459 steps before the time limit of 100 steps)" in note


def test_runs_without_a_bias_that_dropped_nothing_have_not_measured_it(notes):
    assert notes({"mean": None}, {"mean": 0.5}) == [f"No bias was measured in 1 of 2 runs. {ADVICE}"]


def test_no_run_has_measured_its_bias(notes):
    assert notes({"mean": None}, {"mean": None}) == [f"No run has measured its bias. {ADVICE}"]


def test_bootstrapped_biases_are_said_to_be_drawn_towards_0(notes):
    assert notes({"method": "bootstrapped"}, {"method": "complete"}) == [
        "In 1 of 2 runs, returns that a time limit cut short were completed with the agent's own value "
        "estimates, which draws these biases towards 0."
    ]


def test_complete_measurements_need_no_note(notes):
    assert notes({}, {"method": "dropped", "dropped": 4}) == []

"""What the documents say about kept results is what the kept results say, to the digit."""

import dataclasses

import numpy as np
import pytest

import evidence
import evidence_variants
from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.kept.files import KeptRun, holds_kept, write_kept

SCORES_AND_BIASES = ((2.0, 1.0), (2.0, 0.5), (5.0, 0.1))


@pytest.fixture
def study(tmp_path):
    """Write three agents on some games; EBQL scores 3 more than the others with every seed.

    In the games of `flips` the biases are negative, and in those of `ties` the scores are alike.
    """

    games = ("MinAtar/Breakout-v1", "MinAtar/Asterix-v1")

    def write(seeds, kept=evidence.MINATAR, environments=games, flips=(), ties=()):
        rng = np.random.default_rng(0)
        runs = []
        names = ("dqn", "double-dqn", "ebql")
        options = {"reward_clip": 1.0} if kept is evidence.ATARI else {}
        for environment in environments:
            for seed in range(seeds):
                luck = rng.normal()
                for label, name, (score, size) in zip(kept.agents, names, SCORES_AND_BIASES, strict=True):
                    bias = -size if environment in flips else size
                    score = SCORES_AND_BIASES[0][0] if environment in ties else score
                    measured = {"evaluation/return": score + luck + rng.normal() / 20, "bias/mean": bias}
                    records = [{"step": step, **measured, "bias/normalised": bias / 2} for step in (10, 20)]
                    about = environment, label, seed, 20, name, None, "", options, 0.0, None, {}, "", ""
                    runs.append(KeptRun(*about, records))
        write_kept(tmp_path, runs)
        return read_scores(tmp_path)

    return write


def test_the_documents_say_what_the_kept_results_say():
    renewed = evidence.documents(evidence.read_kept())
    for name, text in renewed.items():
        assert (evidence.ROOT / name).read_text(encoding="utf-8") == text, f"{name}: run tools/evidence.py"
    for kept in evidence.STUDIES.values():
        written = renewed["docs/findings.md"].count(evidence.begin(kept))
        assert written == holds_kept(evidence.folder_of(kept))


def test_few_seeds_are_listed_and_not_compared(study):
    scored = study(2)
    text = evidence.block(evidence.MINATAR, scored, findings(scored))
    (row,) = [line for line in text.splitlines() if line.startswith("| Asterix | +")]
    assert row == "| Asterix | +0.50 (+0.50, +0.50) | +0.25 (+0.25, +0.25) | +0.05 (+0.05, +0.05) | 2 |"
    assert "| Freeway |" not in text
    assert "with the same seed" not in text
    assert evidence.rows(evidence.MINATAR, scored, findings(scored)) == {}


def test_many_seeds_have_intervals_and_words(study):
    scored = study(6)
    text = evidence.block(evidence.MINATAR, scored, findings(scored))
    rows = [line for line in text.splitlines() if line.startswith("| EBQL 5 − DQN | Breakout |")]
    (row,) = rows
    cells = row.strip("| ").split(" | ")
    assert cells[2].startswith(("+2.9", "+3.0"))
    assert cells[3:] == ["−0.90 [−0.90, −0.90]", "scores higher, has a lower bias", "6"]
    assert "| DoubleDQN − DQN | Asterix |" in text
    assert "no difference in scores found" in text
    assert "runs with a smaller bias score higher" in text
    (overall,) = [line for line in text.splitlines() if line.startswith("| EBQL 5 − DoubleDQN | +0.")]
    assert overall.endswith("| −0.20 [−0.20, −0.20] | scores higher, has a lower bias |")


def test_scores_averaged_over_training_are_compared(study):
    *others, last = evidence.planned(evidence.MINATAR).environments
    scored = study(6, environments=(*others, last), ties=others)
    found = findings(scored)
    text = evidence.block(evidence.MINATAR, scored, found)
    assert "Which agent learns faster?" in text
    header, _, row = text.partition("| agents | over games |")[2].splitlines()[:3]
    assert header.endswith("| Breakout | Asterix | SpaceInvaders | Freeway | Seaquest |")
    cells = row.strip("| ").split(" | ")
    assert cells[2].endswith("without Seaquest")
    assert float(cells[-1].split()[0]) == pytest.approx(3, abs=0.1)  # both evaluations are 3 points apart
    quoted, seeds = evidence.rows(evidence.MINATAR, scored, found)[
        "scores averaged over training, MinAtar, 300,000 steps"
    ]
    assert quoted.count(" − ") == 3
    assert seeds == "6 of 10 planned"


def test_a_lead_that_rests_on_one_game_says_so(study):
    *others, last = evidence.planned(evidence.MINATAR).environments
    scored = study(6, environments=(*others, last), ties=others)
    found = findings(scored)
    text = evidence.block(evidence.MINATAR, scored, found)
    assert "scores higher (not without Seaquest), has a lower bias" in text
    row, _ = [
        line for line in text.splitlines() if line.startswith("| EBQL 5 − DQN |") and "] without" in line
    ]
    cells = row.strip("| ").split(" | ")
    assert cells[1].endswith("] without Seaquest")
    assert cells[3].startswith("0.")
    scores, _ = evidence.rows(evidence.MINATAR, scored, found)["scores, MinAtar, 300,000 steps"]
    assert "EBQL 5 is ahead of DQN (not without Seaquest)" in scores


@pytest.mark.parametrize(("seeds", "said"), [(6, "6 of 10 planned"), (10, "10")])
def test_verdicts_are_interim_until_all_planned_seeds_are_finished(study, seeds, said):
    scored = study(seeds)
    verdict = "in means paired by seed, EBQL 5 is ahead of DQN, EBQL 5 is ahead of DoubleDQN"
    quoted = evidence.rows(evidence.MINATAR, scored, findings(scored))
    scores, cell = quoted["scores, MinAtar, 300,000 steps"]
    assert scores.endswith(f"; {verdict}" if seeds == 10 else f"; so far, {verdict}")
    assert cell == said
    assert quoted["small images, and only the score counts"][1].endswith(f"2 games, {said} seeds")
    assert ("interim" in evidence.block(evidence.MINATAR, scored, findings(scored))) == (seeds < 10)


def test_every_row_to_be_renewed_is_in_a_document(study):
    scored = study(3)
    renewed = evidence.rows(evidence.MINATAR, scored, findings(scored))
    texts = [(evidence.ROOT / name).read_text(encoding="utf-8") for name in evidence.ROWS]
    for first, cells in renewed.items():
        lines = [line for text in texts for line in text.splitlines() if line.startswith(f"| {first} |")]
        assert len(lines) == 1, first
        renewed_line = evidence.renewed(lines[0], first, cells)
        assert renewed_line.count(" | ") == lines[0].count(" | ")
        assert cells[0] in renewed_line
    assert any("DQN +0.50, DoubleDQN +0.25, EBQL 5 +0.05" in cells[0] for cells in renewed.values())
    assert evidence.renewed("| another | a | b |", "bias", ("c",)) == "| another | a | b |"


def test_one_seed_of_six_atari_games_decides_the_claim_about_early_training(study):
    environments = evidence.planned(evidence.ATARI).environments
    scored = study(1, evidence.ATARI, environments[:6])
    found = findings(scored)
    text = evidence.block(evidence.ATARI, scored, found)
    assert "18 of 99 planned runs" in text
    assert "| bias in clipped rewards | DQN | DoubleDQN | EBQL K=5 | seeds |" in text
    assert "| Asterix | +1.00 | +0.50 | +0.10 | 1 |" in text
    where = "6 games, seeds per cell: 1, 20 agent steps"
    assert f"| EBQL K=5 scores higher than DQN | 1.00 [0.54, 1.00] | {where} | holds |" in text
    quoted = evidence.rows(evidence.ATARI, scored, found)
    assert "| EBQL K=5 has a lower bias than DoubleDQN | 1.00 [0.54, 1.00] | 6 |" in text
    assert quoted["bias in clipped rewards, Atari, 100,000 steps"] == (
        "6 games: DQN +1.00, DoubleDQN +0.50, EBQL K=5 +0.10; mean absolute bias 1.00, 0.50, 0.10; "
        "EBQL K=5 is closer to 0 than DQN in 6 of 6 games, than DoubleDQN in 6 of 6 games",
        "1: no interval",
    )
    five = study(1, evidence.ATARI, environments[:5])
    text = evidence.block(evidence.ATARI, five, findings(five))
    assert "early in training" not in text
    assert "less biased" not in text


def test_a_bias_below_0_can_be_lower_and_further_from_0(study):
    environments = evidence.planned(evidence.ATARI).environments[:6]
    scored = study(1, evidence.ATARI, environments, flips=environments[:2])
    text = evidence.block(evidence.ATARI, scored, findings(scored))
    assert "| EBQL K=5 has a bias closer to 0 than DQN | 1.00 [0.54, 1.00] | 6 |" in text
    assert "| EBQL K=5 has a lower bias than DQN | 0.67 [0.22, 0.96] | 6 |" in text


def test_biases_of_either_sign_cancel_in_the_mean_but_not_in_size(study):
    environments = evidence.planned(evidence.ATARI).environments
    scored = study(1, evidence.ATARI, environments[:2], flips=(environments[0],))
    text = evidence.block(evidence.ATARI, scored, findings(scored))
    assert "Over the 2 games that all three agents have played." in text
    assert "| mean bias in clipped rewards | +0.00 | +0.00 | +0.00 |" in text
    assert "| mean absolute bias | 1.00 | 0.50 | 0.10 |" in text
    assert "| bias in the median game | +0.00 | +0.00 | +0.00 |" in text


def test_one_game_is_not_averaged(study):
    environments = evidence.planned(evidence.ATARI).environments
    scored = study(1, evidence.ATARI, environments[:1])
    text = evidence.block(evidence.ATARI, scored, findings(scored))
    assert "| Asterix | +1.00 | +0.50 | +0.10 | 1 |" in text
    assert "mean bias" not in text


VARIANTS = (("EBQL 10", "ebql", 5.0, -0.3), ("Maxmin 4", "maxmin-dqn", 2.0, 0.1))


def variants(folder, seeds, games, gain=0.0):
    """Write two agents: one scores `gain` more than EBQL 5 and expects 0.4 less, the other scores 3 less."""
    rng = np.random.default_rng(1)
    runs = []
    for game in games:
        for seed in range(seeds):
            for label, name, score, bias in VARIANTS:
                more = gain if name == "ebql" else 0.0
                measured = {"evaluation/return": score + more + rng.normal() / 20, "bias/mean": bias}
                record = {"step": 20, **measured, "bias/normalised": bias / 2}
                runs.append(
                    KeptRun(game, label, seed, 20, name, None, "", {}, 0.0, None, {}, "", "", [record])
                )
    write_kept(folder, runs)
    return read_scores(folder)


@pytest.mark.parametrize("games", [("MinAtar/Breakout-v1",), ("MinAtar/Breakout-v1", "MinAtar/Asterix-v1")])
def test_variants_are_compared_with_the_baseline_of_another_study(study, tmp_path, games):
    other = study(6)
    text = evidence.variant_block(evidence.MEMBERS, variants(tmp_path / "own", 5, games), other)
    assert "100 planned runs" in text
    header, _, *rows = [line for line in text.partition("In each game")[0].splitlines() if "|" in line]
    assert header.startswith("| agent | score − EBQL 5's | score averaged over training − EBQL 5's | bias")
    cells = {row.split(" | ")[0].strip("| "): row.strip("| ").split(" | ") for row in rows}
    ten, maxmin = cells["EBQL 10"], cells["Maxmin 4"]
    # As a fraction of the return, a bias is half as large here: −0.15 against EBQL 5's 0.05.
    assert ten[3:5] == ["−0.20 [−0.20, −0.20]", "−0.15 [−0.15, −0.15]"]
    assert [ten[5], maxmin[5]] == ["0.15", "0.05"]
    assert ten[6].endswith(", has a lower bias")
    assert maxmin[6] == "scores lower, learns more slowly, no difference in bias found"
    assert ten[7:] == maxmin[7:] == [str(len(games)), "5"]
    in_games = [line for line in text.splitlines() if line.startswith("| Maxmin 4 − EBQL 5 | score | −")]
    assert in_games[0].count("[") == len(games)


def test_the_readme_quotes_the_ensemble_without_the_rule(study, tmp_path, monkeypatch):
    other, own = study(6), variants(tmp_path / "own", 5, ("MinAtar/Breakout-v1",))
    assert evidence.control_row(evidence.CONTROLS, own, other) == {}
    monkeypatch.setattr(evidence, "CONTROL", "Maxmin 4")
    ((first, (told, seeds)),) = evidence.control_row(evidence.CONTROLS, own, other).items()
    assert f"\n| {first} | " in (evidence.ROOT / "README.md").read_text(encoding="utf-8")
    assert told.startswith("Maxmin 4 − EBQL 5 over 1 games: score −")
    assert told.count("[") == 3
    assert told.endswith("; scores lower, learns more slowly, no difference in bias found")
    assert seeds == "5"


def test_variants_may_have_a_baseline_each(study, tmp_path):
    other = study(6)
    pairs = evidence.Variants(
        *["minatar-members"] * 3, "minatar", ("others",), {"EBQL 10": "DQN", "Maxmin 4": "DoubleDQN"}
    )
    own = variants(tmp_path / "own", 5, ("MinAtar/Breakout-v1",))
    rows = {row[0]: row for row in evidence.variant_rows(pairs, "others", own, other)}
    assert rows["EBQL 10"][3] == "−0.65 [−0.65, −0.65]"  # −0.15 against DQN's 0.5
    assert rows["Maxmin 4"][3] == "−0.20 [−0.20, −0.20]"  # 0.05 against double DQN's 0.25


def test_variants_do_not_set_the_scale_of_their_scores(study, tmp_path):
    other = study(6)
    own = variants(tmp_path / "own", 5, ("MinAtar/Breakout-v1",), gain=20.0)
    row = next(evidence.variant_rows(evidence.MEMBERS, "EBQL 5", own, other))
    assert float(row[1].split()[0]) > 2  # 20 points, where EBQL 5 has 5 and the lowest run is 0


def test_one_picture_has_everything_that_differs_from_one_agent(study, tmp_path):
    other, own = study(6), variants(tmp_path / "own", 5, ("MinAtar/Breakout-v1",))
    studies = {"minatar": other, "minatar-members": own}
    kinds = [evidence.MEMBERS, evidence.CONTROLS, evidence.BFLOAT16]  # one not run, one beside other agents
    found = evidence.all_besides("EBQL 5", studies, kinds, "minatar")
    assert [(one.agent, one.games, one.seeds) for one in found] == [
        ("DQN", 2, 6),
        ("DoubleDQN", 2, 6),
        ("EBQL 10", 1, 5),
        ("Maxmin 4", 1, 5),
    ]
    assert found[0].bias.value == pytest.approx(0.5 - 0.05)
    figure = evidence.differences_picture(found)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[1:3] == ["DoubleDQN (2 games, 6 seeds)", "EBQL 10 (1 game, 5 seeds)"]
    drawn = [axes.lines[0].get_xdata().tolist() for axes in figure.axes]
    assert drawn[2] == [found[0].bias.low, found[0].bias.high]


def games_with(folder, differences, seeds=6, unmeasured=""):
    """Write DQN and EBQL in games A, B, …; EBQL's scores and biases are higher by these numbers.

    In the games `unmeasured`, EBQL has no bias.
    """
    runs = []
    for game, more in zip("ABCD", differences, strict=False):
        for seed in range(seeds):
            for label, name, extra in (("DQN", "dqn", 0.0), ("EBQL 5", "ebql", more + (-1) ** seed / 2)):
                measured = {"evaluation/return": 50 + extra, "bias/mean": extra, "bias/normalised": extra}
                if label == "EBQL 5" and game in unmeasured:
                    measured = {"evaluation/return": 50 + extra}
                records = [{"step": 10, "evaluation/return": 0.0}, {"step": 20, **measured}]
                about = f"X/{game}-v0", label, seed, 20, name, None, "", {}, 0.0, None, {}, "", ""
                runs.append(KeptRun(*about, records))
    write_kept(folder, runs)
    return read_scores(folder)


def test_games_without_a_bias_do_not_count_in_biases(tmp_path):
    scored = games_with(tmp_path, (0.5, 2.0, -8.0, 4.0), unmeasured="A")
    kept = dataclasses.replace(evidence.MINATAR, agents=("DQN", "EBQL 5", "EBQL 5"))
    rows = {row[0]: row[1:] for row in evidence.game_mean_rows(kept, scored, evidence.findings(scored))}
    assert rows["bias in the median game"][1] == "+2.00"
    assert rows["mean absolute bias"][1] == "4.67"
    assert rows["… without C"][:2] == ("0.00", "3.00")
    assert evidence.closer_to_0(scored, "DQN", "EBQL 5") == (3, 3)
    found = evidence_variants.beside(scored, "EBQL 5", "DQN")
    assert all("bias" not in told for told in evidence.unpaired_verdicts([found]))


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ((2, 2, 2), "higher"),
        ((0, 0, 9), "higher (not without C)"),
        ((2, 2, -2), "higher (not without A or B)"),
        ((-2, -2, 9), "higher (but lower without C)"),
        ((0.4, 0.4, 0.4, -1.2), "alike"),
        ((0, 0, 0), "alike"),
        ((9, 9), "higher"),  # two games: without one, nothing is left to average over
    ],
)
def test_a_verdict_names_the_games_that_it_depends_on(tmp_path, differences, said):
    scored = games_with(tmp_path, differences)
    words = "higher", "lower", "alike"
    assert evidence_variants.in_words(scored, "EBQL 5", "DQN", "relative_bias", words) == said


def test_verdicts_that_need_pairs_are_told(study, tmp_path):
    other = study(6)  # its seeds are lucky and unlucky, the same for all agents
    scores = {run.seed: run.score for run in other.scored_runs("MinAtar/Breakout-v1", "EBQL 5")}
    runs = [
        KeptRun(
            "MinAtar/Breakout-v1",
            "EBQL 10",
            seed,
            20,
            "ebql",
            *(None, "", {}, 0.0, None, {}, "", ""),
            [{"step": 20, "evaluation/return": score + 0.1, "bias/mean": 0.1, "bias/normalised": 0.05}],
        )
        for seed, score in scores.items()
    ]
    write_kept(tmp_path / "own", runs)
    own = read_scores(tmp_path / "own")
    (found,) = evidence.besides(evidence.MEMBERS, "EBQL 5", own, other)
    assert found.score.low > 0
    first, second = evidence.unpaired_verdicts([found])
    assert first.startswith("EBQL 10: no difference in scores found, +0.")
    assert second.startswith("EBQL 10: no difference in speed found, +0.")
    assert "these verdicts are different: EBQL 10" in evidence.unpaired_in_words([found])


def test_a_report_draws_variants_beside_their_baseline_and_on_its_scale(study, tmp_path):
    other, own = study(6), variants(tmp_path / "own", 5, ("MinAtar/Breakout-v1",), gain=20.0)
    drawn = evidence.to_draw(evidence.MEMBERS, {"minatar": other, "minatar-members": own})
    assert set(drawn.agents) == {"EBQL 5", "EBQL 10", "Maxmin 4"}
    assert drawn.environments == ["MinAtar/Breakout-v1"]
    assert drawn.references == {"MinAtar/Breakout-v1": other.references["MinAtar/Breakout-v1"]}
    assert evidence.to_draw(evidence.MINATAR, {"minatar": other}) is other


def test_too_few_seeds_of_variants_have_no_verdict(study, tmp_path):
    own = variants(tmp_path / "own", 2, ("MinAtar/Breakout-v1",))
    text = evidence.variant_block(evidence.MEMBERS, own, study(6))
    assert text.count("too few seeds to tell | 1 | 2 |") == 2
    assert "In each game" not in text
    assert "[" not in text.split("| --- |")[-1]


def test_scores_stand_beside_printed_ones(tmp_path):
    about = 30, "dqn", None, "", {}, 0.0, None, {}, "", ""
    runs = [
        KeptRun(
            game,
            "DQN",
            seed,
            *about,
            [{"step": step, "evaluation/return": float(step + seed)} for step in (10, 20)],
        )
        for game in ("MinAtar/Asterix-v0", "MinAtar/Breakout-v0")
        for seed in (0, 1)
    ]
    write_kept(tmp_path, runs)
    kept = evidence.Published("", "", "", "DQN", (10, 20), {("Breakout", 20): (25.0, "± 2.00")})
    rows = list(evidence.published_rows(kept, read_scores(tmp_path)))
    assert rows[0] == ("Asterix", "DQN", "10", "10.50 (10.00, 11.00)", "–", "–", "2")
    assert rows[-1] == ("Breakout", "DQN", "20", "20.50 (20.00, 21.00)", "25.00 ± 2.00", "−4.50", "2")

"""What the documents say about kept results is what the kept results say, to the digit."""

import numpy as np
import pytest

import evidence
from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.kept.files import KeptRun, write_kept

AGENTS = {"DQN": (2.0, 1.0), "DoubleDQN": (2.0, 0.5), "EBQL 5": (5.0, 0.1)}


@pytest.fixture
def study(tmp_path):
    """Write three agents on two games; EBQL scores 3 more than the others with every seed."""

    def write(seeds):
        rng = np.random.default_rng(0)
        runs = []
        for game in ("Breakout", "Asterix"):
            for seed in range(seeds):
                luck = rng.normal()
                for agent, (score, bias) in AGENTS.items():
                    measured = {"evaluation/return": score + luck + rng.normal() / 20, "bias/mean": bias}
                    record = {"step": 20, **measured, "bias/normalised": bias / 2}
                    name = {"DQN": "dqn", "DoubleDQN": "double-dqn"}.get(agent, "ebql")
                    about = f"MinAtar/{game}-v1", agent, seed, 20, name, None, "", {}, 0.0, None, {}, "", ""
                    runs.append(KeptRun(*about, [record]))
        write_kept(tmp_path, runs)
        return read_scores(tmp_path)

    return write


def test_the_documents_say_what_the_kept_results_say():
    renewed = evidence.documents(read_scores(evidence.KEPT))
    for name, text in renewed.items():
        assert (evidence.ROOT / name).read_text(encoding="utf-8") == text, f"{name}: run tools/evidence.py"
    assert evidence.END in renewed["docs/findings.md"]


def test_few_seeds_are_listed_and_not_compared(study):
    scored = study(2)
    text = evidence.block(scored, findings(scored))
    (row,) = [line for line in text.splitlines() if line.startswith("| Asterix | +")]
    assert row == "| Asterix | +0.50 (+0.50, +0.50) | +0.25 (+0.25, +0.25) | +0.05 (+0.05, +0.05) | 2 |"
    assert "| Freeway |" not in text
    assert "same seed" not in text
    assert evidence.rows(scored, findings(scored)) == {}


def test_many_seeds_have_intervals_and_words(study):
    scored = study(6)
    text = evidence.block(scored, findings(scored))
    rows = [line for line in text.splitlines() if line.startswith("| EBQL 5 − DQN | Breakout |")]
    (row,) = rows
    cells = row.strip("| ").split(" | ")
    assert cells[2].startswith(("+2.9", "+3.0"))
    assert cells[3:] == ["−0.90 [−0.90, −0.90]", "scores higher, expects less", "6"]
    assert "| DoubleDQN − DQN | Asterix |" in text
    assert "no difference in scores found" in text
    assert "runs with a smaller bias score higher" in text


def test_every_row_to_be_renewed_is_in_a_document(study):
    scored = study(3)
    renewed = evidence.rows(scored, findings(scored))
    texts = [(evidence.ROOT / name).read_text(encoding="utf-8") for name in evidence.ROWS]
    for first, cells in renewed.items():
        lines = [line for text in texts for line in text.splitlines() if line.startswith(f"| {first} |")]
        assert len(lines) == 1, first
        renewed_line = evidence.renewed(lines[0], first, cells)
        assert renewed_line.count(" | ") == lines[0].count(" | ")
        assert cells[0] in renewed_line
    assert any("DQN +0.50, DoubleDQN +0.25, EBQL 5 +0.05" in cells[0] for cells in renewed.values())
    assert evidence.renewed("| another | a | b |", "bias", ("c",)) == "| another | a | b |"

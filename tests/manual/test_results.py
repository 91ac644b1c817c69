"""The pages and pictures that are made from kept results."""

import json

import pytest

pytest.importorskip("sphinx")

from manual import claims, pictures


def test_claims_are_counted_and_shown(tmp_path):
    def claim(statement, verdict, *parts):
        evidence = [{"verdict": part} for part in parts]
        return {
            "statement": statement,
            "source": "lemma 1",
            "verdict": verdict,
            "note": "",
            "evidence": evidence,
        }

    ledger = tmp_path / "ledger.json"
    kept = [claim("A|B is one.", "holds", "holds"), claim("Two.", "mixed", "holds", "fails", "open")]
    ledger.write_text(json.dumps({"seeds": 7, "episodes": 5000, "claims": kept}), encoding="utf-8")
    page = claims.page(ledger)
    assert "2 claims: 1 holds, 1 mixed, 0 fails, 0 open." in page
    assert "| A\\|B is one. | lemma 1 | **holds** | 1 of 1 hold. |" in page
    assert "| Two. | lemma 1 | **mixed** | 1 of 3 hold. |" in page
    assert "7 seeds and 5,000 episodes" in page


def test_each_run_is_a_dot_and_the_best_agent_is_on_top():
    rows = [
        {"agent": agent, "normalised": str(score), "relative_bias": bias}
        for agent, score, bias in [("dqn", 0.2, "0.5"), ("dqn", 0.4, ""), ("ebql", 0.9, "-0.1")]
    ]
    scores, biases = pictures.each_run(rows).axes
    assert [label.get_text() for label in scores.get_yticklabels()] == ["dqn", "ebql"]
    assert [line.get_xdata().tolist() for line in scores.lines] == [[0.2, 0.4], [0.9]]
    assert [list(line.get_xdata()) for line in biases.lines[:2]] == [[0.5], [-0.1]]


def test_intervals_are_of_one_environment():
    def row(environment, agent, middle):
        ends = {
            f"{name}_{end}": str(middle + shift)
            for name in ("score", "bias")
            for end, shift in (("low", -1), ("high", 1))
        }
        return {"environment": environment, "agent": agent, "score": str(middle), "bias": str(middle), **ends}

    scores, _ = pictures.intervals([row("a", "dqn", 5.0), row("b", "dqn", 9.0)], "a").axes
    assert [list(line.get_xdata()) for line in scores.lines] == [[4.0, 6.0], [5.0]]

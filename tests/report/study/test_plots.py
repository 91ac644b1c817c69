import pytest

from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.report.study import plots as study_plots


@pytest.fixture
def drawn(write_run, tmp_path, edit_log):
    """Write runs of two agents, which end with these returns, and draw them with `study_plots`."""

    def draw(make, dqn, ensemble):
        for agent, own, more in (("dqn", dqn, {}), ("ebql", ensemble, {"ensemble_size": 5})):
            for seed, last in enumerate(own):
                path = write_run(f"{agent}{seed}", [0, last, last], agent=agent, seed=seed, **more)
                log = path / "metrics.jsonl"
                bias = f'"bias/normalised": {last / 10}, "bias/mean"'
                edit_log(log, '"bias/mean"', bias)
        study = read_scores(tmp_path)
        return make(study, findings(study))

    return draw


def marks(axes, row):
    """Return where the marks in a row are: those of runs, and the mean's."""
    lines = [line for line in axes.lines if line.get_linestyle() == "None" and line.get_ydata()[0] == row]
    return [line.get_xdata().tolist() for line in lines]


def test_few_seeds_are_a_mark_each_and_a_stroke_at_the_mean_in_the_studys_order(drawn):
    figure = drawn(study_plots.each_run, [0, 3], [4, 6])
    scores, biases = figure.axes
    # The best agent is not put on top: DQN comes first in the study.
    assert [label.get_text() for label in scores.get_yticklabels()] == ["EBQL K=5", "DQN"]
    assert marks(scores, 0) == [pytest.approx([0.8, 1.2]), pytest.approx([1.0])]  # on a scale from 0 to 5
    assert marks(scores, 1) == [pytest.approx([0.0, 0.6]), pytest.approx([0.3])]
    assert marks(biases, 1) == [pytest.approx([0.0, 0.3]), pytest.approx([0.15])]


def test_bars_are_exactly_as_long_as_intervals(drawn):
    figure = drawn(study_plots.summary, [0, 3, 1, 2, 7], [4, 6, 5, 8, 9])
    bars = [
        line for line in figure.axes[1].lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 2
    ]
    thick = [line for line in bars if line.get_linewidth() > 2]
    assert len(thick) == 2
    assert all(line.get_solid_capstyle() == "butt" for line in thick)


def test_few_seeds_have_no_correlation_beside_their_marks(drawn):
    (axes,) = drawn(study_plots.bias_against_score, [0, 3], [4, 6]).axes
    assert axes.get_title("left") == "W-v0"
    assert sorted(x for line in axes.lines[:2] for x in line.get_xdata()) == [0, 3, 4, 6]


def test_five_seeds_have_one(drawn):
    (axes,) = drawn(study_plots.bias_against_score, [0, 3, 1, 2, 7], [4, 6, 5, 8, 9]).axes
    assert axes.get_title("left") == "W-v0, ρ = +1.00"

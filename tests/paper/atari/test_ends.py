import pytest

from ebql.paper.atari.ends import curves_and_ends, paper_ends
from ebql.paper.atari.runs import atari_groups

pytestmark = pytest.mark.usefixtures("paper_preset")


def groups_of(write_run, evaluations, *games):
    """Return runs on these games, each with so many evaluations: one every 100,000 steps."""
    return atari_groups(
        [
            write_run(game, [1.0] * n, environment=f"ALE/{game}-v5", period=100_000)
            for game, n in zip(games, evaluations, strict=True)
        ]
    )


def test_runs_of_the_literatures_length_are_compared_with_it_on_its_games(write_run):
    curves, ends = curves_and_ends(groups_of(write_run, [1, 1, 1], "Pong", "Breakout", "Tennis"))
    assert [curve.games for curve in curves] == [("Breakout", "Pong")]
    assert [end.games for end in ends] == [("Breakout", "Pong")] * 4
    simple = ends[0]
    assert (simple.method, simple.steps, simple.seeds) == ("SimPLe", 100_000, None)
    assert simple.mean == pytest.approx(((16.4 - 1.7) / 30.1 + (12.8 + 20.7) / 30) / 2)


@pytest.mark.parametrize(
    ("evaluations", "games"),
    [([1, 2], ("Pong", "Breakout")), ([1], ("Tennis",))],
    ids=["another length", "no game of the literature"],
)
def test_other_runs_are_compared_with_the_paper(write_run, evaluations, games):
    curves, ends = curves_and_ends(groups_of(write_run, evaluations, *games))
    assert [curve.games for curve in curves] == [tuple(sorted(games))]
    assert ends == paper_ends(curves)
    assert all(end.is_of_paper and end.games == tuple(sorted(games)) for end in ends)


def test_without_runs_the_paper_stands_on_all_of_its_games():
    curves, ends = curves_and_ends([])
    assert curves == []
    assert ends == paper_ends()
    assert [len(end.games) for end in ends] == [11] * 3

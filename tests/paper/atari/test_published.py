import pytest

from ebql.paper.atari import published
from ebql.paper.atari.runs import at_published_length, atari_groups, cell
from ebql.paper.atari.scores import GAMES, summary


def test_every_method_has_the_same_eight_games_of_the_paper():
    assert len(published.GAMES) == 8
    assert set(published.GAMES) < set(GAMES)
    assert all(tuple(own.scores) == published.GAMES for own in published.PUBLISHED)


def test_scores_lie_between_random_and_the_best_of_the_literature():
    """A slip by a digit or a sign would move a method's summary out of these bounds."""
    for own in published.PUBLISHED:
        found = summary(own.scores)
        assert 0 < found.median < 0.5, own.method
        assert 0 < found.mean < 1, own.method


@pytest.mark.usefixtures("paper_preset")
def test_only_runs_of_the_same_length_are_compared_with_published_ones(write_run):
    paths = [
        write_run("same", [1.0], environment="ALE/Pong-v5", period=100_000),
        write_run("short", [1.0], environment="ALE/Qbert-v5", period=50_000),
        write_run("long", [1.0, 2.0], environment="ALE/Gopher-v5", period=100_000),
    ]
    cells = [cell(group) for group in atari_groups(paths)]
    assert [own.game for own in at_published_length(cells)] == ["Pong"]

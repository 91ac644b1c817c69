"""What online and offline training share."""

from ebql.deep.training.learning import crossings


def test_crossings_count_multiples():
    assert [crossings(a, b, 4) for a, b in ((0, 3), (0, 4), (3, 4), (4, 5), (3, 13))] == [0, 1, 1, 0, 3]

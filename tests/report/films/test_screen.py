import numpy as np
import pytest

from ebql.deep.evaluation.watching import Moment
from ebql.report.films.screen import _CORNER, HEIGHT, WIDTH, Screen, images

BAND = (252, 239, 227)  # the highlight of the chosen action


def moment(values, action=0, *, together=None, colour=128, shape=(20, 30, 3), ended=False, step=0):
    picture = np.full(shape, colour, np.uint8)
    values = np.array(values, np.float32)
    together = values.mean(0) if together is None else np.array(together, np.float32)
    return Moment(picture, values, together, action, 0, step, 1.5, ended)


def test_the_picture_is_on_the_left_and_the_chosen_action_highlighted():
    image = Screen("world", ["a", "b"], 3).draw(moment([[1, 2], [1, 3], [2, 1]], action=1, colour=77))
    assert image.shape == (HEIGHT, WIDTH, 3)
    assert image.dtype == np.uint8
    assert (image[HEIGHT // 2 + 40, _CORNER[0] : _CORNER[0] + 420] == 77).all()
    highlighted = (image == BAND).all(2).any(0)
    assert np.flatnonzero(highlighted).min() > 0.555 * WIDTH + 0.2 * WIDTH


def test_bars_and_v_are_what_members_say_together():
    screen = Screen("world", ["a", "b"], 2, pessimistic=True)
    screen.draw(moment([[0, 2], [10, 3]], action=1, together=[0, 2]))
    assert [segment[0][1] for segment in screen._members._bars.get_segments()] == [0, 2]
    assert screen._numbers._values[1].get_text() == "2.00"
    assert screen._value_curve._line.get_ydata()[-1] == 2
    # The band is around the mean, where the members are.
    heights = screen._value_curve._band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (2.0, 3.0)


def test_what_was_drawn_before_leaves_no_trace():
    screen = Screen("world", ["a", "b"], 2)
    screen.draw(moment([[1, 2], [1, 3]], action=0, colour=0, ended=True))
    now = moment([[1, 2], [1, 3]], action=1)
    fresh = Screen("world", ["a", "b"], 2)
    assert np.array_equal(screen.draw(now), fresh.draw(now))


def test_the_axis_stays_while_the_values_fit_and_moves_when_they_do_not():
    screen = Screen("world", ["a", "b"], 2)
    screen.draw(moment([[0, 1], [0, 1]]))
    members = screen._members
    assert not members.show(moment([[0.1, 0.9], [0, 1]]))
    assert members.show(moment([[0, 9], [0, 1]]))
    for _ in range(100):
        members.show(moment([[0, 1], [0, 1]]))
    assert members._limits[1] < 2  # the peak is forgotten


@pytest.mark.parametrize(("members", "actions"), [(1, 2), (20, 18)])
def test_any_number_of_members_and_actions_and_equal_values(members, actions):
    screen = Screen("world", [f"action {a}" for a in range(actions)], members)
    for level in (0.0, -3.0):
        screen.draw(moment(np.full((members, actions), level)))


def test_the_end_of_an_episode_is_held():
    screen = Screen("world", ["a"], 1)
    drawn = list(images([moment([[0]]), moment([[0]], ended=True, step=1)], screen, hold=3))
    assert len(drawn) == 4
    assert np.array_equal(drawn[1], drawn[3])
    assert not np.array_equal(drawn[0], drawn[1])

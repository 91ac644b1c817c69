import time

import pytest

from ebql.errors import InputError
from ebql.lab import filming
from ebql.lab.filming import Filming


def until_ended(films):
    while films.state()["state"] == "filming":
        time.sleep(0.02)
    return films.state()


def test_a_film_that_cannot_be_made_says_why_and_leaves_no_pipe_open(tmp_path):
    films = Filming()
    assert films.state() is None
    films.start("mine", tmp_path)
    with pytest.raises(InputError, match="Another film is being made: mine"):
        films.start("other", tmp_path)
    ended = until_ended(films)
    assert (ended["run"], ended["state"]) == ("mine", "failed")
    assert str(tmp_path) in ended["reason"]
    assert films._process.stderr.closed


def test_a_film_that_takes_too_long_is_stopped_and_the_next_one_has_its_own_limit(tmp_path, monkeypatch):
    films = Filming()
    monkeypatch.setattr(filming, "SECONDS", 0.01)
    films.start("slow", tmp_path)
    assert "minutes" in until_ended(films)["reason"]
    monkeypatch.setattr(filming, "SECONDS", 600.0)
    films.start("next", tmp_path)
    assert "minutes" not in until_ended(films)["reason"]

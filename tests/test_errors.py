import numpy as np
import pytest

from ebql.errors import (
    InputError,
    InputTypeError,
    Interrupted,
    OutputError,
    RunError,
    unknown_name,
    whole_number,
)


def test_errors_have_exit_codes_and_are_what_python_callers_expect():
    assert (InputError("a").exit_code, InputTypeError("a").exit_code, RunError("a").exit_code) == (2, 2, 1)
    assert isinstance(InputError("a"), ValueError)
    assert isinstance(InputTypeError("a"), TypeError)
    assert isinstance(RunError("a"), RuntimeError)
    interrupted = Interrupted("Stopped.", 15)
    assert isinstance(interrupted, KeyboardInterrupt)
    assert interrupted.exit_code == 143


def test_an_output_error_shows_its_message_without_the_number():
    error = OutputError(28, "Cannot write 'x': No space left on device.")
    assert isinstance(error, OSError)
    assert (error.errno, str(error)) == (28, "Cannot write 'x': No space left on device.")


def test_whole_numbers():
    assert whole_number("n", np.int64(3), 1) == 3
    assert type(whole_number("n", np.int64(3), 1)) is int
    with pytest.raises(InputError, match="n must be at least 2, not 1"):
        whole_number("n", 1, 2)
    for value in (2.0, "2", None):
        with pytest.raises(InputTypeError, match="n must be a whole number, not"):
            whole_number("n", value, 1)


def test_an_unknown_name_gets_the_closest_one():
    message = str(unknown_name("agent", "eqbl", ["maxmin", "ebql"]))
    assert message == "Unknown agent 'eqbl'. Did you mean 'ebql'? Known: ebql, maxmin."
    assert str(unknown_name("agent", "xyz", ["ebql"])) == "Unknown agent 'xyz'. Known: ebql."

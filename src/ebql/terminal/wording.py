"""Short forms of numbers."""


def short(number: int) -> str:
    """Return a number of steps in short form: 250k, 1.25M, 50M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.4g}{letter}"
    return str(number)

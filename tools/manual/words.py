"""The keywords of Stable-Baselines3 and ours, from the table that errors are made of."""

from ebql.deep.config.foreign_words import CALLED_HERE
from manual.tables import table


def fragment() -> str:
    """Return the table, for a page to include."""
    rows = [
        [f"`{theirs}`", ours.replace(ours.split(",")[0], f"`{ours.split(',')[0]}`", 1)]
        for theirs, ours in CALLED_HERE.items()
    ]
    return table(["Stable-Baselines3", "here"], rows) + "\n"

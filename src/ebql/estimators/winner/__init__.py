"""What the winner of an A/B/n test is worth: its data read, its mean estimated, the answer in words.

sheet = read_sheet(Path("test.csv"))
winner = winner_of(sheet.arms, control="A")
print(words.headline(winner))
"""

from ebql.estimators.winner import words
from ebql.estimators.winner.answer import Lift, Range, Value, Winner, correct_winner, winner_of
from ebql.estimators.winner.arms import Arms
from ebql.estimators.winner.reading import Sheet, parse_sheet, read_sheet

__all__ = [
    "Arms",
    "Lift",
    "Range",
    "Sheet",
    "Value",
    "Winner",
    "correct_winner",
    "parse_sheet",
    "read_sheet",
    "winner_of",
    "words",
]

"""The page of A/B/n tests: what the winner is worth, in the words and numbers of `ebql best-k`."""

from typing import Any

from ebql.errors import InputError
from ebql.estimators.winner import parse_sheet, winner_of, words

MOST_BYTES = 5_000_000


def answered(content: bytes, control: str | None) -> dict[str, Any]:
    """Return the answer for the CSV text `content`; `control` names the arm to compare the winner with."""
    if len(content) > MOST_BYTES:
        raise InputError(f"The table has more than {MOST_BYTES / 1e6:g} MB: use ebql best-k --csv FILE.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("The table is not a CSV text in UTF-8.") from error
    sheet = parse_sheet(text)
    winner = winner_of(sheet.arms, control=control or None)
    arms = sheet.arms
    values = {name: getattr(winner, name) for name in words.METHODS}
    samples = int(arms.counts.sum())
    return {
        "headline": words.headline(winner),
        "estimand": words.estimand(winner),
        "cautions": words.cautions(winner),
        "recommendation": words.recommendation(winner),
        "read": [f"Read {samples} samples of {len(arms.names)} arms ({sheet.layout}).", *sheet.notes],
        "arms": [
            {
                "name": name,
                "samples": int(arms.counts[index]),
                "mean": float(arms.means[index]),
                "shown": words.number(winner, float(arms.means[index])),
                "won": index == winner.index,
            }
            for index, name in enumerate(arms.names)
        ],
        "values": [
            {
                "name": name,
                "shown": words.number(winner, value.estimate),
                "bias": words.difference(winner, value.bias),
                "rmse": words.difference(winner, value.rmse).lstrip("+"),
                "recommended": name == winner.recommended,
                "explanation": words.METHODS[name],
            }
            for name, value in values.items()
        ],
        "intervals": {
            "naive": [winner.naive.estimate, *winner.naive_interval],
            "corrected": [winner.estimate.estimate, *winner.interval],
        },
    }

"""Words for results and rulings in a report.  Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

from tournaments.config.format_tables import FORMAT_TABLES, FormInput
from tournaments.config.tournament_file import WITHOUT_ROUNDS
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry, pairing_words

HALF = "½"
TO = "\N{EN DASH}"


def points(value: float) -> str:
    """Return the text of points, which are whole or half."""
    whole, rest = divmod(round(value * 2), 2)
    half = HALF if rest else ""
    return half if half and not whole else f"{whole}{half}"


def result(game: GameSummary) -> str:
    """Return the points of a game, those of the bot that moved first in front."""
    first, second = game.points
    return f"{points(first)}{TO}{points(second)}"


def outcome(game: GameSummary, name: str) -> str:
    """Return the outcome of a game from the side of one of the bots."""
    if game.winner is None:
        return "draw"
    return "win" if (game.first, game.second)[game.winner] == name else "loss"


def score(game: GameSummary) -> str:
    """Return the score of a game that was played to its end; empty for any other game."""
    return "" if game.score is None else f"{game.score[0]}{TO}{game.score[1]}"


def ending(game: GameSummary) -> str:
    """Return the word for a game's ending: the fault's word if there is one, else the reason."""
    return game.fault or game.reason.value


LOST = ") lost: "


def blame(game: GameSummary) -> str:
    """Return the verdict's sentence on a lost game, without the name of the loser."""
    begin = f"{game.loser} ("
    _, found, did = game.detail[len(begin) :].partition(LOST)
    return did if found and game.detail.startswith(begin) else game.detail


RULED = {
    Action.VOID: "void",
    Action.REPLAY: "played again",
    Action.WITHDRAW: "withdrawn",
    Action.ADD: "joined",
    Action.RESTORE: "restored",
    Action.PAIR: "pairing fixed",
    Action.BYE: "bye given",
    Action.FORBID: "pairing forbidden",
}


def ruled(entry: Entry) -> str:
    """Return the words for a ruling, without its game and its reason."""
    more = ""
    if entry.of_pairing is not None:
        more = f": {entry.subject} {pairing_words(entry)}"
    elif entry.action is Action.WITHDRAW:
        more = "; its games count for nobody" if entry.data.get("annul") else "; its games still count"
    return RULED[entry.action] + more


def date(at: str) -> str:
    """Return an ISO 8601 time in a readable form; a date stays as it is."""
    day, separator, time = at.partition("T")
    return f"{day} {time[:5]} UTC" if separator else day


def format_words(parameters: Mapping[str, Any], rounds: int) -> str:
    """Return the words for a format with its parameters, as the form for a new tournament has them."""
    kind = str(parameters["kind"])
    fields = FORMAT_TABLES[kind].model_fields if kind in FORMAT_TABLES else {}
    settings = []
    for name, value in parameters.items():
        if name != "kind":
            field = fields.get(name)
            title = (field and field.title) or name.replace("_", " ")
            settings.append(f"{title[:1].lower()}{title[1:]}: {_value(value, field)}")
    if kind not in WITHOUT_ROUNDS:
        where = " in each group" if kind == "groups" else ""
        settings.append(f"{rounds} round{'s' * (rounds != 1)}{where}")
    return "; ".join([kind, *settings])


def _value(value: Any, field: FieldInfo | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value))
    inputs = [] if field is None else [one for one in field.metadata if isinstance(one, FormInput)]
    return next((label for one in inputs for choice, label in one.choices if choice == value), str(value))

"""How results are written in a report.  Pure."""

from collections.abc import Mapping
from typing import Any

from tournaments.game_summary import GameSummary
from tournaments.journal import Action, Entry

HALF = "½"
TO = "\N{EN DASH}"


def points(value: float) -> str:
    """Points, which are whole or half."""
    whole, rest = divmod(round(value * 2), 2)
    half = HALF if rest else ""
    return half if half and not whole else f"{whole}{half}"


def result(game: GameSummary) -> str:
    """From the side of the bot that moved first."""
    first, second = game.points
    return f"{points(first)}{TO}{points(second)}"


def outcome(game: GameSummary, name: str) -> str:
    """From the side of one of the bots."""
    if game.winner is None:
        return "draw"
    return "win" if (game.first, game.second)[game.winner] == name else "loss"


def score(game: GameSummary) -> str:
    """The score of a game that was played to its end."""
    return "" if game.score is None else f"{game.score[0]}{TO}{game.score[1]}"


def ending(game: GameSummary) -> str:
    """How a game ended: a fault's finer word comes first."""
    return game.fault or game.reason.value


LOST = ") lost: "


def blame(game: GameSummary) -> str:
    """What a bot did that lost it a game: the verdict's sentence, without who it was."""
    begin = f"{game.loser} ("
    _, found, did = game.detail[len(begin) :].partition(LOST)
    return did if found and game.detail.startswith(begin) else game.detail


RULED = {
    Action.VOID: "void",
    Action.REPLAY: "played again",
    Action.WITHDRAW: "withdrawn",
    Action.ADD: "joined",
    Action.RESTORE: "restored",
}


def ruled(entry: Entry) -> str:
    """What was ruled, without of what and why."""
    more = ""
    if entry.action is Action.WITHDRAW:
        more = "; its games count for nobody" if entry.data.get("annul") else "; its games still count"
    return RULED[entry.action] + more


def date(at: str) -> str:
    """An ISO 8601 time for people; a date stays one."""
    day, separator, time = at.partition("T")
    return f"{day} {time[:5]} UTC" if separator else day


def format_words(parameters: Mapping[str, Any], rounds: int) -> str:
    """A format with its parameters."""
    told = [
        f"{name.replace('_', ' ')} {_value(value)}" for name, value in parameters.items() if name != "kind"
    ]
    return ", ".join([str(parameters["kind"]), *told, f"{rounds} round{'s' * (rounds != 1)}"])


def _value(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

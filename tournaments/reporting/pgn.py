"""Games in Portable Game Notation (PGN), for programs that read players and results: Ordo, BayesElo.  Pure.

Standard: "Portable Game Notation Specification and Implementation Guide", Edwards 1994.  Tags and results
follow its export format.  Moves are no chess moves, so they are in a comment, which readers skip.
"""

import re
import textwrap

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Reason
from referee.judge.verdict_text import visible

RESULTS = {0: "1-0", 1: "0-1", None: "1/2-1/2"}
TERMINATIONS = {
    Reason.SCORE: "normal",
    Reason.TURN_CAP: "adjudication",
    Reason.TIMEOUT: "time forfeit",
    Reason.EXIT: "abandoned",
    Reason.START: "abandoned",
}
"""Reason -> a word of the standard; any other reason is a RULES_INFRACTION."""
RULES_INFRACTION = "rules infraction"
UNKNOWN = "?"
UNKNOWN_DATE = "????.??.??"
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)")
"""The beginning of a time in ISO 8601, in UTC as records have it."""
LONGEST_VALUE = 255
"""Characters of a tag's value, the standard's limit."""
BRACKETS = str.maketrans("{[]}", "(())")
LINE = 79
"""Longest line of moves, the standard's limit."""


def pgn_of(record: GameRecord, event: str, round_number: int) -> str:
    """Return a game as PGN, with an empty line at its end; White is the player that moved first."""
    result = record.result
    date, utc_date, utc_time = _moment(record.started_at)
    roster = {
        "Event": event,
        "Site": UNKNOWN,
        "Date": date,
        "Round": str(round_number),
        "White": record.players[0].name,
        "Black": record.players[1].name,
        "Result": RESULTS[result.winner],
    }
    fits = len(record.opening) <= LONGEST_VALUE  # a part of an opening would be another opening
    others = {
        "FinalScore": "" if result.score is None else f"{result.score[0]}-{result.score[1]}",
        "GameId": record.key,
        "GameVariant": record.game,  # "Variant" is a variant of chess: readers look it up
        "Opening": record.opening if fits else "",
        "PlyCount": str(len(record.moves)),
        "Reason": result.reason.value,
        "Termination": TERMINATIONS.get(result.reason, RULES_INFRACTION),
        "TimeControl": time_control(record.control),
        "TimeLimit": str(record.control),
        "UTCDate": utc_date,
        "UTCTime": utc_time,
    }
    tags = [_tag(name, value or UNKNOWN) for name, value in roster.items()]
    tags += [_tag(name, value) for name, value in others.items() if value]
    comments = [_comment(" ".join(move.move for move in record.moves)), _comment(result.detail)]
    comments += [] if fits else [_comment(f"opening: {record.opening}")]
    moves = [line for comment in comments if comment for line in comment]
    return "\n".join([*tags, "", *moves, RESULTS[result.winner], "", ""])


def time_control(control: TimeControl) -> str:
    """Return the value of the tag TimeControl: moves/seconds, or seconds+increment for a whole game.

    The standard has no value for limits of both kinds: these are unknown.
    """
    if control.game_s is None:
        return f"1/{control.move_s:g}"
    if control.move_s is not None:
        return UNKNOWN
    return f"{control.game_s:g}" + (f"+{control.increment_s:g}" if control.increment_s else "")


def _tag(name: str, value: str) -> str:
    """Return a tag pair.  Quotes and backslashes are escaped, control characters are shown as escapes."""
    shown = visible(value)[:LONGEST_VALUE].replace("\\", "\\\\").replace('"', '\\"')
    return f'[{name} "{shown}"]'


def _comment(text: str) -> list[str]:
    """Return the lines of a comment.

    A brace would end the comment.  Some readers take any line that begins with a bracket for a tag, and skip
    any line that begins with a percent sign.  So brackets are replaced, and later lines begin with a space.
    """
    inside = visible(text).translate(BRACKETS)
    return textwrap.wrap(f"{{{inside}}}", LINE, subsequent_indent=" ") if inside else []


def _moment(started_at: str) -> tuple[str, str, str]:
    """Return a date and the date and time in UTC; unknown and empty for a text that is no time."""
    found = MOMENT.match(started_at)
    if found is None:
        return UNKNOWN_DATE, "", ""
    date = found[1].replace("-", ".")
    return date, date, found[2]

r"""Games as text for people and programs, in the notation of the Smart Game Format (pure).

Nodes, properties, and the escapes of ``]`` and ``\`` in values are those of SGF FF[4].  The properties are
Kalarena's own, since SGF defines only the games that it lists.  docs/exports.md contains the grammar.
"""

from dataclasses import dataclass
from typing import NamedTuple

from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible

VERSION = "1"
"""Version of the properties; readers refuse any other one."""
PLAYED_BY = ("F", "S")
"""Properties of a move: by the first player, by the second."""
RESULTS = {0: "first", 1: "second", None: "draw"}
NEEDED = ("KA", "RU", "PF", "PS", "RE", "RN")
"""Required properties of a root; others are omitted if they are empty."""


class Ply(NamedTuple):
    """One move."""

    player: int
    """Index of the player; 0 moved first."""
    move: str
    charged_us: int
    """Charged time in microseconds."""


@dataclass(frozen=True)
class GameText:
    """Contents of a game's text."""

    game: str
    """Spec text of the rules."""
    first: str
    """Name of the bot that moves first."""
    second: str
    winner: int | None
    """Index of the winner: 0 is ``first``, 1 is ``second``, None is a draw."""
    reason: str
    sentence: str
    """Verdict for people."""
    fault: str = ""
    """Kind of the fault; empty if the game was played to its end."""
    score: tuple[int, int] | None = None
    started_at: str = ""
    control: str = ""
    opening: str = ""
    tournament: str = ""
    round: int | None = None
    key: str = ""
    final: str = ""
    """Last position, as bots receive it."""
    aside: str = ""
    """Reason why the game does not count; empty if it counts."""
    plies: tuple[Ply, ...] = ()

    @classmethod
    def from_record(
        cls, record: GameRecord, tournament: str = "", round_number: int | None = None, aside: str = ""
    ) -> "GameText":
        """Create the contents from a record.  Unprintable characters are escaped, as in all reports."""
        result = record.result
        return cls(
            game=visible(record.game),
            first=visible(record.players[0].name),
            second=visible(record.players[1].name),
            winner=result.winner,
            reason=result.reason.value,
            sentence=visible(result.detail),
            fault=visible(result.fault or ""),
            score=result.score,
            started_at=visible(record.started_at),
            control=visible(str(record.control)),
            opening=visible(record.opening),
            tournament=visible(tournament),
            round=round_number,
            key=visible(record.key),
            final=visible(record.final_state),
            aside=visible(aside),
            plies=tuple(Ply(move.player, visible(move.move), move.charged_us) for move in record.moves),
        )


def write(text: GameText) -> str:
    """Return the game as text, with a property of the root or a move on each line."""
    score = "" if text.score is None else f"{text.score[0]}:{text.score[1]}"
    root = {
        "KA": VERSION,
        "RU": text.game,
        "PF": text.first,
        "PS": text.second,
        "RE": RESULTS[text.winner],
        "RN": text.reason,
        "FA": text.fault,
        "SC": score,
        "DT": text.started_at,
        "TM": text.control,
        "OP": text.opening,
        "EV": text.tournament,
        "RO": "" if text.round is None else str(text.round),
        "ID": text.key,
        "AS": text.aside,
        "FP": text.final,
    }
    nodes = [[f"{name}[{_escaped(value)}]" for name, value in root.items() if value or name in NEEDED]]
    for ply in text.plies:
        milliseconds = f"{ply.charged_us // 1000}.{ply.charged_us % 1000:03d}"
        nodes.append([f"{PLAYED_BY[ply.player]}[{_escaped(ply.move)}]T[{milliseconds}]"])
    nodes[-1].append(f"C[{_escaped(text.sentence)}]")
    return "(" + "\n".join(";" + "\n".join(node) for node in nodes) + ")\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("]", "\\]")

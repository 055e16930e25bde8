"""Reader of the games that ``tournaments.reporting.sgf`` writes."""

from collections.abc import Iterator

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from tournaments.reporting.sgf import NEEDED, PLAYED_BY, RESULTS, VERSION, GameText, Ply

WINNERS = {word: winner for winner, word in RESULTS.items()}
SPACE = " \t\r\n"
MOST_DIGITS = 18
"""Maximum digits of numbers, more than any time in microseconds has.

Python refuses to read numbers of thousands of digits.
"""


class GameTextError(ValueError):
    """A text that is no game of this format; the message gives the line and the reason."""


def states(text: GameText) -> Iterator[object]:
    """Yield the position before the first move, and after each move, by the rules.

    Raises SpecError, OpeningError or MoveError where the moves do not follow the rules.
    """
    game: AnyGame = parse_game(text.game)
    steps = parse_opening(game, text.opening)
    state = steps[-1].state if steps else game.initial_state()
    yield state
    for ply in text.plies:
        state = game.apply(state, game.parse_move(state, ply.move))
        yield state


def parse(text: str) -> GameText:
    """Return the game of a text.  Unknown properties are ignored.  Raises GameTextError."""
    root, *moves = _Reader(text).nodes()
    if root.get("KA") != VERSION:
        raise GameTextError(
            f"the root says KA[{root.get('KA', '')}], and this program reads KA[{VERSION}]"
            if "KA" in root
            else f"this is no game of ours: its root has no KA[{VERSION}]"
        )
    for name in NEEDED:
        if name not in root:
            raise GameTextError(f"the root has no {name}")
    if root["RE"] not in WINNERS:
        raise GameTextError(f"RE[{root['RE']}]: must be one of {', '.join(WINNERS)}")
    last = moves[-1] if moves else root
    return GameText(
        game=root["RU"],
        first=root["PF"],
        second=root["PS"],
        winner=WINNERS[root["RE"]],
        reason=root["RN"],
        sentence=last.get("C", ""),
        fault=root.get("FA", ""),
        score=_score(root["SC"]) if "SC" in root else None,
        started_at=root.get("DT", ""),
        control=root.get("TM", ""),
        opening=root.get("OP", ""),
        tournament=root.get("EV", ""),
        round=_whole("RO", root["RO"]) if "RO" in root else None,
        key=root.get("ID", ""),
        final=root.get("FP", ""),
        aside=root.get("AS", ""),
        plies=tuple(_ply(number, node) for number, node in enumerate(moves, 1)),
    )


def _ply(number: int, node: dict[str, str]) -> Ply:
    players = [player for player, name in enumerate(PLAYED_BY) if name in node]
    if len(players) != 1:
        raise GameTextError(f"move {number}: needs either F or S")
    whole, point, thousandths = node.get("T", "").partition(".")
    if point != "." or len(thousandths) != 3:
        raise GameTextError(f"move {number}: T must be milliseconds with three decimals")
    charged_us = 1000 * _whole(f"move {number}: T", whole) + _whole(f"move {number}: T", thousandths)
    return Ply(players[0], node[PLAYED_BY[players[0]]], charged_us)


def _score(text: str) -> tuple[int, int]:
    first, _, second = text.partition(":")
    return _whole("SC", first), _whole("SC", second)


def _whole(what: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        raise GameTextError(f"{what}: {digits!r} is no whole number")
    return int(digits)


class _Reader:
    """Reader that splits a text into nodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def nodes(self) -> list[dict[str, str]]:
        """Return the properties of every node; there is at least one."""
        self._expect("(")
        found = []
        while self._next() == ";":
            self._at += 1
            found.append(self._properties())
        if not found:
            raise self._error("there must be a ;")
        self._expect(")")
        if self._next():
            raise self._error("there must be nothing after the game")
        return found

    def _properties(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while "A" <= self._next() <= "Z":
            begin = self._at
            while "A" <= self._text[self._at : self._at + 1] <= "Z":
                self._at += 1
            name = self._text[begin : self._at]
            if name in found:
                raise self._error(f"{name} is there twice in one node")
            self._expect("[")
            found[name] = self._value()
        return found

    def _value(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == "]":
                return "".join(parts)
            if char == "\\":
                char = self._text[self._at : self._at + 1]
                self._at += 1
            parts.append(char)
        raise self._error("a value has no end: its ] is missing")

    def _next(self) -> str:
        """Skip white space; return the next character, empty at the end."""
        while self._text[self._at : self._at + 1] in SPACE and self._at < len(self._text):
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _expect(self, char: str) -> None:
        if self._next() != char:
            raise self._error(f"there must be a {char}")
        self._at += 1

    def _error(self, why: str) -> GameTextError:
        line = self._text.count("\n", 0, self._at) + 1
        return GameTextError(f"line {line}: {why}")

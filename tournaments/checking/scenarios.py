"""The scenarios of a check: a list of games to play, the most informative first.  Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from referee.conformance.script import TestOpponent
from referee.games.base import Side
from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import OpeningError, parse_opening
from tournaments.checking.settings import Settings
from tournaments.checking.test_opponents import (
    chaining,
    has_extra_turns,
    has_swap,
    opening_with,
    swapping,
    varied,
    without_swap,
)

FIRST_LEGAL, SWAP_HAPPY = "first_legal", "swap_happy"
PLAYS = ("plays-first", "plays-second")
"""Ids of the items for whole games, by the bot's index: it moves first, or second."""
SWAP_REPLIES = 5
"""Replies of the examiner where the bot is offered the swap: some turns after the offer are played."""
PARTING_REPLY = 5
"""The examiner's reply with which it ends a game in the middle."""
LEFT_TURN = 4
"""The bot's turn in which the examiner ends a game in the middle."""
MAX_FIRST_MOVES = 12
"""Greatest number of first moves after which the bot is offered the swap."""


@dataclass(frozen=True)
class Scenario:
    """One game to be played for the check."""

    key: str
    """Name of its record: letters, digits, hyphens and underscores."""
    title: str
    """Description of the game that can follow "in the game"."""
    item: str
    """Id of the item that it is played for."""
    game: str
    index: int
    """0 if the checked bot moves first."""
    opponent: str = ""
    """A sample bot, for a game; empty for an interview."""
    examiner: TestOpponent | None = None
    """The opponent of an interview; None for a game."""
    opening: str = ""


def scenarios(settings: Settings, capabilities: tuple[str, ...]) -> Iterator[Scenario]:
    """Yield all scenarios in order; the first game is checked fully, the others briefly."""
    for number, text in enumerate(settings.games):
        yield from _of_game(text, settings, capabilities, number, full=number == 0)


def _of_game(
    text: str, settings: Settings, capabilities: tuple[str, ...], number: int, *, full: bool
) -> Iterator[Scenario]:
    """Yield one game's scenarios, short and informative ones first: a slow bot's check is cut short."""
    make = _Maker(text, f"{number + 1}-" if number else "")
    game = make.rules
    for index, item in enumerate(PLAYS):
        yield make.talk(index, "watched", "against an examiner", item, TestOpponent(varied, waits=True))
    if not full:
        yield from make.games(f"random:{settings.seed}", 1)
        return
    if has_swap(game):
        yield make.talk(
            0, "swapped", "against an examiner that swaps at once", "swap", TestOpponent(swapping)
        )
    yield from _endings(make)
    yield from make.games(FIRST_LEGAL, settings.rounds)
    for seed in range(settings.seed, settings.seed + settings.rounds):
        yield from make.games(f"random:{seed}", 1)
    if has_swap(game):
        yield from make.games(SWAP_HAPPY, settings.rounds)
    if has_extra_turns(game):
        what = "against an examiner that takes many extra turns"
        for index in Side:
            yield make.talk(index, "chains", what, "extra-turns", TestOpponent(chaining))
    if has_swap(game):
        for first in range(min(len(without_swap(game, game.initial_state())), MAX_FIRST_MOVES)):
            examiner = TestOpponent(opening_with(first), stops_at=SWAP_REPLIES, plays_on_after_swap=True)
            what = f"against an examiner that begins with move {first + 1}"
            yield make.talk(1, f"offered-{first + 1}", what, "swap", examiner)
    if "openings" in capabilities:
        for index in Side:
            for place, opening in enumerate(_openings(game, index), 1):
                what = f"from the opening {opening!r}"
                yield make.talk(index, f"opening-{place}", what, "openings", TestOpponent(varied), opening)


def _endings(make: "_Maker") -> Iterator[Scenario]:
    """Yield interviews with an END at unexpected moments."""
    item = "end-mid-game"
    what = "against an examiner that loses at its first reply"
    yield make.talk(1, "end-at-once", what, item, TestOpponent(varied, stops_at=1))
    what = "against an examiner that loses in the middle of the game"
    for index in Side:
        yield make.talk(
            index, "end-waiting", what, item, TestOpponent(varied, stops_at=PARTING_REPLY, waits=True)
        )
    for turn, key in ((1, "end-first-turn"), (LEFT_TURN, "end-thinking")):
        what = f"against an examiner that goes away in the bot's turn {turn}"
        yield make.talk(0, key, what, item, TestOpponent(varied, leaves_in=turn))


class _Maker:
    """Makes the scenarios of one game."""

    def __init__(self, game: str, prefix: str) -> None:
        self.rules = parse_game(game)
        self._game, self._prefix = game, prefix
        self._seats = self.rules.seats(self.rules.initial_state())

    def talk(
        self, index: int, key: str, what: str, item: str, examiner: TestOpponent, opening: str = ""
    ) -> Scenario:
        """Return an interview."""
        return self._scenario(index, key, what, item, examiner=examiner, opening=opening)

    def games(self, opponent: str, times: int) -> Iterator[Scenario]:
        """Yield games against a sample bot from both seats, ``times`` of each."""
        for again in range(times):
            for index, item in enumerate(PLAYS):
                key = opponent.replace(":", "-") + (f"-{again + 1}" if again else "")
                yield self._scenario(index, key, f"against {opponent}", item, opponent=opponent)

    def _scenario(
        self,
        index: int,
        key: str,
        what: str,
        item: str,
        *,
        opponent: str = "",
        examiner: TestOpponent | None = None,
        opening: str = "",
    ) -> Scenario:
        seat = self._seats[index]
        return Scenario(
            key=f"{self._prefix}{key}-{seat.lower()}",
            title=f"as {seat} {what}",
            item=item,
            game=self._game,
            index=index,
            opponent=opponent,
            examiner=examiner,
            opening=opening,
        )


def _openings(game: AnyGame, side: Side) -> Iterator[str]:
    """Yield an opening of two moves; with extra turns, also a position in which each move gives one."""
    state, moves = game.initial_state(), []
    for _ in range(2):
        if game.outcome(state) is not None:
            return  # a board so small that the game is over by then
        move = varied(game, state)
        moves.append(game.format_move(state, move))
        state = game.apply(state, move)
    if game.outcome(state) is not None:
        return
    yield " ".join(moves)
    if not has_extra_turns(game):
        return
    numbers = game.board_text(game.initial_state()).split(",")
    pits, seeds = len(numbers) // 2 - 1, sum(map(int, numbers))
    row = list(range(pits, 0, -1))  # the seed count of each pit is its way to the store
    rest = seeds - 2 * sum(row)
    board = [*row, rest // 2, *row, rest - rest // 2]
    opening = f"{','.join(map(str, board))};{game.seats(game.initial_state())[side]}"
    try:
        if rest >= 0 and parse_opening(game, opening):
            yield opening
    except OpeningError:  # a board on which that is no position
        return

"""The games of a check: settings, scenarios in their order, and moves of the test opponents.  Pure."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from referee.conformance.script import Choose, TestOpponent
from referee.games.base import Side
from referee.games.catalog import DEFAULT_GAME, AnyGame, parse_game
from referee.games.opening import OpeningError, parse_opening
from referee.judge.clock import DEFAULT_MOVE_S, TimeControl
from referee.judge.limits import Limits
from referee.sandbox.bubblewrap import Sandbox

DEFAULT_TOTAL_S = 120.0
"""Seconds for a whole check.  A bot that answers at once needs 3 s, one that thinks for 0.1 s a move 60 s."""
DEFAULT_SEED = 1

FIRST_LEGAL, SWAP_HAPPY = "first_legal", "swap_happy"
PLAYS = ("plays-first", "plays-second")
"""Ids of the items for whole games, by the bot's index: it moves first, or second."""
SWAP_REPLIES = 5
"""Number of the test opponent's last reply where the bot is offered the swap: some turns follow the offer."""
PARTING_REPLY = 5
"""Number of the reply with which the test opponent ends a game in the middle."""
EXIT_TURN = 4
"""Number of the bot's turn in which the test opponent exits in the middle of a game."""
MAX_FIRST_MOVES = 12
"""Greatest number of first moves after which the bot is offered the swap."""
EXAMINED_POSITIONS = 60
"""Positions of a game that are searched for an extra turn: about one game."""


@dataclass(frozen=True)
class Settings:
    """Settings of a check.  Raises ValueError for impossible values."""

    games: tuple[str, ...] = (DEFAULT_GAME,)
    """Spec texts; the first one is checked fully, of each other one four games are played."""
    control: TimeControl = field(default_factory=lambda: TimeControl(move_s=DEFAULT_MOVE_S))
    limits: Limits = field(default_factory=Limits)
    sandbox: Sandbox = field(default_factory=Sandbox)
    rounds: int = 1
    """Games against each opponent from each seat."""
    seed: int = DEFAULT_SEED
    """Seed of the random opponent; each further game against it has the next seed."""
    total_s: float = DEFAULT_TOTAL_S
    """Seconds after which the remaining games are left out; the report names them."""

    def __post_init__(self) -> None:
        if not self.games:
            raise ValueError("a check needs a game")
        if self.rounds < 1:
            raise ValueError(f"the games against each opponent must be at least 1, not {self.rounds}")
        if not 0 <= self.seed < 10**9:
            raise ValueError(f"a seed is a whole number from 0 to 999999999, not {self.seed}")
        if not 0 < self.total_s < float("inf"):
            raise ValueError(f"the time for a check must be more than 0 seconds, not {self.total_s:g}")


@dataclass(frozen=True)
class Scenario:
    """One game to be played for the check."""

    key: str
    """Name of the game's record: letters, digits, hyphens and underscores."""
    title: str
    """Description of the game that can follow "in the game"."""
    item: str
    """Id of the item that the game is played for."""
    game: str
    index: int
    """0 if the checked bot moves first."""
    opponent: str = ""
    """The sample bot of a game between processes; empty for a conformance game."""
    test_opponent: TestOpponent | None = None
    """The opponent of a conformance game; None for a game between processes."""
    opening: str = ""


def scenarios(settings: Settings, capabilities: tuple[str, ...]) -> Iterator[Scenario]:
    """Yield all scenarios in order; the first game is checked fully, the others briefly."""
    for number, text in enumerate(settings.games):
        make = _ScenarioFactory(text, prefix=f"{number + 1}-" if number else "")
        for index, item in enumerate(PLAYS):
            opponent = TestOpponent(varied, waits=True)
            yield make.conformance_game(index, "watched", "against a test opponent", item, opponent)
        if number == 0:
            yield from _rest_of_full_check(make, settings, capabilities)
        else:
            yield from make.games(f"random:{settings.seed}", 1)


def _rest_of_full_check(
    make: "_ScenarioFactory", settings: Settings, capabilities: tuple[str, ...]
) -> Iterator[Scenario]:
    """Yield one game's scenarios, short and informative ones first, as a slow bot's check is cut short."""
    game = make.rules
    can_swap = has_swap(game)
    if can_swap:
        what = "against a test opponent that swaps at once"
        yield make.conformance_game(0, "swapped", what, "swap", TestOpponent(swapping))
    yield from _early_ends(make)
    yield from make.games(FIRST_LEGAL, settings.rounds)
    for seed in range(settings.seed, settings.seed + settings.rounds):
        yield from make.games(f"random:{seed}", 1)
    if can_swap:
        yield from make.games(SWAP_HAPPY, settings.rounds)
    if has_extra_turns(game):
        what = "against a test opponent that takes many extra turns"
        for index in Side:
            yield make.conformance_game(index, "chains", what, "extra-turns", TestOpponent(chaining))
    if can_swap:
        for first in range(min(len(without_swap(game, game.initial_state())), MAX_FIRST_MOVES)):
            what = f"against a test opponent that begins with move {first + 1}"
            opponent = TestOpponent(opening_with(first), stops_at=SWAP_REPLIES, plays_on_after_swap=True)
            yield make.conformance_game(1, f"offered-{first + 1}", what, "swap", opponent)
    if "openings" in capabilities:
        for index in Side:
            for number, opening in enumerate(_openings(game, index), 1):
                yield make.conformance_game(
                    index,
                    f"opening-{number}",
                    f"from the opening {opening!r}",
                    "openings",
                    TestOpponent(varied),
                    opening,
                )


def _early_ends(make: "_ScenarioFactory") -> Iterator[Scenario]:
    """Yield conformance games with an END at unexpected moments."""
    item = "end-mid-game"
    what = "against a test opponent that loses at its first reply"
    yield make.conformance_game(1, "end-at-once", what, item, TestOpponent(varied, stops_at=1))
    what = "against a test opponent that loses in the middle of the game"
    for index in Side:
        opponent = TestOpponent(varied, stops_at=PARTING_REPLY, waits=True)
        yield make.conformance_game(index, "end-waiting", what, item, opponent)
    for turn, key in ((1, "end-first-turn"), (EXIT_TURN, "end-thinking")):
        what = f"against a test opponent that exits in the bot's turn {turn}"
        yield make.conformance_game(0, key, what, item, TestOpponent(varied, leaves_in=turn))


class _ScenarioFactory:
    """Factory of the scenarios of one game."""

    def __init__(self, game: str, prefix: str) -> None:
        self.rules = parse_game(game)
        self._game, self._prefix = game, prefix
        self._seats = self.rules.seats(self.rules.initial_state())

    def conformance_game(
        self, index: int, key: str, what: str, item: str, opponent: TestOpponent, opening: str = ""
    ) -> Scenario:
        """Return a conformance game; ``what`` completes the title after the bot's seat."""
        seat = self._seats[index]
        return Scenario(
            key=f"{self._prefix}{key}-{seat.lower()}",
            title=f"as {seat} {what}",
            item=item,
            game=self._game,
            index=index,
            test_opponent=opponent,
            opening=opening,
        )

    def games(self, opponent: str, times: int) -> Iterator[Scenario]:
        """Yield games against a sample bot from both seats, ``times`` of each."""
        for again in range(times):
            for index, (seat, item) in enumerate(zip(self._seats, PLAYS, strict=True)):
                key = opponent.replace(":", "-") + (f"-{again + 1}" if again else "")
                yield Scenario(
                    key=f"{self._prefix}{key}-{seat.lower()}",
                    title=f"as {seat} against {opponent}",
                    item=item,
                    game=self._game,
                    index=index,
                    opponent=opponent,
                )


def _openings(game: AnyGame, side: Side) -> Iterator[str]:
    """Yield an opening of two moves; with extra turns, also a position in which each move gives one."""
    state, moves = game.initial_state(), []
    for _ in range(2):
        if game.outcome(state) is not None:
            return  # on a very small board the game is over by then
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
    row = list(range(pits, 0, -1))  # the seed count of each pit is its distance from the store
    rest = seeds - 2 * sum(row)
    board = [*row, rest // 2, *row, rest - rest // 2]
    opening = f"{','.join(map(str, board))};{game.seats(game.initial_state())[side]}"
    try:
        if rest >= 0 and parse_opening(game, opening):
            yield opening
    except OpeningError:  # not a possible position of this board
        return


def varied(game: AnyGame, state: Any) -> Any:
    """Return any legal move but the swap, the same one in the same position."""
    moves = without_swap(game, state)
    return moves[zlib.crc32(game.board_text(state).encode()) % len(moves)]


def swapping(game: AnyGame, state: Any) -> Any:
    """Return the swap if it is legal, else the move of ``varied``."""
    swap = game.swap
    return swap if swap is not None and swap in game.legal_moves(state) else varied(game, state)


def chaining(game: AnyGame, state: Any) -> Any:
    """Return the last of the moves that give an extra turn, else the move of ``varied``.

    In Kalah the last one is nearest to the store; the extra turns of the other pits remain possible.
    """
    again = [move for move in without_swap(game, state) if gives_extra_turn(game, state, move)]
    return again[-1] if again else varied(game, state)


def opening_with(number: int) -> Choose:
    """Return a player whose first move is the legal move of this number, from 0; then ``varied``."""

    def choose(game: AnyGame, state: Any) -> Any:
        if state == game.initial_state():
            return without_swap(game, state)[number]
        return varied(game, state)

    return choose


def without_swap(game: AnyGame, state: Any) -> list[Any]:
    """Return the legal moves but the swap."""
    return [move for move in game.legal_moves(state) if game.swap is None or move != game.swap]


def has_extra_turns(game: AnyGame) -> bool:
    """Return whether a player can move twice in a row, by trying the first positions of the game."""
    state = game.initial_state()
    for _ in range(EXAMINED_POSITIONS):
        if game.outcome(state) is not None:
            return False
        if any(gives_extra_turn(game, state, move) for move in without_swap(game, state)):
            return True
        state = game.apply(state, varied(game, state))
    return False


def has_swap(game: AnyGame) -> bool:
    """Return whether the second player may swap, by trying the first positions of the game.

    The rules offer the swap only in a position where it is legal.
    """
    state = game.initial_state()
    for _ in range(EXAMINED_POSITIONS):
        if game.outcome(state) is not None or game.to_move(state) is Side.SECOND:
            break
        state = game.apply(state, varied(game, state))
    return game.swap is not None and game.swap in game.legal_moves(state)


def gives_extra_turn(game: AnyGame, state: Any, move: Any) -> bool:
    """Return whether the mover is to move again after this move."""
    following = game.apply(state, move)
    return game.outcome(following) is None and game.to_move(following) is game.to_move(state)

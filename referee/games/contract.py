"""Checks of the contract of ``referee.games.base.Game`` by random play.

The author of a game runs them with ``kalarena game check``; the tests run them on the games of Kalarena.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

from protocol.codec import decode_referee_line, encode
from protocol.messages import Change, Next
from referee.games.base import (
    LONGEST_FAULT,
    Game,
    IllegalMoveError,
    InvalidMoveError,
    MoveError,
    Outcome,
    PositionError,
    Side,
)
from referee.games.layout import GridBoard, Layout

PLAYOUTS = 12
MAX_PLIES = 5_000
"""Plies after which a random game counts as endless: the longest of Kalah have about 400, of Kalamala 325."""
MOVES_TRIED = 60
"""Moves tried in each position, for games with thousands of moves."""
SWAP_CHANCE = 0.4
"""Probability of a legal swap in a random game; among many moves it would be rare."""

NO_TEXTS = ("", " ", "\0", "?", "\N{FULLWIDTH DIGIT ONE}", "x" * 2000)
"""Texts that are neither a move nor a position of any game."""

AnyGame = Game[Any, Any]
Playout = list[tuple[Any, Any]]
"""The states of a random game, each with the move that was played in it; None with the last state."""


class ContractError(AssertionError):
    """A rule book breaks the contract; the message says where and how."""


def check_game(game: AnyGame, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each check's description and what is wrong; an empty text if nothing is."""
    games: list[Playout] = []
    try:
        games = playouts(game, seed)
        yield "random games end", ""
    except Exception as error:
        yield "random games end", _problem(error)
        return
    for check in CHECKS:
        text = check.__doc__ or ""
        description = text[:1].lower() + text[1:].rstrip(".")
        try:
            check(game, games)
            yield description, ""
        except Exception as error:
            yield description, _problem(error)


def _problem(error: Exception) -> str:
    return str(error) if isinstance(error, ContractError) else f"it raises {error!r}"


def playouts(game: AnyGame, seed: int = 0) -> list[Playout]:
    """Return random games.  Raises ContractError for one that does not end."""
    return [_playout(game, random.Random(f"{seed} {number}")) for number in range(PLAYOUTS)]


def _playout(game: AnyGame, dice: random.Random) -> Playout:
    state = game.initial_state()
    steps: Playout = []
    while moves := list(game.legal_moves(state)):
        if len(steps) == MAX_PLIES:
            raise ContractError(
                f"a random game has not ended after {MAX_PLIES} plies: add a rule that ends it"
            )
        may_swap = game.swap is not None and game.swap in moves
        move = game.swap if may_swap and dice.random() < SWAP_CHANCE else dice.choice(moves)
        steps.append((state, move))
        state = game.apply(state, move)
    return [*steps, (state, None)]


def _expect(condition: bool, game: AnyGame, state: Any, problem: str) -> None:
    if not condition:
        raise ContractError(f"in the position {game.format_state(state)!r}: {problem}")


def _expect_reason(error: MoveError, game: AnyGame, state: Any, refused: object) -> None:
    _expect(bool(error.fault and error.message), game, state, f"{refused!r} is refused without a reason")
    problem = f"the word {error.fault!r} for a refused move has more than {LONGEST_FAULT} characters"
    _expect(len(error.fault) <= LONGEST_FAULT, game, state, problem)


def _states(games: list[Playout]) -> Iterator[Any]:
    for steps in games:
        for state, _ in steps:
            yield state


def check_start(game: AnyGame, games: list[Playout]) -> None:
    """The first player begins at the start position, without a swap."""
    state = game.initial_state()
    _expect(game.initial_state() == state, game, state, "initial_state returns another state each time")
    _expect(game.to_move(state) is Side.FIRST, game, state, "FIRST is not to move at the start")
    _expect(game.outcome(state) is None, game, state, "the game is over at its start")
    may_swap = game.swap is not None and game.swap in game.legal_moves(state)
    _expect(not may_swap, game, state, "the first move may be a swap")


def check_legal_moves(game: AnyGame, games: list[Playout]) -> None:
    """Legal moves are sorted, and there are none exactly when the game is over."""
    for state in _states(games):
        moves = list(game.legal_moves(state))
        _expect(moves == sorted(set(moves)), game, state, f"legal_moves is not sorted: {moves}")
        is_over = game.outcome(state) is not None
        _expect(
            is_over != bool(moves),
            game,
            state,
            f"there are {len(moves)} moves, and outcome is {game.outcome(state)}",
        )


def check_apply(game: AnyGame, games: list[Playout]) -> None:
    """Each legal move can be applied, and the state before it does not change."""
    for state in _states(games):
        before, text = hash(state), game.format_state(state)
        for move in list(game.legal_moves(state))[:MOVES_TRIED]:
            after = game.apply(state, move)
            _expect(after == game.apply(state, move), game, state, f"{move!r} leads to different states")
            _expect(after != state, game, state, f"{move!r} changes nothing")
        _expect(
            (hash(state), game.format_state(state)) == (before, text), game, state, "apply changes the state"
        )


def check_illegal_moves(game: AnyGame, games: list[Playout]) -> None:
    """Moves that are not legal are refused."""
    known = {move for steps in games for _, move in steps if move is not None}
    dice = random.Random(0)
    for state in _states(games):
        wrong = sorted(known - set(game.legal_moves(state)))
        for move in dice.sample(wrong, min(MOVES_TRIED, len(wrong))):
            try:
                game.apply(state, move)
            except IllegalMoveError as error:
                _expect_reason(error, game, state, move)
            else:
                _expect(False, game, state, f"the illegal move {move!r} is applied")


def check_move_texts(game: AnyGame, games: list[Playout]) -> None:
    """Texts of moves are read back, and other texts are refused."""
    for state in _states(games):
        moves = list(game.legal_moves(state))
        texts = [game.format_move(state, move) for move in moves]
        _expect(len(set(texts)) == len(moves), game, state, "two moves have the same text")
        read = [game.parse_move(state, text) for text in texts]
        _expect(read == moves, game, state, f"format_move and parse_move differ: {texts}")
    for state in (game.initial_state(), games[0][-1][0]):
        for text in NO_TEXTS:
            try:
                game.parse_move(state, text)
            except InvalidMoveError as error:
                _expect_reason(error, game, state, text)
            else:
                _expect(False, game, state, f"{text!r} is read as a move")


def check_state_texts(game: AnyGame, games: list[Playout]) -> None:
    """Texts of positions are read back, and other texts are refused."""
    for state in _states(games):
        text = game.format_state(state)
        again = game.parse_state(text)
        _expect(
            again == state and hash(again) == hash(state), game, state, "it is read back as another state"
        )
        _expect(list(game.legal_moves(again)) == list(game.legal_moves(state)), game, state, "moves differ")
    for text in (*NO_TEXTS, ";;;"):
        try:
            game.parse_state(text)
        except PositionError:
            continue
        raise ContractError(f"{text!r} is read as a position")


def check_protocol(game: AnyGame, games: list[Playout]) -> None:
    """Moves and boards can be sent to bots."""
    for steps in games:
        for state, move in steps[:-1]:
            after = game.apply(state, move)
            message = Change(game.format_move(state, move), game.board_text(after), Next.YOU)
            _expect(
                decode_referee_line(encode(message)) == message, game, after, f"{message} is read differently"
            )


def check_seats(game: AnyGame, games: list[Playout]) -> None:
    """Seats are exchanged by a swap and by nothing else."""
    for steps in games:
        for state, move in steps[:-1]:
            first, second = game.seats(state)
            _expect(first != second, game, state, f"both seats are called {first}")
            is_swap = game.swap is not None and move == game.swap
            after = game.apply(state, move)
            seats = (second, first) if is_swap else (first, second)
            _expect(
                game.seats(after) == seats, game, state, f"{move!r} leads to the seats {game.seats(after)}"
            )
            if is_swap:
                same = game.board_text(after) == game.board_text(state)
                _expect(same, game, state, "the swap changes the board")
                other = game.to_move(state).other
                _expect(game.to_move(after) is other, game, state, "the same player moves after the swap")


def check_outcomes(game: AnyGame, games: list[Playout]) -> None:
    """A finished game has a winner or equal scores, and is half over."""
    for steps in games:
        state = steps[-1][0]
        outcome = game.outcome(state)
        assert isinstance(outcome, Outcome)
        numbers = all(type(points) is int for points in outcome.score)
        _expect(numbers, game, state, f"the score {outcome.score} is not two whole numbers")
        tied = outcome.score[0] == outcome.score[1]
        _expect(outcome.winner is not None or tied, game, state, f"a draw has the score {outcome.score}")
        halves = [game.is_half_over(state) for state, _ in steps]
        _expect(halves == sorted(halves), game, state, "is_half_over becomes False again")


def check_layout(game: AnyGame, games: list[Playout]) -> None:
    """The layout has the same size in all positions, and shows each change of the board."""
    size = _size(game.layout(game.initial_state()))
    for steps in games:
        for state, move in steps[:-1]:
            after = game.apply(state, move)
            layout = game.layout(after)
            _expect(
                _size(layout) == size, game, after, f"the layout has the size {_size(layout)}, not {size}"
            )
            if game.board_text(after) != game.board_text(state) and move != game.swap:
                _expect(layout != game.layout(state), game, after, "the layout does not show the last move")


def _size(layout: Layout) -> tuple[int, ...]:
    if isinstance(layout, GridBoard):
        return tuple(len(row) for row in layout.rows)
    return (len(layout.bottom.pits), len(layout.top.pits))


Check = Callable[[AnyGame, list[Playout]], None]
"""Function (game, random games) that raises ContractError."""

CHECKS: tuple[Check, ...] = (
    check_start,
    check_legal_moves,
    check_apply,
    check_illegal_moves,
    check_move_texts,
    check_state_texts,
    check_protocol,
    check_seats,
    check_outcomes,
    check_layout,
)

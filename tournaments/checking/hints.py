"""Likely causes of a lost game: the mistakes that beginners make.  Pure."""

from typing import Any

from referee.games.base import MoveError, Side
from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from tournaments.checking.played import Played


def hint(played: Played) -> str:
    """Return a likely cause of the fault by which the checked bot lost; empty if none shows."""
    fault = played.record.result.fault
    if fault == "late":
        return _why_silent(played)
    if fault in ("empty-pit", "occupied", "no-such-turn"):
        return _why_impossible(played)
    told = [line for line in played.lines("to") if line != "END"]
    if (
        fault == "exited"
        and told
        and (told[-1].startswith("TIME;") or played.lines("to")[0].startswith("TIME;"))
    ):
        return (
            "TIME lines are sent because its bot.toml declares them: they come before the line that gives "
            "the turn, and are no END"
        )
    return ""


def states_of(played: Played) -> list[Any]:
    """The positions of a game, from its start (or opening) on: one more than moves."""
    game = parse_game(played.record.game)
    opening = parse_opening(game, played.record.opening)
    states = [opening[-1].state if opening else game.initial_state()]
    for move in played.record.moves:
        states.append(game.apply(states[-1], game.parse_move(states[-1], move.move)))
    return states


def _why_silent(played: Played) -> str:
    """Return a likely cause of a missing reply, from the last line that was sent to the bot."""
    told = [line for line in played.lines("to") if line != "END" and not line.startswith("TIME")]
    last = told[-1] if told else ""
    if last.startswith("START;"):
        return f"{last} is the turn itself: who moves first gets no CHANGE line before its first move"
    if last.startswith("CHANGE;SWAP;"):
        return (
            "its opponent has just swapped: the bot has the other seat now (North), and it is its turn, "
            "on the "
            "same board"
        )
    moves = played.record.moves
    if moves and moves[-1].player == played.bot and last.endswith(";YOU"):
        return (
            "that was an extra turn: the line told of the bot's own move and ends in YOU; whoever moved, "
            "YOU means "
            "that a move is awaited"
        )
    if moves and moves[-1].move == "SWAP":
        return "it had swapped: after SWAP it hears nothing until the next move, and then plays on as South"
    return ""


def _why_impossible(played: Played) -> str:
    """Return a likely cause of an illegal move that would have been legal in another position."""
    game = parse_game(played.record.game)
    line = (played.lines("from") or [""])[-1]
    text = line.partition(";")[2]
    states = states_of(played)
    state = states[-1]
    if played.swaps and _is_legal_for_other_seat(game, state, text):
        now = game.seats(state)[Side(played.bot)]
        return (
            f"the seats were swapped in this game: the bot is {now} now, and that move would have been "
            "one of its "
            "old seat"
        )
    own = played.own_moves
    if own and own[-1].move == text:
        return (
            "that was its own last move, too: does the bot take over the board of every CHANGE line, "
            "also of those "
            "that end in OPP?"
        )
    return ""


def _is_legal(game: AnyGame, state: Any, text: str) -> bool:
    try:
        return game.parse_move(state, text) in game.legal_moves(state)
    except MoveError:
        return False


def _is_legal_for_other_seat(game: AnyGame, state: Any, text: str) -> bool:
    """Return whether a move would be legal if the other seat were to move (Kalah)."""
    seat = getattr(state, "seat", None)
    if seat is None:
        return False
    return _is_legal(game, state._replace(seat=1 - seat), text)

"""The bot's side of the protocol: lines of the referee in, moves out."""

import os
import sys
from collections.abc import Callable
from typing import Any

from protocol.errors import RemoteProtocolError
from referee.adapters.game_follower import GameFollower, OutOfStepError
from referee.games.catalog import DEFAULT_GAME, GAME_VARIABLE, OPENING_VARIABLE, AnyGame, parse_game
from referee.games.spec import SpecError

Choose = Callable[[AnyGame, Any], Any]
"""The play of a bot: (game, state) -> one of the state's legal moves."""

OnTime = Callable[[int, int], None]
"""Callback for the clocks before each own turn: (own, opponent's) milliseconds left."""


class Conversation:
    """One game of a bot.  Does no input or output itself."""

    def __init__(
        self, game: AnyGame, choose: Choose, *, opening: bool = False, on_time: OnTime | None = None
    ) -> None:
        """Begin at the initial state.

        Args:
            game: The rule book.
            choose: The play of the bot.
            opening: True if an opening will be announced, so that no turn follows from START alone.
            on_time: Callback for the clocks.
        """
        self._follower = GameFollower(game, opening=opening)
        self._choose = choose
        self._on_time = on_time

    @property
    def over(self) -> bool:
        """True after END."""
        return self._follower.over

    def receive(self, line: str) -> str | None:
        """Process a line of the referee; return the reply, or None if it is not the bot's turn.

        Raises OutOfStepError; RemoteProtocolError for an invalid line.
        """
        follower = self._follower
        if not follower.receive(line):
            return None
        if follower.clocks_ms is not None and self._on_time is not None:
            self._on_time(*follower.clocks_ms)
        return follower.reply(self._choose(follower.game, follower.state))


def run(choose: Choose, on_time: OnTime | None = None) -> int:
    """Play one game on standard input and output; return the exit status."""
    return run_player(lambda _game: (choose, on_time))


def run_player(player_of: Callable[[AnyGame], tuple[Choose, OnTime | None]]) -> int:
    """Play one game with a player that depends on the game; return the exit status.

    ``player_of`` returns the play of the bot and its callback for TIME lines.
    """
    try:
        game = parse_game(os.environ.get(GAME_VARIABLE, DEFAULT_GAME))
        choose, on_time = player_of(game)
        opening = bool(os.environ.get(OPENING_VARIABLE))
        conversation = Conversation(game, choose, opening=opening, on_time=on_time)
        for line in sys.stdin:
            reply = conversation.receive(line.removesuffix("\n"))
            if reply is not None:
                print(reply, flush=True)
            if conversation.over:
                break
    except (OutOfStepError, RemoteProtocolError, SpecError) as error:
        print(f"giving up: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The referee has ended the game during the bot's turn.  Without another standard output Python would
        # report the unwritten rest of the output when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def run_without_option(name: str, choose: Choose, arguments: list[str]) -> int:
    """Play one game with a bot that takes no option; return the exit status."""
    if arguments:
        print(f"{name} takes no option", file=sys.stderr)
        return 2
    return run(choose)

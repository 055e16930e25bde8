"""Errors of the referee itself, as opposed to faults of a bot."""


class RefereeError(Exception):
    """The referee or its host failed: the game has no result, is not recorded and is played again."""


class GameStoppedError(RefereeError):
    """The game was cancelled by the tournament runner."""

    unfinished: object = None
    """The ``GameRecord`` of the game so far; its result has no meaning."""

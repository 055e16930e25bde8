"""The referee's own failures, as opposed to a bot's."""


class RefereeError(Exception):
    """Something of ours failed: the game counts for nobody, is not recorded and is played again."""

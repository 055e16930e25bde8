"""Exceptions on the way from a user's text to a bot that can be started."""


class BotError(ValueError):
    """A text names no bot that can be started; the message gives the reason."""

    def __init__(self, message: str, *, is_ours: bool = False, printed: str = "") -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """True if this host failed, and not the bot: it could not confine a build, or store its products."""
        self.printed = printed
        """Output of a build command that failed: its end, or its beginning and its end."""


class ManifestError(BotError):
    """A manifest cannot be used; the message has one line for each problem."""


class BuildError(BotError):
    """A build command failed, or its products cannot be used."""

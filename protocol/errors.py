"""Protocol errors, one class for the referee's own mistakes and one for the bot's."""


class ProtocolError(Exception):
    """A line or message that the protocol does not allow here."""


class LocalProtocolError(ProtocolError):
    """The referee was about to send a message that is not allowed: a bug of Kalarena, never a bot's loss."""


class RemoteProtocolError(ProtocolError):
    """The other side sent a message that is not allowed: the bot's fault."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        """A stable word for machines, for example ``crlf``; every word is in docs/protocol.md."""
        self.message = message
        """A sentence for people: the mistake in the line, and how to correct it."""

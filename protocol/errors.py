"""Errors of a conversation, told apart by whose fault they are."""


class ProtocolError(Exception):
    """A line or message that the protocol does not allow here."""


class LocalProtocolError(ProtocolError):
    """We were about to say something that is not allowed: a bug of ours, never a bot's loss."""


class RemoteProtocolError(ProtocolError):
    """The other side said something that is not allowed: the bot's fault."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        """A stable word for machines, for example ``crlf``; every word is in docs/protocol.md."""
        self.message = message
        """A sentence for people: what was wrong with the line and what to do about it."""

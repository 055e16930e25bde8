"""Exceptions for failed requests, which become error pages or, for the API, JSON."""

import logging
from collections.abc import Mapping
from math import ceil


class WebError(Exception):
    """Ends a request with a status and one sentence for the user."""

    status = 400
    title = "That did not work"

    for_lecturers = ""
    """Addition to the page for lecturers.  It may contain paths of the server."""

    def __init__(self, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.headers = dict(headers or {})


class BadInput(WebError):
    """The request holds unusable data; the sentence gives the reason and a remedy."""


class NotSignedIn(WebError):
    """The user must sign in: pages redirect to the form, the API answers 401."""

    status = 401
    title = "Please sign in"


class Forbidden(WebError):
    """The account does not have the permission."""

    status = 403
    title = "Not for you"


class StaleForm(Forbidden):
    """A form without its session's CSRF text: sent from elsewhere, or open for too long."""

    title = "Please try again"


class NotFound(WebError):
    """The object does not exist, or its existence is hidden from this account."""

    status = 404
    title = "Nothing here"

    def __init__(self, sentence: str = "There is nothing at this address.") -> None:
        super().__init__(sentence)


class MethodNotAllowed(WebError):
    """The address exists, but not for this method."""

    status = 405
    title = "Not this way"

    def __init__(self, method: str, allowed: set[str]) -> None:
        names = ", ".join(sorted(allowed))
        super().__init__(f"This address does not answer {method}, only {names}.", {"Allow": names})


class TooSlow(WebError):
    """The body of a request did not arrive in time."""

    status = 408
    title = "That took too long"


class Conflict(WebError):
    """The action is not possible in the present state."""

    status = 409
    title = "Not now"


class TooLarge(WebError):
    """The body of a request is larger than the route allows."""

    status = 413
    title = "Too large"


class UploadRefused(WebError):
    """An upload that is refused because of its content."""

    status = 422
    title = "Upload refused"


class TooMany(WebError):
    """A rate limit was exceeded; the response states the wait in seconds."""

    status = 429
    title = "Too often"

    def __init__(self, what: str, wait_s: float) -> None:
        seconds = max(1, ceil(wait_s))
        unit = "second" if seconds == 1 else "seconds"
        super().__init__(f"{what} Try again in {seconds} {unit}.", {"Retry-After": str(seconds)})


class HeadersTooLarge(WebError):
    """The address and the headers of a request are larger than the server allows."""

    status = 431
    title = "Too large"


class Unavailable(WebError):
    """A part of the server is temporarily unavailable."""

    status = 503
    title = "Not available just now"


class ServerFault(WebError):
    """An unexpected error of the server; its number is also in the log."""

    status = 500
    title = "Our fault"

    def __init__(self, number: str, reason: str = "") -> None:
        super().__init__(f"An internal error occurred, noted as {number}: send that number to the lecturer.")
        self.for_lecturers = f"{reason and f'{reason}. '}The log of the server has the details of {number}."


LOG = logging.getLogger("kalarena.web")


RETRY_S = 10
"""Seconds after which a client may try again, when the database is away."""


def database_failure(error: Exception) -> Unavailable:
    """Log the error, and return the response, which has the address of the database for lecturers alone."""
    LOG.error("the database cannot be used: %s", error)
    failure = Unavailable(
        "The database of this server cannot be used just now. Nothing is lost, and it is not your fault: try "
        "again in a minute, and tell the lecturer if it lasts.",
        {"Retry-After": str(RETRY_S)},
    )
    failure.for_lecturers = str(error)
    return failure


def storage_failure(error: Exception) -> Unavailable:
    """Log the error, and return the response, which does not contain the path on our disk."""
    LOG.error("what was sent could not be kept: %s", error)
    return Unavailable(
        "This server could not keep what you sent, which is not your fault: its disk may be full. "
        "Tell the lecturer, and send it again later."
    )


def disk_failure(error: Exception) -> Unavailable:
    """Log the error, and return the response, which has the path on our disk for lecturers alone."""
    LOG.error("a file of the server cannot be read or written: %s", error)
    failure = Unavailable(
        "This server could not read or write a file, which is not your fault: its disk may be full. "
        "Tell the lecturer, and try again later."
    )
    failure.for_lecturers = str(error)
    return failure

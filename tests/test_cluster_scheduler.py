"""The scheduler's log: a head that is killed while it registers leaves no traceback there."""

import logging

import pytest

from tournaments.engines.remote.scheduler_process import ClientGone


@pytest.mark.parametrize(
    ("error", "is_logged"),
    [
        (KeyError("Client-56c0b500-e715-11f1-8683-02fc00000001"), False),
        (KeyError("tls://127.0.0.1:40659"), True),
        (RuntimeError("Client-56c0b500"), True),
        (None, True),
    ],
)
def test_a_client_that_vanished_while_it_registered_is_not_logged(
    caplog: pytest.LogCaptureFixture, error: Exception | None, is_logged: bool
) -> None:
    logger = logging.getLogger("tests.scheduler")
    gone = ClientGone()
    logger.addFilter(gone)
    try:
        if error is None:
            logger.error("it cannot listen")
        else:
            try:
                raise error
            except Exception:
                logger.exception("Exception while handling op register-client")
    finally:
        logger.removeFilter(gone)
    assert bool(caplog.records) is is_logged

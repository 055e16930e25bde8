"""Fixtures of the server's tests."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from tests.server import server_process
from tests.server.harness import FakeChecks
from tests.support.confinement import UNHURRIED
from tournaments.server.checks import qualifying


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> FakeChecks:
    """Replace the workers by fakes whose bots pass at once."""
    fake = FakeChecks()
    fake.released.set()
    monkeypatch.setattr(qualifying, "run_job", fake.run_job)
    return fake


@pytest.fixture(autouse=True)
def checked_bots_end_in_their_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give bots whose check must pass more than half a second to end; on a busy machine, a few need it.

    The checks of a server in another process have the limit of the product.
    """
    limits_of = qualifying.limits_of
    monkeypatch.setattr(
        qualifying,
        "limits_of",
        lambda settings: replace(limits_of(settings), end_grace_s=UNHURRIED.end_grace_s),
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of running servers to the report of a failed test."""
    report = yield
    if report.failed:
        for server in server_process.running:
            report.sections.append((f"standard error of the server at {server.url}", server.log.read_text()))
    return report

"""Fixtures of the server's tests."""

from collections.abc import Generator

import pytest

from tests.server import server_process
from tests.server.harness import FakeChecks
from tournaments.server.checks import qualifying


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> FakeChecks:
    """Replace the workers by fakes whose bots pass at once."""
    fake = FakeChecks()
    fake.released.set()
    monkeypatch.setattr(qualifying, "run_job", fake.run_job)
    return fake


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of running servers to the report of a failed test."""
    report = yield
    if report.failed:
        for server in server_process.running:
            report.sections.append((f"standard error of the server at {server.url}", server.log.read_text()))
    return report

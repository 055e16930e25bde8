"""A real browser for tests of pages: Debian's Chromium, without a network.

Playwright's synchronous interface has an event loop of its own: use it in plain tests, never in async ones.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",  # tests run as root, too, which Chromium refuses otherwise
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
GIVEN_UP = "net::ERR_ABORTED"
"""The browser ended a request itself: its page was left, or what came is a download."""
PATIENCE_MS = 60_000
"""For what a page does at once; beside other tests 5 s, which is Playwright's own, were seen not to do."""
LOCAL = ("file:", "data:", "blob:")
"""What a page that must work from the file system may ask for."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser, which takes a second to start: share it among the tests of a module.

    Without one the test fails where it is known that there must be one (in CI), else it is skipped.
    """
    if not CHROMIUM.exists():
        reason = f"no browser: {CHROMIUM} is missing (on Debian: apt install chromium)"
        if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(browser: Browser, *, site: str = "", **options: Any) -> Iterator[Page]:
    """A page in a context of its own, made with these options of Playwright's ``new_context``.

    Fails if the page reports an error, opens a dialog or asks for anything that is not a local file; or on
    ``site``, where addresses begin so.
    """
    known = (*LOCAL, site) if site else LOCAL
    troubles: list[str] = []
    with browser.new_context(**options) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on(
            "console",
            lambda message: (
                troubles.append(f"{message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )
        page.on("pageerror", lambda error: troubles.append(f"page error: {error}"))

        def refuse(dialog: Any) -> None:
            troubles.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", refuse)
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(known) else troubles.append(f"asked for {request.url}")
            ),
        )
        page.on(
            "requestfailed",
            lambda request: (
                None if request.failure == GIVEN_UP else troubles.append(f"did not get {request.url}")
            ),
        )
        yield page
    assert not troubles, "; ".join(troubles)


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wider

"""A real browser for tests of pages: Debian's Chromium, without a network; and an audit of accessibility.

Playwright's synchronous interface has an event loop of its own: use it in plain tests, never in async ones.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

CHROMIUM = next(
    filter(Path.exists, map(Path, ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium"))),
    Path("/usr/bin/chromium"),
)
"""The engine alone where it is installed: a window that nobody sees takes a third of the CPU time."""
FLAGS = (
    "--no-sandbox",  # tests run as root, too, which Chromium refuses otherwise
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ABORTED = "net::ERR_ABORTED"
"""The browser ended a request itself: its page was left, or the response is a download."""
PATIENCE_MS = 300_000
"""Timeout of an action that takes no time; a small page took over 60 s where other sessions had the CPUs."""
LOCAL = ("file:", "data:", "blob:")
"""Schemes of the addresses that a page without a server may request."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser, which takes a second: share it among the tests of a module.

    Without Chromium the test fails in CI or with KALARENA_REQUIRE_BROWSER=1; elsewhere it is skipped.
    """
    if not CHROMIUM.exists():
        reason = f"no browser: {CHROMIUM} is missing (on Debian: apt install chromium-headless-shell)"
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
    """Open a page in a context of its own, made with these options of Playwright's ``new_context``.

    The test fails if the page reports an error, opens a dialog, or requests an address that is neither local
    nor begins with ``site``.  The report of a failure has the paths of a screenshot and of the page's HTML.
    """
    known = (*LOCAL, site) if site else LOCAL
    problems: list[str] = []

    def check_console(message: Any) -> None:
        if message.type in ("error", "warning"):
            problems.append(f"{message.type}: {message.text}")

    def check_request(request: Any) -> None:
        if not request.url.startswith(known):
            problems.append(f"requested {request.url}")

    def check_failed_request(request: Any) -> None:
        if request.failure != ABORTED:
            problems.append(f"could not load {request.url}")

    def dismiss(dialog: Any) -> None:
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    with browser.new_context(**options) as context:
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", check_console)
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("dialog", dismiss)
        page.on("request", check_request)
        page.on("requestfailed", check_failed_request)
        try:
            yield page
            assert not problems, "; ".join(problems)
        except BaseException as error:
            error.add_note(_save(page))
            if problems:
                error.add_note("The page reported: " + "; ".join(problems))
            raise
    assert not problems, "; ".join(problems)  # of the end of the page


def _save(page: Page) -> str:
    """Save a screenshot and the HTML of a page; return a sentence with their paths."""
    folder = Path(tempfile.mkdtemp(prefix="kalarena-page-"))
    try:
        page.screenshot(path=folder / "page.png", full_page=True)
        (folder / "page.html").write_text(page.content(), encoding="utf-8")
    except Error as error:  # the browser has crashed, or the page is closed
        return f"The page could not be saved: {error}"
    return f"The page {page.url} is saved: {folder / 'page.png'} and {folder / 'page.html'}"


def overflow(page: Page) -> int:
    """Return how many pixels a page is wider than its window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wider


# Requirements of people who use a keyboard or a screen reader, as far as a script can check them.
AUDIT = r"""() => {
  const found = [];
  const isVisible = (element) => element.checkVisibility();
  const html = (element) => element.outerHTML.slice(0, 120);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const refers = (element, attribute) => (element.getAttribute(attribute) || "").split(/\s+/).filter(Boolean)
    .map((id) => document.getElementById(id));
  const named = (element) => element.getAttribute("aria-label")?.trim()
    || refers(element, "aria-labelledby").some((other) => other?.textContent.trim())
    || element.textContent.trim();
  const expect = (held, sentence) => { if (!held) found.push(sentence); };

  expect(document.documentElement.lang === "en", "the page has no language");
  expect(document.title.trim(), "the page has no title");
  const isFramed = document.body.classList.contains("embedded");  // as a part of another site's page
  for (const [selector, times] of [["main", 1], ["header.site", isFramed ? 0 : 1], ["h1", 1]]) {
    expect(all(selector).length === times, `${all(selector).length} times ${selector}`);
  }
  for (const nav of all("nav")) expect(named(nav) && nav.hasAttribute("aria-label"), `no name: ${html(nav)}`);

  let level = 1;
  for (const heading of all("main :is(h1, h2, h3, h4, h5, h6)").filter(isVisible)) {
    const own = Number(heading.tagName[1]);
    expect(own <= level + 1, `heading that skips a level after ${level}: ${html(heading)}`);
    expect(heading.textContent.trim(), `empty: ${html(heading)}`);
    level = own;
  }

  for (const input of all("input:not([type=hidden]), select, textarea").filter(isVisible)) {
    const labelled = [...(input.labels || [])].some((label) => label.textContent.trim());
    expect(labelled || input.getAttribute("aria-label") || input.hasAttribute("aria-labelledby"),
      `no label: ${html(input)}`);
  }
  for (const element of all("a[href], button, summary").filter(isVisible)) {
    expect(named(element) || element.title, `no name: ${html(element)}`);
  }
  for (const picture of all("img")) expect(picture.hasAttribute("alt"), `no text for: ${html(picture)}`);
  for (const picture of all("svg").filter(isVisible)) {
    const own = picture.getAttribute("aria-label") || picture.hasAttribute("aria-labelledby")
      || picture.querySelector(":scope > title") || picture.querySelector("text");
    expect(own || picture.closest("[aria-hidden=true], button, a"), `no name: ${html(picture)}`);
  }
  for (const table of all("table").filter(isVisible)) {
    expect(table.querySelector("th"), `no headers: ${html(table)}`);
  }
  for (const cell of all("th").filter(isVisible)) {
    expect(cell.textContent.trim() || cell.hasAttribute("aria-label"), `empty: ${html(cell.closest("tr"))}`);
  }
  for (const element of all("[tabindex]")) expect(element.tabIndex <= 0, `out of order: ${html(element)}`);
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
    for (const element of all(`[${name}]`)) {
      expect(refers(element, name).every(Boolean), `${name} refers to no element: ${html(element)}`);
    }
  }
  const ids = all("[id]").map((element) => element.id);
  for (const id of new Set(ids)) {
    expect(ids.indexOf(id) === ids.lastIndexOf(id), `id ${id} is there twice`);
  }
  return found;
}"""
OUTLINE = """() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
}"""


def audit(page: Page) -> list[str]:
    """Return the faults of a page, one sentence for each."""
    sentences: list[str] = page.evaluate(AUDIT)
    return sentences


def focus_outline(page: Page) -> float:
    """Return the width of the outline of the focused element in pixels; 0 without a visible outline."""
    width: float = page.evaluate(OUTLINE)
    return width

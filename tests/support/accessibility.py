"""The rules of axe-core, for tests of pages in a browser."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.support.browser import audit, overflow

PHONE, DESKTOP = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
ALL_LOOKS = ((PHONE, "light"), (PHONE, "dark"), (DESKTOP, "light"), (DESKTOP, "dark"))
"""Sizes of the window and colour schemes."""
EACH_ONCE = ((PHONE, "light"), (DESKTOP, "dark"))
"""Combinations that have each size and each scheme once."""
AXE_RUN = """async () => (await axe.run({ resultTypes: ["violations"] })).violations.map((violation) => ({
  id: violation.id, help: violation.help,
  nodes: violation.nodes.map((node) => `${node.target} ${node.html.slice(0, 160)}`),
}))"""


def axe_findings(page: Page) -> list[str]:
    """Return the violations that axe-core finds on a page as it is shown now, one sentence for each."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE_SCRIPT)
    violations: list[dict[str, Any]] = page.evaluate(AXE_RUN)
    return [
        f"{found['id']}: {found['help']}: {len(found['nodes'])} times, first {json.dumps(found['nodes'][0])}"
        for found in violations
    ]


def page_findings(
    page: Page, where: str, looks: Iterable[tuple[Mapping[str, int], str]] = ALL_LOOKS
) -> list[str]:
    """Return the findings on a phone and on a desktop, in both colour schemes, with those of an audit.

    Each begins with ``where``.
    """
    troubles = [f"{where}: {sentence}" for sentence in audit(page)]
    for size, scheme in looks:
        page.set_viewport_size(size)  # type: ignore[arg-type]  # its own ViewportSize
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # literals
        shown = f"{where}, {size['width']} px, {scheme}"
        troubles += [f"{shown}: {finding}" for finding in axe_findings(page)]
        if overflow(page) > 0:
            troubles.append(f"{shown} is {overflow(page)} px too wide")
    return troubles

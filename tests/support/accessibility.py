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
ONE_LOOK = {"student": ((PHONE, "dark"),), "admin": ((DESKTOP, "light"),)}
"""Role -> look of the pages that are also examined for visitors, in all looks."""
COLOUR_RULES = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""Options of axe-core for the rules on colours, by its tag cat.color, that it applies by default."""
AXE_RUN = """async (options) => (
  await axe.run({ resultTypes: ["violations"], ...options })
).violations.map((violation) => ({
  id: violation.id, help: violation.help,
  nodes: violation.nodes.map((node) => `${node.target} ${node.html.slice(0, 160)}`),
}))"""


def axe_findings(page: Page, *, colours_only: bool = False) -> list[str]:
    """Return the violations that axe-core finds on a page as it is shown now, one sentence for each.

    ``colours_only`` leaves out the rules that do not depend on colours, which are three quarters of the time.
    """
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE_SCRIPT)
    violations: list[dict[str, Any]] = page.evaluate(AXE_RUN, COLOUR_RULES if colours_only else {})
    return [
        f"{found['id']}: {found['help']}: {len(found['nodes'])} times, first {json.dumps(found['nodes'][0])}"
        for found in violations
    ]


def page_findings(
    page: Page, where: str, looks: Iterable[tuple[Mapping[str, int], str]] = ALL_LOOKS
) -> list[str]:
    """Return the findings on a phone and on a desktop, in both colour schemes, with those of an audit.

    Each begins with ``where``.  In a further scheme of the same size, only the rules of colours are applied.
    """
    troubles = [f"{where}: {sentence}" for sentence in audit(page)]
    sizes: list[Mapping[str, int]] = []
    for size, scheme in looks:
        page.set_viewport_size(size)  # type: ignore[arg-type]  # its own ViewportSize
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # literals
        shown = f"{where}, {size['width']} px, {scheme}"
        troubles += [f"{shown}: {finding}" for finding in axe_findings(page, colours_only=size in sizes)]
        sizes.append(size)
        if overflow(page) > 0:
            troubles.append(f"{shown} is {overflow(page)} px too wide")
    return troubles

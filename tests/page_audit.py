"""What every page owes to people who use a keyboard or a screen reader, as far as a script can tell."""

from playwright.sync_api import Page

AUDIT = r"""() => {
  const found = [];
  const seen = (element) => element.checkVisibility();
  const told = (element) => element.outerHTML.slice(0, 120);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const refers = (element, attribute) => (element.getAttribute(attribute) || "").split(/\s+/).filter(Boolean)
    .map((id) => document.getElementById(id));
  const named = (element) => element.getAttribute("aria-label")?.trim()
    || refers(element, "aria-labelledby").some((other) => other?.textContent.trim())
    || element.textContent.trim();
  const expect = (held, sentence) => { if (!held) found.push(sentence); };

  expect(document.documentElement.lang === "en", "the page names no language");
  expect(document.title.trim(), "the page has no title");
  for (const one of ["main", "header.site", "h1"]) {
    expect(all(one).length === 1, `${all(one).length} times ${one}`);
  }
  for (const nav of all("nav")) expect(named(nav) && nav.hasAttribute("aria-label"), `no name: ${told(nav)}`);

  let level = 1;
  for (const heading of all("main :is(h1, h2, h3, h4, h5, h6)").filter(seen)) {
    const own = Number(heading.tagName[1]);
    expect(own <= level + 1, `after a heading of level ${level}: ${told(heading)}`);
    expect(heading.textContent.trim(), `empty: ${told(heading)}`);
    level = own;
  }

  for (const input of all("input:not([type=hidden]), select, textarea").filter(seen)) {
    const labelled = [...(input.labels || [])].some((label) => label.textContent.trim());
    expect(labelled || input.getAttribute("aria-label") || input.hasAttribute("aria-labelledby"),
      `no label: ${told(input)}`);
  }
  for (const element of all("a[href], button, summary").filter(seen)) {
    expect(named(element) || element.title, `no name: ${told(element)}`);
  }
  for (const picture of all("img")) expect(picture.hasAttribute("alt"), `no text for: ${told(picture)}`);
  for (const picture of all("svg").filter(seen)) {
    const own = picture.getAttribute("aria-label") || picture.hasAttribute("aria-labelledby")
      || picture.querySelector(":scope > title") || picture.querySelector("text");
    expect(own || picture.closest("[aria-hidden=true], button, a"), `no name: ${told(picture)}`);
  }
  for (const table of all("table").filter(seen)) {
    expect(table.querySelector("th"), `no headers: ${told(table)}`);
  }
  for (const cell of all("th").filter(seen)) {
    expect(cell.textContent.trim() || cell.hasAttribute("aria-label"), `empty: ${told(cell.closest("tr"))}`);
  }
  for (const element of all("[tabindex]")) expect(element.tabIndex <= 0, `out of order: ${told(element)}`);
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
    for (const element of all(`[${name}]`)) {
      expect(refers(element, name).every(Boolean), `${name} leads nowhere: ${told(element)}`);
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
    """What is wrong with a page, a sentence each."""
    sentences: list[str] = page.evaluate(AUDIT)
    return sentences


def focus_outline(page: Page) -> float:
    """The width of the line around what has the focus, in pixels; 0 if nobody can see where the focus is."""
    width: float = page.evaluate(OUTLINE)
    return width

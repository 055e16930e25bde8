"""Help pages of the site, rendered from the files in docs/.

In a checkout the files are read from the repository's folder.  An installed package has them as data files,
in ``share/doc/kalarena`` below the environment's prefix (pyproject.toml).
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

import tournaments

HOME = "/help"
FILE = re.compile(r"\bdocs/(\w+)\.md")
"""Name of a file of the documentation in a message."""
TOC_LEVELS = ("h2", "h3")
"""Headings in a page's table of contents."""


@dataclass(frozen=True)
class HelpGroup:
    """Help pages for the same readers."""

    title: str
    pages: tuple[str, ...]
    """Names of files in docs/, without ``.md``."""


GROUPS = (
    HelpGroup("Writing a bot", ("students", "rules", "protocol", "check", "measuring", "solver")),
    HelpGroup(
        "Submitting a bot", ("bots", "submissions", "play", "challenges", "sandbox", "adapters", "api")
    ),
    HelpGroup("Tournaments", ("tournaments", "formats", "statistics", "report", "glossary")),
    HelpGroup("For lecturers", ("marks", "exports", "verify", "operations", "server", "cluster")),
)
PAGES = tuple(page for group in GROUPS for page in group.pages)


@dataclass(frozen=True)
class Heading:
    """A heading of a help page, for its table of contents."""

    text: str
    anchor: str
    is_nested: bool
    """True below another heading of the table of contents."""


@dataclass(frozen=True)
class HelpPage:
    """A rendered help page."""

    name: str
    title: str
    body: Markup
    """The page without its title."""
    headings: Sequence[Heading]


def help_text(name: str) -> str:
    """Return the Markdown text of one of PAGES."""
    return (docs_folder() / f"{name}.md").read_text(encoding="utf-8")


@cache
def docs_folder() -> Path:
    """Return the folder with the files of docs/.

    Raises:
        FileNotFoundError: The installed package is incomplete.

    """
    checkout = Path(tournaments.__file__).parent.parent / "docs"
    if checkout.is_dir():
        return checkout
    for file in metadata.files("kalarena") or ():
        if file.match(f"share/doc/kalarena/{PAGES[0]}.md"):
            return Path(str(file.locate())).resolve().parent
    raise FileNotFoundError("the pages of docs/ are not among the files of the installed package kalarena")


@cache
def help_page(name: str) -> HelpPage:
    """Return one of PAGES, which is rendered once."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    tokens = parser.parse(help_text(name))
    title, tokens = tokens[1].content, tokens[3:]  # its first heading: opening, text, closing
    headings = list(_mark_headings(tokens))
    for token in tokens:
        _resolve_links(token.children or ())
    body = Markup(parser.renderer.render(tokens, parser.options, {}))
    return HelpPage(name, title, body, headings)


@cache
def help_title(name: str) -> str:
    """Return the title of one of PAGES."""
    return help_text(name).partition("\n")[0].removeprefix("# ")


def linked_help(text: str) -> Markup:
    """Return a text in which names of files such as ``docs/bots.md`` are links to their pages."""
    return Markup(FILE.sub(_help_link, str(escape(text))))


def _help_link(found: re.Match[str]) -> str:
    name = found[1]
    return f'<a href="{HOME}/{name}">{escape(help_title(name))}</a>' if name in PAGES else found[0]


def _mark_headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give each heading an anchor, and yield those of the table of contents."""
    used: set[str] = set()
    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in content.children or ())
            anchor = _unique(anchor_of(text), used)
            token.attrSet("id", anchor)
            if token.tag in TOC_LEVELS:
                yield Heading(text, anchor, token.tag != TOC_LEVELS[0])


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading, as MkDocs makes it: links in docs/ are written for these."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _unique(anchor: str, used: set[str]) -> str:
    """Return an anchor that is not in ``used``, with a number as MkDocs adds it, and add the anchor there."""
    found, number = anchor, 0
    while found in used:
        number += 1
        found = f"{anchor}_{number}"
    used.add(found)
    return found


def _resolve_links(tokens: Sequence[Token]) -> None:
    """Turn links between files into links between pages; a link to a file without a page becomes text."""
    is_text, file = False, ""
    for token in tokens:
        if token.type == "link_open":
            file = str(token.attrGet("href"))
            target = help_address(file)
            is_text = target is None
            token.attrSet("href", target or "")
        elif token.type == "text" and token.content == file and file.removesuffix(".md") in PAGES:
            token.content = f"“{help_title(file.removesuffix('.md'))}”"  # the site does not have the file
        if is_text and token.type in ("link_open", "link_close"):
            token.type, token.tag, token.attrs = token.type.replace("link", "plain"), "span", {}


def help_address(target: str) -> str | None:
    """Return the address of a link's target on the site; None if the target has no page here."""
    if target.startswith(("#", "https://", "http://")):
        return target
    path, _, anchor = target.partition("#")
    name = path.removesuffix(".md")
    if name not in PAGES:
        return None
    return f"{HOME}/{name}" + (f"#{anchor}" if anchor else "")


def _table_open(_renderer: Any, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return '<div class="wide" role="group" aria-label="Table" tabindex="0"><table class="lines">\n'


def _table_close(_renderer: Any, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return "</table></div>\n"


def _code(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(tokens[index].content))

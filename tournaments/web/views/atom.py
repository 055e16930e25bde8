"""Atom feeds (RFC 4287).  Pure."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from referee.judge.verdict_text import visible

NAMESPACE = "http://www.w3.org/2005/Atom"
MEDIA_TYPE = "application/atom+xml"
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Moment of the last change of a feed without entries: a feed must have one."""


@dataclass(frozen=True)
class FeedEntry:
    """An event in a feed."""

    path: str
    """Path of its page on the site; with ``fragment`` unique among all events, for ever."""
    fragment: str
    title: str
    summary: str
    at: datetime


def atom_feed(
    title: str, site: str, path: str, entries: Sequence[FeedEntry], address: str | None = None
) -> bytes:
    """Return a feed as XML, its entries newest first.

    Args:
        title: Title of the feed.
        site: Address of the site, without a slash at the end.
        path: Path of the page that the feed is about.  With ``site``, it identifies the feed.
        entries: The events, in any order.
        address: Address of the feed itself; None if it is secret, so that no copy of the feed contains it.

    """
    ordered = sorted(entries, key=lambda entry: (entry.at, entry.path), reverse=True)
    root = ET.Element("feed", {"xmlns": NAMESPACE})
    _add(root, "id", f"{site}{path}")
    _add(root, "title", title)
    _add(root, "updated", _moment(ordered[0].at if ordered else NEVER))
    _add(ET.SubElement(root, "author"), "name", title)
    ET.SubElement(root, "link", {"rel": "alternate", "type": "text/html", "href": f"{site}{path}"})
    if address is not None:
        ET.SubElement(root, "link", {"rel": "self", "type": MEDIA_TYPE, "href": address})
    for entry in ordered:
        one = ET.SubElement(root, "entry")
        _add(one, "id", f"{site}{entry.path}#{entry.fragment}")
        _add(one, "title", entry.title)
        _add(one, "updated", _moment(entry.at))
        ET.SubElement(one, "link", {"rel": "alternate", "type": "text/html", "href": f"{site}{entry.path}"})
        _add(one, "summary", entry.summary)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def _add(parent: ET.Element, tag: str, text: str) -> None:
    # Characters that do not print, of which XML allows only some, become escapes.
    ET.SubElement(parent, tag).text = visible(text)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

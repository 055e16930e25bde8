"""A report as JUnit XML, which the continuous integration of any course reads.  Pure.

The form is that of https://llg.cubic.org/docs/junit/: a test suite for each game, a test case for each item.
"""

from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from referee.judge.verdict_text import visible
from tournaments.checking.report import Item, Report, Status


def junit_xml(report: Report) -> bytes:
    """The report as an XML document.  A fault of our host is an error, not a failure."""
    root = Xml.Element("testsuites", name=f"kalarena check {visible(report.bot)}")
    for game in dict.fromkeys(item.game or report.games[0] for item in report.items):
        items = [item for item in report.items if (item.game or report.games[0]) == game]
        suite = Xml.SubElement(root, "testsuite", name=game, timestamp=report.started_at)
        for item in items:
            _add_case(suite, item)
        if report.host_fault and game == report.games[0]:
            case = Xml.SubElement(suite, "testcase", classname="kalarena.check", name="host")
            Xml.SubElement(case, "error", message=visible(report.host_fault), type="host")
        _count(suite)
    _count(root)
    root.set("time", f"{report.duration_s:.3f}")
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_case(suite: Xml.Element, item: Item) -> None:
    case = Xml.SubElement(suite, "testcase", classname=f"kalarena.check.{item.id}", name=item.title)
    message = visible(item.sentence)
    body = "\n".join(_lines([f"To do: {item.advice}" if item.advice else "", *item.details]))
    if item.status is Status.FAILED:
        Xml.SubElement(case, "failure", message=message, type=item.id).text = body
    elif item.status is Status.SKIPPED:
        Xml.SubElement(case, "skipped", message=message)
    else:
        warning = "warning: " if item.status is Status.WARNING else ""
        Xml.SubElement(case, "system-out").text = "\n".join(_lines([f"{warning}{message}", body]))


def _lines(texts: Iterable[str]) -> list[str]:
    """Texts without what XML cannot hold (control characters), and without empty ones."""
    return ["\n".join(map(visible, text.split("\n"))) for text in texts if text]


def _count(element: Xml.Element) -> None:
    for name, found in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        element.set(name, str(len(list(element.iter(found)))))

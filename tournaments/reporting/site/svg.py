"""SVG elements, scales and ticks of charts.  Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from unicodedata import east_asian_width

LONGEST_LABEL = 24
"""Characters of a bot's name in a chart; the whole name is in its title."""
STEPS = (1, 2, 5, 10)
"""Possible distances of a scale's ticks, times a power of ten."""
LEAST_SHARE = 1e-9
"""Values that differ by this share of themselves are equal on a scale: ticks between them would be, too."""


def element(tag: str, *children: str, **attributes: object) -> str:
    """Return an element; children are markup, ``_`` in names stands for ``-``, None omits an attribute."""
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(children)}</{tag}>" if children else f"<{tag}{written}/>"


def _value(value: object) -> str:
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"no chart can show {value}")
        return f"{value:.1f}".removesuffix(".0")
    return escape(str(value), quote=True)


def label(text: str, x: float, y: float, css_class: str = "", anchor: str | None = None) -> str:
    """Return a text element with its middle line at ``y``; ``anchor`` is SVG's text-anchor."""
    return element(
        "text",
        escape(text),
        x=float(x),
        y=float(y),
        dy="0.35em",
        class_=css_class or None,
        text_anchor=anchor,
    )


def line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> str:
    """Return a straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=css_class)


def short(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a text, cut to some characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def named(text: str, markup: str, href: str | None = None) -> str:
    """Return markup with a title that is shown on hovering, as a link if ``href`` is given."""
    inner = element("title", escape(text)) + markup
    return element("g", inner) if href is None else element("a", inner, href=href)


def room_for(names: Iterable[str]) -> float:
    """Return the width of the longest of these labels in pixels, and some more."""
    return max(sum(map(_width, short(name))) for name in names) + GAP


def _width(char: str) -> float:
    """Return about the width of a character in pixels, at 13 pixels a line in the widest of usual fonts."""
    if east_asian_width(char) in "WF":
        return WIDE
    return CAPITAL if char.isupper() or char in "mw@%&<>" else CHARACTER


CHARACTER, CAPITAL, WIDE = 7.9, 10.5, 13.5
"""Measured in DejaVu Sans, without those that are a pixel or two wider still: names mix them with others."""
GAP = 20


def drawing(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return a chart as an SVG element; ``title`` is its text for screen readers.

    A chart with links is a group of them: an image has no parts that the keyboard reaches.
    """
    inner = "".join(parts)
    return element(
        "svg",
        inner,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        class_="chart",
        role="group" if "<a " in inner else "img",
        aria_label=title,
    )


@dataclass(frozen=True)
class Scale:
    """A mapping of values to pixels."""

    low: float
    high: float
    start: float
    """The pixel of ``low``."""
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; values beyond the ends have the pixel of the end."""
        value = min(max(value, self.low), self.high)
        low, high = self._position(self.low), self._position(self.high)
        share = (self._position(value) - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def _position(self, value: float) -> float:
        return log10(value) if self.log else value

    def ticks(self, most: int = 8) -> list[float]:
        """Round values between the ends."""
        return list(_decades(self.low, self.high) if self.log else _round_values(self.low, self.high, most))


def scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a linear scale that contains all finite values, with round ends."""
    found = [value for value in values if isfinite(value)] or [0.0]
    low, high = min(found), max(found)
    least = max(abs(low), abs(high)) * LEAST_SHARE
    if high - low <= least:
        low, high = low - max(1, least), high + max(1, least)
    step = _step((high - low) / 8)
    return Scale(floor(low / step) * step, ceil(high / step) * step, start, end)


def log_scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale between powers of ten; values that are not positive are ignored."""
    found = [value for value in values if isfinite(value) and value > 0] or [1.0]
    low, high = floor(log10(min(found))), ceil(log10(max(found)))
    return Scale(10.0**low, 10.0 ** (high if high > low else low + 1), start, end, log=True)


def _decades(low: float, high: float) -> Iterator[float]:
    for power in range(round(log10(low)), round(log10(high)) + 1):
        yield 10.0**power


def _round_values(low: float, high: float, most: int) -> Iterator[float]:
    step = _step((high - low) / most)
    for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1):
        yield number * step


def _step(least: float) -> float:
    """Return the least round number that is not below."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def duration(time_us: float | None) -> str:
    """Return a time with about two digits and its unit; a dash for None."""
    if time_us is None:
        return NOTHING
    unit, factor = next(
        (item for item in (("µs", 1.0), ("ms", 1e3)) if time_us / item[1] < OVERFLOW), ("s", 1e6)
    )
    value = time_us / factor
    return f"{value:.2g} {unit}" if 0 < value < SHORT else f"{value:.0f} {unit}"


def numeral(value: float) -> str:
    """Return a number with a minus sign as wide as a digit, and no ``-0``."""
    return f"{value:g}".replace("-", MINUS) if value else "0"


MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"
OVERFLOW = 999.5
"""Values from here on, which would be shown as 1000 of a unit, are shown in the next unit."""
SHORT = 9.95
"""Below this a value has a digit behind its point."""

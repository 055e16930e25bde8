"""Common parts of the pictures of all games: captions, and SVG written by hand."""

from dataclasses import dataclass
from html import escape
from typing import Any

from referee.games.base import Game, Side

# Class -> its look in light and, where it differs, in dark.  Plain rules instead of variables, since not
# every program that shows SVG supports those; the class of the whole picture keeps them off a page around it.
_LOOKS = {
    "ground": ("fill:#fbf8f2", "fill:#1e1d1b"),
    "ink": ("fill:#25211b", "fill:#ece7dd"),
    "soft": ("fill:#6b6255", "fill:#a79d8d"),
    "board": ("fill:#c79a62", "fill:#6d5030"),
    "dark": ("fill:#bb8c53", "fill:#614628"),
    "hollow": ("fill:#f6e7cf", "fill:#2c2219"),
    "number": ("fill:#2b1d0e", "fill:#f4e6cf"),
    "zero": ("fill:#a98f6d", "fill:#8a7458"),
    "white": ("fill:#fffdf8;stroke:#5a4526;stroke-width:1.5", "fill:#f5f0e6;stroke:#1a130b;stroke-width:1.5"),
    "black": ("fill:#26221e;stroke:#0f0d0b;stroke-width:1.5", "fill:#14110e;stroke:#a08d72;stroke-width:1.5"),
    "mark": ("fill:none;stroke:#c2185b;stroke-width:3.5", "fill:none;stroke:#ff8fb5;stroke-width:3.5"),
    "pointer": ("fill:#c2185b", "fill:#ff8fb5"),
}
_ROOT = "kalarena-picture"
LEFT_BY_LAST_MOVE = "4.5 4"
"""Dashes of the mark around the places that the last move emptied."""


def _style() -> str:
    light = "".join(f".{_ROOT} .{name}{{{look}}}" for name, (look, _) in _LOOKS.items())
    dark = "".join(f".{_ROOT} .{name}{{{look}}}" for name, (_, look) in _LOOKS.items())
    font = f".{_ROOT} text{{font-family:system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}}"
    return f"<style>{font}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


@dataclass(frozen=True, slots=True)
class Caption:
    """The caption of a player."""

    seat: str
    player: str
    """``first player`` or ``second player``."""
    note: str
    """``to move``, ``won 27:22``, ...; empty for the player who waits."""
    leads: bool
    """True if the player is to move, or has won."""

    def __str__(self) -> str:
        return f"{self.seat} ({self.player})" + (f": {self.note}" if self.note else "")


def captions(game: Game[Any, Any], state: Any) -> tuple[Caption, Caption]:
    """Return the captions of FIRST and SECOND."""
    outcome = game.outcome(state)
    leader = game.to_move(state) if outcome is None else outcome.winner
    found = []
    for side, player in zip(Side, ("first player", "second player"), strict=True):
        if outcome is not None:
            note = "draw" if leader is None else "won" if side is leader else "lost"
            if not outcome.detail:  # else something beside the score ended the game
                note += f" {outcome.score[side]}:{outcome.score[side.other]}"
        elif side is leader:
            may_swap = game.swap is not None and game.swap in game.legal_moves(state)
            note = "to move, or swap" if may_swap else "to move"
        else:
            note = ""
        found.append(Caption(game.seats(state)[side], player, note, side is leader))
    return found[Side.FIRST], found[Side.SECOND]


def padded(lines: list[str]) -> str:
    """Return the lines, padded with spaces to equal width."""
    width = max(map(len, lines))
    return "\n".join(line.ljust(width) for line in lines)


def element(tag: str, look: str, content: str = "", /, **attributes: float | str) -> str:
    """Return an SVG element with text in it; underscores in names of attributes stand for hyphens."""
    written = "".join(
        f' {name.replace("_", "-")}="{escape(f"{value:g}" if not isinstance(value, str) else value)}"'
        for name, value in attributes.items()
    )
    return f'<{tag} class="{look}"{written}>{escape(content, quote=False)}</{tag}>'


def label(look: str, content: str, x: float, y: float, size: float, /, **attributes: float | str) -> str:
    """Return a text centred on (x, y), unless ``text_anchor`` makes x its start or end."""
    if "text_anchor" not in attributes:
        attributes["text_anchor"] = "middle"
    # Digits and capitals are 0.7 of the size high; not every program supports dominant-baseline.
    return element("text", look, content, x=x, y=y + 0.35 * size, font_size=size, **attributes)


def caption_line(caption: Caption, x: float, y: float, size: float) -> list[str]:
    """Return a player's caption, with a pointer before the player to move or the winner."""
    if not caption.leads:
        return [label("soft", str(caption), x, y, size, text_anchor="start")]
    points = f"{x:g},{y - 0.4 * size:g} {x + 0.6 * size:g},{y:g} {x:g},{y + 0.4 * size:g}"
    pointer = element("polygon", "pointer", points=points)
    return [pointer, label("ink", str(caption), x + size, y, size, text_anchor="start", font_weight="600")]


def picture(width: float, height: float, title: str, parts: list[str]) -> str:
    """Return the whole picture, on a ground of its own so that it can be read on any page."""
    ground = element("rect", "ground", width=width, height=height, rx=12)
    body = "\n".join([f"<title>{escape(title, quote=False)}</title>", _style(), ground, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{_ROOT}" role="img" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'style="max-width:100%;height:auto">\n{body}\n</svg>\n'
    )

"""Page of a game: the data of ``replay_data`` as HTML, which is useful without scripts, too.  Pure.

All variable text goes through ``_text`` or ``_embedded``: names, lines and error texts come from people who
may try to inject markup into the page.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from tournaments.reporting.site.replay import Seats, time_text

if TYPE_CHECKING:
    from tournaments.reporting.board.drawing import Transfer

Data = Mapping[str, Any]
EMBEDDED = ("board", "players", "start", "plies", "sentence")
"""Keys of the data that the script needs; the rest is in the page itself."""
PLY_COLUMNS = (
    "player", "move", "charged_us", "wall_us", "cpu_us", "wire", "fault", "tallies",
)  # fmt: skip
"""Keys of plies (see ``replay_data``) that packed data copy unchanged.  A ply without the key has null."""
SPEEDS = ("0.5", "1", "2", "4")
_STYLES = re.compile(r"<style>[^<]*</style>| style=\"[^\"]*\"")
"""Styles of a picture for programs that show it alone.  A page has them from assets/pictures.css: a server's
content security policy allows styles only from files of its own."""
# Drawn here, since fonts show such characters in many ways: each in a square of 16.
ICONS = {
    "first": "M3 3h2v10H3zM13 3v10L6 8z",
    "previous": "M11 3v10L4 8z",
    "play": "M4 2l10 6-10 6z",
    "pause": "M4 3h3v10H4zM9 3h3v10H9z",
    "next": "M5 3v10l7-5z",
    "last": "M11 3h2v10h-2zM3 3v10l7-5z",
}
KEYS = {
    "first": "First position (Home)",
    "previous": "Previous move (Left)",
    "play": "Play (Space)",
    "next": "Next move (Right)",
    "last": "Last position (End)",
}


def replay_html(data: Data, below_header: str = "", *, bare: bool = False) -> str:
    """Return the body of a game's page; ``below_header`` is HTML between its header and the board.

    A ``bare`` one has neither board, moves nor conversation, which assets/game_page.js adds from the data of
    ``packed_replay``.

    It needs assets/replay.css and pictures.css, and for the replay itself replay.js.  There can be one on a
    page.
    """
    stage = _stage(data, _longest(data), bare=bare) if data["board"] else ""
    return "\n".join(
        [
            '<article class="replay-page">',
            _header(data),
            *([below_header] if below_header else []),
            f'<div class="replay-columns">{stage}{_moves(data, bare=bare)}</div>',
            *_details(data, bare=bare),
            *(
                [f'<script type="application/json" id="replay-data">{_embedded(data)}</script>']
                if stage and not bare
                else []
            ),
            "</article>",
            "",
        ]
    )


class SharedPlyData:
    """Data that occur in many plies and games of one file, with their numbers.

    Sowing moves are made of the same few hundred phases.
    """

    def __init__(self) -> None:
        self.boards: dict[str, int] = {}
        """Boards as JSON."""
        self.phases: dict[tuple[Transfer, ...], int] = {}
        """Phases of moves."""
        self.seats: dict[Seats, int] = {}
        """Captions of both players."""

    def to_json(self) -> dict[str, Any]:
        """Return the data in the order of their numbers."""
        return {
            "boards": list(map(json.loads, self.boards)),
            "phases": list(self.phases),
            "seats": list(self.seats),
        }


def packed_replay(data: Data, shared: SharedPlyData) -> dict[str, Any]:
    """Return the data that a bare page lacks, in few bytes, for assets/game_page.js.

    Boards, phases and seats are replaced by their numbers in ``shared``, to which new ones are added.
    """
    board = None
    if data["board"]:
        svg = without_styles(data["board"]["svg"])
        text = json.dumps(data["board"] | {"svg": svg}, separators=(",", ":"))
        board = shared.boards.setdefault(text, len(shared.boards))
    plies, wire = data["plies"], data["wire"]
    times = [at_us for at_us, *_ in wire]
    phases, seats = shared.phases, shared.seats
    columns: dict[str, list[Any]] = {name: [ply.get(name) for ply in plies] for name in PLY_COLUMNS}
    columns["phases"] = [
        [phases.setdefault(phase, len(phases)) for phase in ply["phases"]] if "phases" in ply else None
        for ply in plies
    ]
    columns["seats"] = [
        seats.setdefault(ply["seats"], len(seats)) if "seats" in ply else None for ply in plies
    ]
    return {
        "players": data["players"],
        "sentence": data["sentence"],
        "board": board,
        "start": data["start"],
        "plies": columns,
        "at": [after - before for before, after in itertools.pairwise([0, *times])],
        "by": [[player, int(direction == "to")] for _, player, direction, _ in wire],
        "lines": [line for *_, line in wire],
    }


def live_html(data: Data) -> str:
    """Return the board and the moves of a running game; see ``LiveReplay.page``.

    It needs the assets of ``replay_html``, and a script that sends the viewer an event ``replay-news`` with
    further plies.  Without scripts it shows the state of the game when the page was made.
    """
    return "\n".join(
        [
            f'<div class="replay-columns">{_stage(data, longest="")}{_moves(data)}</div>',
            f'<script type="application/json" id="replay-data">{_embedded(data, live=True)}</script>',
            "",
        ]
    )


def without_styles(picture: str) -> str:
    """Return a picture of a position without its styles, for pages that load assets/pictures.css."""
    return _STYLES.sub("", picture)


def _text(text: str) -> str:
    return escape(text, quote=True)


def _embedded(data: Data, **more: Any) -> str:
    """Return JSON for a script element: nothing in it can end the element, or begin a comment."""
    text = json.dumps(
        {name: data[name] for name in EMBEDDED} | {"board": _without_svg(data["board"])} | more,
        separators=(",", ":"),
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _without_svg(board: Data) -> dict[str, Any]:
    return {name: value for name, value in board.items() if name != "svg"}


def _name(data: Data, player: int | None) -> str:
    """Return a bot's name, isolated from the text direction around it."""
    return f"<bdi>{_text(data['players'][player])}</bdi>" if player in (0, 1) else "?"


def _header(data: Data) -> str:
    started = data["started_at"][:19].replace("T", " ")
    lines = [
        "<header>",
        f"<h1>{_name(data, 0)} <small>vs</small> {_name(data, 1)}</h1>",
        f'<p class="replay-verdict"><strong>{_text(data["reason"])}</strong> {_text(data["sentence"])}</p>',
        f'<p class="replay-soft">{_text(data["game"])} &middot; {_text(started)} UTC &middot; '
        f"{_text(data['control'])}</p>",
    ]
    remarks = [
        f'<p class="replay-{name}">{_text(data[name])}</p>' for name in ("remark", "note") if data[name]
    ]
    return "\n".join([*lines, *remarks, "</header>"])


def _longest(data: Data) -> str:
    """Return the words for the longest move; empty if there is none."""
    times = [(ply["charged_us"], number) for number, ply in enumerate(data["plies"], 1) if ply["charged_us"]]
    return f"longest {time_text(max(times)[0])}, move {max(times)[1]}" if times else ""


def _stage(data: Data, longest: str, *, bare: bool = False) -> str:
    """Return the replay's own part, hidden until the script begins, and the last position for until then."""
    board = data["board"]
    last = len(data["plies"])
    buttons = "".join(_button(name) for name in KEYS)
    speeds = "".join(
        f'<option value="{speed}"{" selected" if speed == "1" else ""}>{speed}&times;</option>'
        for speed in SPEEDS
    )
    legend = "".join(
        f'<span class="replay-player p{player}">{_name(data, player)}</span> ' for player in (0, 1)
    )
    ratio = board["width"] / board["height"]
    return f"""
<section class="replay-stage" data-board-width="{board["width"]:g}px" data-board-ratio="{ratio:.3f}">
<div id="replay-still">{"" if bare else without_styles(data["final_picture"])}</div>
<div id="replay" hidden>
<p class="replay-seat" data-place="0"></p>
<div class="replay-scene">{"" if bare else without_styles(board["svg"])}</div>
<p class="replay-seat" data-place="1"></p>
<p class="replay-said" aria-live="polite"></p>
<input class="replay-slider" type="range" min="0" max="{last}" value="0" aria-label="Move">
<div class="replay-controls" role="group" aria-label="Replay">{buttons}
<label><span>Speed</span> <select class="replay-speed" aria-label="Speed">{speeds}</select></label>
<a class="replay-link" href="#ply=0">Copy link</a></div>
<figure class="replay-times"><svg aria-hidden="true" preserveAspectRatio="none"></svg>
<figcaption>Time charged for each move: {legend}<span>{longest}</span></figcaption>
</figure>
</div>
</section>
"""


def _button(name: str) -> str:
    icons = [name, "pause"] if name == "play" else [name]
    drawn = "".join(f'<path class="icon-{icon}" d="{ICONS[icon]}"/>' for icon in icons)
    return (
        f'<button type="button" data-do="{name}" title="{KEYS[name]}" aria-label="{KEYS[name]}">'
        f'<svg viewBox="0 0 16 16" aria-hidden="true">{drawn}</svg></button>'
    )


def _moves(data: Data, *, bare: bool = False) -> str:
    head = "".join(
        f'<th scope="col"{attribute}>{word}</th>'
        for word, attribute in (
            ("#", ""),
            ("Bot", ""),
            ("Move", ""),
            ("Charged", ""),
            ("Wall", ' class="replay-more"'),
            ("CPU", ' class="replay-more"'),
        )
    )
    plies = [] if bare else data["plies"]
    rows = "\n".join(_row(data, number, ply) for number, ply in enumerate(plies, 1))
    return (
        '<section class="replay-moves" tabindex="0" aria-label="Moves"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></section>"
    )


def _row(data: Data, number: int, ply: Data) -> str:
    player = ply["player"]
    cells = [
        f'<td><a href="#ply={number}">{number}</a></td>',
        f'<td class="replay-player p{player if player in (0, 1) else ""}">{_name(data, player)}</td>',
    ]
    if "fault" in ply:
        sent = f" <code>{_text(ply['move'])}</code>" if ply["move"] else ""
        cells.append(
            f'<td class="replay-fault" colspan="4"><strong>{_text(ply["fault"])}</strong>{sent}</td>'
        )
    else:
        cells.append(f"<td>{_text(ply['move'])}</td><td>{time_text(ply['charged_us'])}</td>")
        cells += [f'<td class="replay-more">{time_text(ply[name])}</td>' for name in ("wall_us", "cpu_us")]
    return f"<tr>{''.join(cells)}</tr>"


def _details(data: Data, *, bare: bool = False) -> Iterator[str]:
    """Yield the folded parts: the conversation, standard errors, events and facts of the game."""
    lines = "\n".join(
        f'<li class="p{player if player in (0, 1) else ""}"><span>{at_us / 1000:.3f}</span> '
        f"{'to' if direction == 'to' else 'from'} {_name(data, player)} <code>{_text(line)}</code></li>"
        for at_us, player, direction, line in ([] if bare else data["wire"])
    )
    yield _folded(
        "Conversation", f'<ol class="replay-wire" tabindex="0">\n{lines}\n</ol>', "replay-conversation"
    )
    for player, words in enumerate(data["stderr"]):
        if words:
            text = "\n".join(map(_text, words))
            yield _folded(f"Standard error of {_name(data, player)}", f"<pre>\n{text}\n</pre>")
    if data["events"]:
        rows = "\n".join(
            f"<li><span>{at_us / 1000:.3f}</span> {_text(name)} "
            f"{'' if player is None else _name(data, player)} <code>{_text(text)}</code></li>"
            for at_us, player, name, text in data["events"]
        )
        yield _folded(
            "Other events that the judge received", f'<ol class="replay-wire" tabindex="0">\n{rows}\n</ol>'
        )
    pairs = "\n".join(f"<dt>{_text(label)}</dt><dd>{_text(text)}</dd>" for label, text in data["about"])
    yield _folded("About this game", f"<dl>\n{pairs}\n</dl>")


def _folded(summary: str, content: str, css_class: str = "") -> str:
    """Return a part that opens when its summary (HTML, as ``content`` is) is chosen."""
    opening = f'<details class="{css_class}">' if css_class else "<details>"
    return f"{opening}<summary>{summary}</summary>\n{content}\n</details>"

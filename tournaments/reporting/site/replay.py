"""Data of a game's replay, move by move, from its record alone or from a running game.  Pure.

``replay_data`` collects the data, and tournaments/reporting/site/replay_page.py renders them for a browser.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from referee.judge.record_rows import WireLine
from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible
from tournaments.reporting.board import board_renderer
from tournaments.reporting.board.drawing import Caption, Phases, Scene, captions


@dataclass(frozen=True, slots=True)
class _Position:
    """A position, and the move that led to it."""

    state: Any
    move: Any
    phases: Phases


Seats = tuple[tuple[str, str, int], ...]
"""For each player: seat, note, and 1 if the player leads."""


@lru_cache
def _seats(pair: tuple[Caption, Caption]) -> Seats:
    """Return the seats of two captions, which recur in all games."""
    return tuple((seat, note, int(leads)) for seat, _, note, leads in pair)


class ReplayBoard:
    """The positions of a game as far as they can be replayed.

    An altered record, or one of an older version, can hold anything: no method raises an exception for such
    a record, and ``remark`` names what is missing.
    """

    def __init__(self, game: str, opening: str, scenes: dict[str, Scene] | None = None) -> None:
        """``game`` is a spec text, ``opening`` an opening's text, ``scenes`` those of games so far."""
        self.remark = ""
        """The reason why a part could not be replayed; empty if there is none."""
        self._game: AnyGame | None = None
        self._scene: Scene | None = None
        self._positions: list[_Position] = []
        self._number = 0
        try:
            self._game = rules = parse_game(game)
            known = {} if scenes is None else scenes
            self._scene = known.get(game) or known.setdefault(game, board_renderer.scene(rules))
            steps = parse_opening(rules, opening)
            state = steps[-1].state if steps else rules.initial_state()
            self._positions.append(_Position(state, None, []))
            self._start = board_renderer.contents(rules, state)
        except Exception as error:
            self.remark = f"The board cannot be shown: {error}"
            self._scene = None

    @property
    def to_move(self) -> int | None:
        """The player to move; None after the end, and where the position is unknown."""
        if self._game is None or self.remark or self._game.outcome(self._positions[-1].state) is not None:
            return None
        return int(self._game.to_move(self._positions[-1].state))

    def play(self, player: int, text: str) -> None:
        """Play a move."""
        self._number += 1
        if self._game is None or self.remark:
            return
        state = self._positions[-1].state
        try:
            if player != self._game.to_move(state):
                raise ValueError("it is not this player's turn")
            self._positions.append(self._after(self._game, state, text))
        except Exception as error:
            self.remark = f"The board cannot be shown from move {self._number} on: {error}"

    @staticmethod
    def _after(game: AnyGame, state: Any, text: str) -> _Position:
        move = game.parse_move(state, text)
        after = game.apply(state, move)
        return _Position(after, move, board_renderer.transfers(game, state, move))

    def to_json(self) -> dict[str, Any] | None:
        """Return the scene, and as ``contents`` the content of each cell at the start."""
        scene = self._scene
        if scene is None:
            return None
        return {
            **{name: getattr(scene, name) for name in ("width", "height", "svg", "tally", "number_size")},
            "shapes": [[*shape[:-1], [list(spot) for spot in shape.spots]] for shape in scene.shapes],
            "cells": [list(cell) for cell in scene.cells],
            "pieces": {code: list(piece) for code, piece in scene.pieces.items()},
            "seats": list(scene.seats),
            "contents": self._start,
        }

    def at(self, ply: int, *, changes: bool = True) -> dict[str, Any]:
        """Return the board's data of a ply; no keys for a ply that could not be replayed.

        ``changes``: index and content of each changed cell, one after the other; ``phases`` of transfers as
        [origin, target, what], with -1 for outside, from which a page can find the changes, too; ``seats``:
        for each player [seat, note, leads]; ``tallies``.
        """
        if self._game is None or not 0 <= ply < len(self._positions):
            return {}
        played = self._positions[ply]
        changed = []
        if ply and changes:
            before, after = (
                board_renderer.contents(self._game, position.state)
                for position in self._positions[ply - 1 : ply + 1]
            )
            for cell, content in enumerate(after):
                if content != before[cell]:
                    changed += [cell, content]
        return {
            "changes": changed,
            "phases": played.phases,
            "seats": _seats(captions(self._game, played.state)),
            "tallies": list(board_renderer.tallies(self._game, played.state)),
        }

    def final_picture(self) -> str:
        """Return the last position that could be replayed, as an SVG element; empty if there is none."""
        if self._game is None or not self._positions:
            return ""
        last = (self._positions[-2].state, self._positions[-1].move) if len(self._positions) > 1 else None
        return board_renderer.svg_picture(self._game, self._positions[-1].state, last=last)


def replay_data(
    record: GameRecord,
    *,
    public: bool = False,
    own: Collection[int] = (),
    scenes: dict[str, Scene] | None = None,
) -> dict[str, Any]:
    """Return the data of a game's page: values that ``json.dumps`` accepts, with tuples for lists.

    All texts are on one line and printable.

    ``public`` leaves out the data that ``gamefiles.public_view`` leaves out: standard error, the note, our
    host, paths, commands and facts.  The standard error of the players in ``own`` stays, and so does the note
    if one of these players lost.  ``scenes`` are the boards of earlier games by their spec texts; with them
    there are no ``final_picture`` and no ``changes``, which bare pages do not need.

    No move makes this function fail: moves that cannot be replayed are missing; ``remark`` has the reason.
    The keys are: ``key``, ``game``, ``players`` (two names), ``winner``, ``reason``, ``fault``, ``sentence``
    (the verdict), ``note``, ``remark``, ``started_at``, ``control``; ``about`` (pairs of a label and a text);
    ``board`` (see ``ReplayBoard.to_json``; None if there is nothing to be shown), ``final_picture`` (SVG);
    ``start`` and ``plies`` (see ``_plies``); ``wire`` (lists of microseconds, player, ``to`` or ``from``,
    text), ``events`` (lists of microseconds, player or None, name, text), ``stderr`` (two lists of lines).
    """
    names = [visible(player.name) for player in record.players]
    board = ReplayBoard(record.game, record.opening, scenes)
    for move in record.moves:
        board.play(move.player, move.move)
    result = record.result
    marks = _wire_marks(record)
    private = _of_players(record, own) if public else _private(record)
    return {
        "key": visible(record.key),
        "game": visible(record.game),
        "players": names,
        "winner": result.winner,
        "reason": result.reason.value,
        "fault": None if result.fault is None else visible(result.fault),
        "sentence": visible(result.detail),
        "note": "",
        "remark": visible(board.remark),
        "started_at": visible(record.started_at),
        "control": str(record.control),
        "about": _about(record),
        "board": board.to_json(),
        "final_picture": board.final_picture() if scenes is None else "",
        "start": {"wire": marks[0], **board.at(0)},
        "plies": list(_plies(record, board, marks, changes=scenes is None)),
        "wire": [[line.at_us, line.player, line.direction, visible(line.line)] for line in record.wire],
        "events": [],
        "stderr": [],
        **private,
    }


def _of_players(record: GameRecord, own: Collection[int]) -> dict[str, Any]:
    """Return the data that the authors of some players may see besides the public data."""
    lost = record.result.winner is not None and 1 - record.result.winner in own
    return {
        "note": visible(record.note) if lost else "",
        "stderr": [_lines(text) if player in own else [] for player, text in enumerate(record.stderr)],
    }


def _lines(text: str) -> list[str]:
    """Return the lines of a standard error as they are shown."""
    return (
        [visible(line.replace("\t", "    ")) for line in text.removesuffix("\n").split("\n")] if text else []
    )


def _private(record: GameRecord) -> dict[str, Any]:
    """Return the data that only the lecturer may see."""
    about = _about(record)
    about.append(["Host", visible(record.host)])
    if record.host_speed is not None:
        about.append(["Speed of its cores", f"{record.host_speed / 1000:,.0f} thousand positions/s"])
    for player in record.players:
        about.append([f"Command of {visible(player.name)}", visible(" ".join(player.command))])
        about.append([f"Directory of {visible(player.name)}", visible(player.cwd)])
    return {
        "note": visible(record.note),
        "about": about,
        "events": [
            [fact.at_us, fact.player, visible(fact.name), visible(fact.text)] for fact in record.facts
        ],
        "stderr": [_lines(text) for text in record.stderr],
    }


def _about(record: GameRecord) -> list[list[str]]:
    limits = ", ".join(f"{name} {value}" for name, value in asdict(record.limits).items())
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    about = [
        ["Game", record.game],
        ["Key", record.key],
        ["Opening", record.opening or "the game's own start"],
        ["Started", record.started_at],
        ["Lasted", time_text(record.duration_us)],
        ["Time control", str(record.control)],
        ["Clock that ran", record.clock],
        ["Sandbox", record.sandbox or "not recorded"],
        ["Limits of each bot", limits],
        ["Versions", versions],
    ]
    for index, player in enumerate(record.players):
        status = record.exit_status[index]
        cpu_us = record.cpu_us[index]
        texts = ["never started" if status is None else f"exit status {status}"]
        texts += [] if cpu_us is None else [f"{time_text(cpu_us)} of CPU time in all"]
        texts += [f"files {player.digest[:12]}"] if player.digest else []
        about.append([player.name, ", ".join(texts)])
    return [[visible(label), visible(text)] for label, text in about]


def time_text(time_us: int | None) -> str:
    """Return a time with about three digits and its unit; empty for None."""
    if not time_us:
        return "" if time_us is None else "0 ms"
    if time_us >= 1_000_000:
        return f"{time_us / 1e6:.2f} s"
    return f"{time_us / 1000:.1f} ms" if time_us >= 10_000 else f"{time_us / 1000:.2f} ms"


# The plies.


def _plies(
    record: GameRecord,
    board: ReplayBoard,
    marks: Sequence[int],
    *,
    changes: bool,
) -> Iterator[dict[str, Any]]:
    """Yield the ply of each move; ``marks`` are those of ``_wire_marks``.

    The keys are: ``player``, ``move``, ``charged_us``, ``wall_us``, ``cpu_us`` (or None), ``wire`` (the
    number of wire lines until the bots were sent the move), and those of ``ReplayBoard.at``.  A game that
    ended by a fault has one more ply, with ``fault``; its ``move`` is the line that the loser sent, if any.
    """
    result = record.result
    for number, move in enumerate(record.moves, 1):
        times = {"charged_us": move.charged_us, "wall_us": move.wall_us, "cpu_us": move.cpu_us}
        ply = {"player": move.player, "move": visible(move.move), **times, "wire": marks[number]}
        yield {**ply, **board.at(number, changes=changes)}
    if result.fault is None or result.winner is None:
        return
    loser = 1 - result.winner
    last = board.at(len(record.moves))
    ending: dict[str, Any] = {}
    if last:
        notes = ["lost" if player == loser else "won" for player in (0, 1)]
        seats = tuple(
            (seat[0], note, int(note == "won")) for seat, note in zip(last["seats"], notes, strict=True)
        )
        ending = {"changes": [], "phases": [], "seats": seats, "tallies": last["tallies"]}
    sent_lines = [line.line for line in record.wire if line.player == loser and line.direction == "from"]
    sent = sent_lines[sum(move.player == loser for move in record.moves) :]
    ply = {"player": loser, "move": visible(sent[0]) if sent else "", "charged_us": None, "wall_us": None}
    yield {**ply, "cpu_us": None, "wire": len(record.wire), "fault": visible(result.fault), **ending}


def _wire_marks(record: GameRecord) -> list[int]:
    """Return the number of wire lines until the bots had been sent the start, then each move.

    A bot's lines become its moves in their order, early ones too (``referee.judge.match``).
    """
    wire = record.wire
    lines = [
        iter([at for at, line in enumerate(wire) if line.player == player and line.direction == "from"])
        for player in (0, 1)
    ]
    marks = [_past_sends(wire, 0)]
    for move in record.moves:
        last = next(lines[move.player], -1) if move.player in (0, 1) else -1
        marks.append(_past_sends(wire, max(marks[-1], last + 1)))
    if record.result.fault is None:
        marks[-1] = len(wire)
    return marks


def _past_sends(wire: list[WireLine], at: int) -> int:
    while at < len(wire) and wire[at].direction == "to":
        at += 1
    return at


class LiveReplay:
    """Data of a running game, extended move by move; each move is computed once for all viewers."""

    def __init__(self, game: str, opening: str) -> None:
        """``game`` is a spec text, ``opening`` an opening's text."""
        self._board = ReplayBoard(game, opening)
        self.plies: list[dict[str, Any]] = []
        """One for each move, as ``replay_data`` has them; there is no conversation yet."""

    @property
    def remark(self) -> str:
        """Reason why some moves have no ply; empty if all have one."""
        return self._board.remark

    def update(self, moves: Sequence[str], charged_us: Sequence[int]) -> None:
        """Add the new moves of all ``moves`` so far, except those that cannot be shown."""
        for text, time_us in list(zip(moves, charged_us, strict=True))[len(self.plies) :]:
            player = self._board.to_move
            if player is not None:
                self._board.play(player, text)
            if player is None or self.remark:
                return
            number = len(self.plies) + 1
            times = {"charged_us": time_us, "wall_us": None, "cpu_us": None}
            self.plies.append({"player": player, "move": text, **times, "wire": 0, **self._board.at(number)})

    def page(self, players: tuple[str, str]) -> dict[str, Any]:
        """Return the data for ``replay_page.live_html``; ``players`` are the names to show."""
        return {
            "players": list(players),
            "board": self._board.to_json(),
            "final_picture": self._board.final_picture(),
            "start": {"wire": 0, **self._board.at(0)},
            "plies": list(self.plies),
            "sentence": "",
        }

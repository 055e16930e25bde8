"""Results of games: reasons, verdicts, and the record of a game.

A record has all that is needed to judge the game again and to explain it.
"""

from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

import msgpack

from referee.errors import RefereeError
from referee.judge import verdict_text
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.record_rows import (
    Correction,
    Fact,
    KeptFile,
    MoveRecord,
    WireLine,
    columns_of,
    current_columns,
    kept_files_of,
    rows_of,
    to_ms,
    to_tuples,
    to_us,
)
from referee.notebooks.display import html_of

RECORD_SCHEMA = 2
"""Version of the record's layout; a reader refuses a newer one."""

NO_RECORD = "this is no game record, as kalarena play --record writes one"

JUDGE = 6
"""Version of the judge's rules.  Version 1, of records without a version, has no reasons ``memory`` and
``files``: it gives ``exit`` and ``protocol`` instead.  It compares a reply with its limit only if that came
after the deadline, and its start limit is wall time.  Up to version 2 the first player has the time for
setting up, also where an opening leaves the second one on turn.  Up to version 3 the sentence on a full
directory has the limit of $HOME, whichever directory is full.  Up to version 4 a Go program that ended
because of a file has ``exit``, and the start limit of the second player begins with the game, before the
sandboxes are made.  Up to version 5 more lines than those of runtimes begin an error message, such as
``evaluation: 12``, and a player with a time control of its own has no longer time for setting up."""


class Reason(StrEnum):
    """The reason of a game's end."""

    SCORE = "score"
    """The game was played to its end."""
    TURN_CAP = "turn-cap"
    """A house rule ended the game after so many turns, by score."""
    ILLEGAL = "illegal-move"
    """A well-formed move that the position does not allow."""
    PROTOCOL = "protocol"
    """A line that is no message of the protocol, or no message for this moment."""
    TIMEOUT = "timeout"
    """No complete reply within the time control."""
    EXIT = "exit"
    """The process ended, or closed its standard input or output."""
    CPU = "cpu"
    """The bot's processes kept its opponent from computing while the bot was not on turn."""
    MEMORY = "memory"
    """The bot exceeded its memory limit and was killed, or gave up by itself for lack of memory."""
    FILES = "files"
    """The bot ended because a file could not be written or opened, or was killed for its files."""
    FLOOD = "flood"
    """A line, or unasked-for output, beyond all measure."""
    BLOCKED = "blocked"
    """The bot does not read its input, so that no more could be written to it."""
    START = "start"
    """The bot never started: the command could not be run, or START was not taken in time.  A draw if neither
    command could be run."""


GONE = (Reason.EXIT, Reason.MEMORY, Reason.FILES)
"""Reasons of a game whose loser's process has ended or is giving up: nothing more is sent to it."""


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The verdict on one game.  Players are 0 (moved first) and 1, also after a swap."""

    winner: int | None
    """Player that won; None for a draw."""
    reason: Reason
    detail: str
    """A sentence for people; for a fault, the loser's action, with the offending line."""
    score: tuple[int, int] | None
    """Scores of player 0 and player 1; None if the game was not played to its end."""
    fault: str | None = None
    """For a fault, a finer word than the reason, for example ``crlf``; docs/protocol.md lists them."""
    note: str = ""
    """Information for the loser only, such as its last words on standard error."""


NO_RESULT = MatchResult(None, Reason.SCORE, "", None)
"""Placeholder for the result of a game that was stopped; no file holds it, see
``GameRecord.unfinished_json``."""
UNFINISHED = "unfinished"
"""A field that only records of stopped games have; its value is True."""

CAPABILITIES = ("openings", "time")
"""Optional parts of the protocol.  ``openings``: CHANGE lines that announce an opening before the first turn;
``time``: TIME lines."""


@dataclass(frozen=True, slots=True)
class Player:
    """A bot and the command that starts it."""

    name: str
    command: tuple[str, ...]
    """The argument vector; its first element is an absolute path."""
    cwd: str
    """The directory in which the bot is started."""
    digest: str = ""
    """SHA-256 over the bot's files, which identifies the version that played."""
    capabilities: tuple[str, ...] = ()
    """The optional parts of the protocol that the bot supports, see CAPABILITIES."""
    how: str = ""
    """Explanation of the command's origin, for people; empty if it was given explicitly."""
    reads: tuple[str, ...] = ()
    """Absolute paths of the files and directories of the bot: the only files of the host, beside its
    interpreter, that it can read when it is confined."""
    protocol: str = ""
    """The bot's protocol if an adapter translates it, see referee/adapters; else empty."""


OwnControls = tuple[TimeControl | None, TimeControl | None]
NO_OWN_CONTROLS: OwnControls = (None, None)


@dataclass(frozen=True)
class GameRecord:
    """The complete record of a game."""

    key: str
    """Name of the game, unique in its tournament."""
    game: str
    """Canonical spec text of the rules."""
    players: tuple[Player, Player]
    """The two players; player 0 moved first."""
    control: TimeControl
    moves: list[MoveRecord]
    wire: list[WireLine]
    facts: list[Fact]
    final_state: str
    """The board as it was last sent to the bots, or would have been."""
    result: MatchResult
    stderr: tuple[str, str]
    """The kept part of each bot's standard error."""
    exit_status: tuple[int | None, int | None]
    """Exit status of each bot; negative is the number of a signal; None if it never started."""
    started_at: str
    """Time of the start: UTC, ISO 8601."""
    opening: str
    """The opening's text (see referee/games/opening.py); empty for the game's own start."""
    duration_us: int
    """Microseconds from the start of the processes until both bots were gone."""
    host: str
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of this program and of its environment."""
    cores: list[int] = field(default_factory=list)
    """The numbers of the cores that the referee and the bots could run on; empty if not known."""
    limits: Limits = field(default_factory=Limits)
    """The limits of each bot."""
    sandbox: str = ""
    """Tier of the bots' sandbox (referee/sandbox/bubblewrap.py); empty in records of schema 1."""
    clock: str = "wall"
    """The clock in use; ``wall`` also if a fair one was requested on a system without counters."""
    cpu_us: tuple[int | None, int | None] = (None, None)
    """CPU time of each bot from its start until END, in microseconds; None where the counters were not
    read."""
    off_turn_cpu_us: tuple[int | None, int | None] = (None, None)
    """CPU time of each bot while its opponent was on turn, in microseconds, summed over turns of more than a
    millisecond."""
    host_speed: float | None = None
    """Speed of one core of the host, in positions per second of tournaments/config/host_speed.py; None
    where it was not measured, as in games that were played locally."""
    judge: int = 1
    """The version of the judge's rules, see JUDGE, that gave the verdict."""
    runtime_settings: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    """Environment variables that passed the limits to each bot's runtime
    (referee/sandbox/runtime_settings.py); empty without a sandbox and in records of older versions."""

    own_controls: OwnControls = NO_OWN_CONTROLS
    """Time control of each player whose limits differ from ``control``, such as a person's; else None.  Its
    limits, increment and margin hold for that player's moves; the rest is that of ``control``."""
    corrections: tuple[Correction, ...] = ()
    """Corrected counters; empty in records of older versions, which have no measured ones."""
    kept_files: tuple[tuple[KeptFile, ...], tuple[KeptFile, ...]] = ((), ())
    """Files that each bot wrote, if they are kept; never in the JSON view, which is given to others."""
    warnings: tuple[str, ...] = ()
    """Failures after the verdict, for the operator, such as a process that did not end."""
    peak_memory_bytes: tuple[int | None, int | None] = (None, None)
    """Peak memory of all processes of each bot together; None where no control group counted it."""

    def _repr_html_(self) -> str | None:
        """Return the final board and the replay for a notebook."""
        return html_of(self)

    def to_msgpack(self) -> bytes:
        """Return the record in columns, with its schema version."""
        data = {name.name: getattr(self, name.name) for name in fields(self)}
        if not any(self.kept_files):
            del data["kept_files"]
        if not self.warnings:
            del data["warnings"]
        del data["own_controls"], data["corrections"], data["peak_memory_bytes"]
        data.update(self._rare(), schema=RECORD_SCHEMA)
        data["players"] = [_player_row(player) for player in self.players]
        for name in ("control", "limits", "result"):
            data[name] = _fields(data[name])
        for name in ("moves", "wire", "facts"):
            data[name] = columns_of(data[name])
        packed: bytes = msgpack.packb(data, unicode_errors="surrogatepass")
        return packed

    def _rare(self) -> dict[str, Any]:
        """Return the fields that are left out where they are empty, for readers of earlier versions."""
        own = [control and _fields(control) for control in self.own_controls]
        values: dict[str, list[Any]]
        values = {"own_controls": own, "corrections": list(map(list, self.corrections))}
        values["peak_memory_bytes"] = list(self.peak_memory_bytes)
        return {name: value for name, value in values.items() if any(value)}

    def unfinished_json(self) -> dict[str, Any]:
        """Return the view of a game that was stopped: as ``to_json``, without a verdict."""
        detail = f"stopped after {len(self.moves)} moves, before the game had a result"
        return {**self.to_json(), "reason": None, "detail": detail, UNFINISHED: True}

    def unfinished_msgpack(self) -> bytes:
        """Return the same view as msgpack."""
        packed: bytes = msgpack.packb(self.unfinished_json(), unicode_errors="surrogatepass")
        return packed

    @classmethod
    def from_msgpack(cls, packed: bytes) -> "GameRecord":
        """Return the record in some bytes.

        Raises RefereeError if they hold no record, or one of a newer version.
        """
        try:
            data: dict[str, Any] = msgpack.unpackb(packed, unicode_errors="surrogatepass")
            schema = data.pop("schema")
        except Exception as error:
            raise RefereeError(NO_RECORD) from error
        _refuse_unfinished(data)
        if schema == 1:
            data = current_columns(data) | {
                "control": {**data["control"], "clock": "wall"},
                "limits": {},
                "cpu_us": (None, None),
                "off_turn_cpu_us": (None, None),
            }
        elif schema != RECORD_SCHEMA:
            raise RefereeError(
                f"the record has schema {schema}, this program reads schema {RECORD_SCHEMA}: use the "
                "version of kalarena that wrote it, or a newer one"
            )
        try:
            return cls._from_columns(data)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise RefereeError(f"this game record is damaged: {error!r}") from error

    @classmethod
    def _from_columns(cls, data: dict[str, Any]) -> "GameRecord":
        first, second = (Player(*map(to_tuples, player)) for player in data["players"])
        result = data["result"]
        score = None if result["score"] is None else (result["score"][0], result["score"][1])
        return cls(
            **{
                **data,
                "players": (first, second),
                "control": TimeControl(**data["control"]),
                "moves": [MoveRecord(*row) for row in rows_of(data["moves"])],
                "wire": list(map(WireLine._make, rows_of(data["wire"]))),
                "facts": [
                    Fact(player, name, at_us, after, to_tuples(rest))
                    for player, name, at_us, after, rest in rows_of(data["facts"])
                ],
                "limits": Limits(**data["limits"]),
                "cpu_us": tuple(data["cpu_us"]),
                "off_turn_cpu_us": tuple(data["off_turn_cpu_us"]),
                "result": MatchResult(**{**result, "reason": Reason(result["reason"]), "score": score}),
                "stderr": tuple(data["stderr"]),
                "exit_status": tuple(data["exit_status"]),
                "runtime_settings": _pair(data.get("runtime_settings")),
                "kept_files": kept_files_of(data.get("kept_files", ((), ()))),
                "warnings": tuple(data.get("warnings", ())),
                "own_controls": _own_controls(data),
                "corrections": tuple(Correction(*row) for row in data.get("corrections", ())),
                "peak_memory_bytes": tuple(data.get("peak_memory_bytes", (None, None))),
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return the view for scripts, `kalarena play --json`; later versions only add to it."""
        result = self.result
        return {
            "game": self.game,
            "players": [
                {
                    "name": p.name,
                    "command": list(p.command),
                    "digest": p.digest,
                    "capabilities": list(p.capabilities),
                    "how": p.how,
                    "cwd": p.cwd,
                    "reads": list(p.reads),
                    **({"protocol": p.protocol} if p.protocol else {}),
                }
                for p in self.players
            ],
            "winner": result.winner,
            "reason": result.reason.value,
            "fault": result.fault,
            "detail": result.detail,
            "note": result.note,
            "score": None if result.score is None else list(result.score),
            "moves": [move.view() for move in self.moves],
            "wire": [line.view() for line in self.wire],
            "facts": [fact.view() for fact in self.facts],
            "final_state": self.final_state,
            "time_control": asdict(self.control),
            "stderr": list(self.stderr),
            "exit_status": list(self.exit_status),
            "started_at": self.started_at,
            "opening": self.opening,
            "duration_ms": self.duration_us / 1000,
            "host": self.host,
            "versions": self.versions,
            "cores": self.cores,
            "limits": asdict(self.limits),
            "sandbox": self.sandbox,
            "clock": self.clock,
            "cpu_ms": [to_ms(time_us) for time_us in self.cpu_us],
            "off_turn_cpu_ms": [to_ms(time_us) for time_us in self.off_turn_cpu_us],
            "host_speed": self.host_speed,
            "judge": self.judge,
            "runtime_settings": list(self.runtime_settings),
            **self._rare(),
            "key": self.key,
            "schema": RECORD_SCHEMA,
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }

    @classmethod
    def from_json(cls, view: Any) -> "GameRecord":
        """Return the record from which ``to_json`` made a view.

        Raises RefereeError for another value, a view without its private parts, or one of another version.
        """
        if not isinstance(view, dict) or "wire" not in view:
            raise RefereeError(NO_RECORD)
        _refuse_unfinished(view)
        if view.get("schema") != RECORD_SCHEMA:
            raise RefereeError(
                f"the record has schema {view.get('schema')}, this program reads JSON of schema "
                f"{RECORD_SCHEMA}"
            )
        try:
            return cls._from_view(view)
        except LookupError as error:
            raise RefereeError(
                f"this game record is not whole, it has no {error}: the files that a tournament hands out "
                "leave out what is private"
            ) from error
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RefereeError(f"this game record is damaged: {error!r}") from error

    @classmethod
    def _from_view(cls, view: dict[str, Any]) -> "GameRecord":
        first, second = (
            Player(
                **{
                    **player,
                    **{name: to_tuples(player[name]) for name in ("command", "capabilities", "reads")},
                }
            )
            for player in view["players"]
        )
        first_stderr, second_stderr = view["stderr"]
        first_status, second_status = view["exit_status"]
        first_cpu, second_cpu = map(to_us, view["cpu_ms"])
        first_off, second_off = map(to_us, view["off_turn_cpu_ms"])
        score = None if view["score"] is None else (view["score"][0], view["score"][1])
        return cls(
            key=view["key"],
            game=view["game"],
            players=(first, second),
            control=TimeControl(**view["time_control"]),
            moves=list(map(MoveRecord.from_view, view["moves"])),
            wire=list(map(WireLine.from_view, view["wire"])),
            facts=list(map(Fact.from_view, view["facts"])),
            final_state=view["final_state"],
            result=MatchResult(
                view["winner"], Reason(view["reason"]), view["detail"], score, view["fault"], view["note"]
            ),
            stderr=(first_stderr, second_stderr),
            exit_status=(first_status, second_status),
            started_at=view["started_at"],
            opening=view["opening"],
            duration_us=round(view["duration_ms"] * 1000),
            host=view["host"],
            versions=view["versions"],
            cores=view["cores"],
            limits=Limits(**view["limits"]),
            sandbox=view["sandbox"],
            clock=view["clock"],
            cpu_us=(first_cpu, second_cpu),
            off_turn_cpu_us=(first_off, second_off),
            # Records of older versions do not have these.
            host_speed=view.get("host_speed"),
            judge=view.get("judge", 1),
            runtime_settings=_pair(view.get("runtime_settings")),
            warnings=tuple(view.get("warnings", ())),
            own_controls=_own_controls(view),
            corrections=tuple(Correction(*row) for row in view.get("corrections", ())),
            peak_memory_bytes=tuple(view.get("peak_memory_bytes", (None, None))),
        )

    @property
    def note(self) -> str:
        """Note on the verdict: that of the result, or the last words of a late bot, if their cause is known.

        Private to the author of the bot that lost, as its standard error is.
        """
        result = self.result
        if result.note or result.winner is None or result.reason not in (Reason.TIMEOUT, Reason.START):
            return result.note
        return verdict_text.known_last_words(self.stderr[1 - result.winner], self.limits)

    def mean_move_ms(self, player: int) -> float | None:
        """Return the average charged time of a player's moves in milliseconds; None if there are none."""
        times = [move.charged_us for move in self.moves if move.player == player]
        return sum(times) / len(times) / 1000 if times else None


def _player_row(player: Player) -> list[Any]:
    """Return a player's fields; an empty protocol is left out, as in records of older versions."""
    row = [getattr(player, name.name) for name in fields(Player)]
    return row if player.protocol else row[:-1]


def _refuse_unfinished(data: dict[str, Any]) -> None:
    """Raise RefereeError for the record of a game that was stopped."""
    if data.get(UNFINISHED) is True:
        raise RefereeError(
            f"this game was {data.get('detail')}: its record has the conversation so far, and no verdict "
            "to verify"
        )


def _fields(one: Any) -> dict[str, Any]:
    """Return the fields of a dataclass of plain values; ``asdict`` recurses into the values and is slower."""
    return {name.name: getattr(one, name.name) for name in fields(one)}


def _own_controls(data: dict[str, Any]) -> OwnControls:
    first, second = data.get("own_controls", NO_OWN_CONTROLS)
    return first and TimeControl(**first), second and TimeControl(**second)


def _pair(settings: Any) -> tuple[dict[str, str], dict[str, str]]:
    """Return the runtime settings of both bots; empty ones for a record of an older version."""
    first, second = settings or ({}, {})
    return dict(first), dict(second)

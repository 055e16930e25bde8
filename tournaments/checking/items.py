"""The items of a check, in the order in which they are reported.  Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from referee.games.catalog import parse_game
from tournaments.checking import costs, ending, judging, manners
from tournaments.checking.report import Item
from tournaments.checking.verdict import Evidence, Judge


@dataclass(frozen=True)
class Kind:
    """One item: its stable word, its title, its judge."""

    id: str
    title: str
    judge: Judge
    brief: bool = False
    """Whether it is judged too where a game is checked briefly."""


FOUND, FOUND_TITLE = "found", "Found"
"""The one item that is about no game: whether there is something to start."""

KINDS = (
    Kind("starts", "Starts", judging.starts),
    Kind("one-reply", "One reply a turn", manners.one_reply, brief=True),
    Kind("plays-first", "Plays as {first}", judging.plays_first, brief=True),
    Kind("plays-second", "Plays as {second}", judging.plays_second, brief=True),
    Kind("spelling", "Writes its moves well", manners.spelling, brief=True),
    Kind("swap", "Swap", judging.swap),
    Kind("extra-turns", "Extra turns", judging.extra_turns),
    Kind("end", "Ends after END", ending.ends, brief=True),
    Kind("end-mid-game", "END in mid-game", judging.end_mid_game),
    Kind("openings", "Openings", judging.openings),
    Kind("time-lines", "TIME lines", judging.time_lines),
    Kind("time", "Time per move", costs.times, brief=True),
    Kind("idle", "No idle waiting", costs.idle),
    Kind("memory", "Memory", costs.memory),
    Kind("stderr", "Standard error", manners.stderr),
    Kind("processes", "Processes", manners.processes),
    Kind("repeats", "Repeats itself", costs.repeats),
)
"""A fault that has a cause in one item shows in others, too: what tells most of causes comes first."""


def items_of(evidence: Evidence, *, full: bool) -> Iterator[Item]:
    """The items of one game."""
    game = parse_game(evidence.game)
    first, second = game.seats(game.initial_state())
    causes: dict[str, str] = {}
    for kind in KINDS:
        if not full and not kind.brief:
            continue
        title = kind.title.format(first=first, second=second)
        verdict = kind.judge(evidence)
        known = causes.setdefault(verdict.cause, title) if verdict.cause else title
        if known != title:
            where = f", {verdict.where}" if verdict.where else ""
            verdict = replace(verdict, sentence=f"the same as under {known!r}{where}", advice="", details=())
        yield Item(
            kind.id,
            evidence.game,
            title,
            verdict.status,
            verdict.sentence,
            verdict.advice,
            verdict.details,
        )

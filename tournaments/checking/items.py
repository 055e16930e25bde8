"""The items of a check, in the order in which they are reported.  Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from referee.games.catalog import parse_game
from tournaments.checking import ending, judging, output_rules, resource_usage
from tournaments.checking.report import Item
from tournaments.checking.verdict import Evidence, Judge


@dataclass(frozen=True)
class Kind:
    """The definition of one item: its stable word, its title and the function that judges it."""

    id: str
    title: str
    judge: Judge
    brief: bool = False
    """True if the item is judged in a brief check of a game, too."""


FOUND, FOUND_TITLE = "found", "Found"
"""The one item that is about no game: the bot exists and has a command."""

KINDS = (
    Kind("starts", "Starts", judging.starts),
    Kind("one-reply", "One reply a turn", output_rules.one_reply, brief=True),
    Kind("plays-first", "Plays as {first}", judging.plays_first, brief=True),
    Kind("plays-second", "Plays as {second}", judging.plays_second, brief=True),
    Kind("spelling", "Writes its moves well", output_rules.spelling, brief=True),
    Kind("swap", "Swap", judging.swap),
    Kind("extra-turns", "Extra turns", judging.extra_turns),
    Kind("end", "Ends after END", ending.ends, brief=True),
    Kind("end-mid-game", "END in mid-game", judging.end_mid_game),
    Kind("openings", "Openings", judging.openings),
    Kind("time-lines", "TIME lines", judging.time_lines),
    Kind("time", "Time per move", resource_usage.times, brief=True),
    Kind("idle", "No idle waiting", resource_usage.idle),
    Kind("memory", "Memory", resource_usage.memory),
    Kind("stderr", "Standard error", output_rules.stderr),
    Kind("processes", "Processes", output_rules.processes),
    Kind("repeats", "Repeats itself", resource_usage.repeats),
)
"""The items in their order.  A fault can show in several items: the one that explains most comes first."""


def items_of(evidence: Evidence, *, full: bool) -> Iterator[Item]:
    """Yield the items of one game."""
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

"""Dress rehearsal: a short confined game of each bot before the first game of a tournament.

Each bot plays against itself, so that it takes both seats, in the tournament's own sandbox, with its limits,
its time control and its start limit, on the engine that will play the tournament.  A game is stopped as soon
as enough moves were made.  No game of a rehearsal is stored.

A bot fails the rehearsal by a fault that its environment can cause: it does not start, it ends, it passes a
limit, or it writes text that is no message of the protocol.  A bot that plays an illegal move or loses on
time has passed: confinement does not cause that.
"""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from referee.errors import RefereeError
from referee.judge.results import GameRecord, Player, Reason
from referee.judge.verdict_text import visible
from referee.live_feed import Snapshot
from referee.playing import Job
from referee.sandbox.bubblewrap import Sandbox
from tournaments.checking.advice import own_fault, what_happened, what_to_do
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.scenarios import Scenario
from tournaments.config.tournament import Tournament
from tournaments.engines.base import Engine, EngineError
from tournaments.running.runner import Run

ENOUGH_PLIES = 12
"""Number of moves of both seats together after which a rehearsal stops."""
PLAY_S = 3.0
"""Seconds after the start of both seats after which a rehearsal stops, however few moves were made."""
ATTEMPTS = 2
"""Maximum attempts: a bot that fails is rehearsed once more, in case of a passing problem of the host."""
KEY = "rehearsal"
"""Beginning of the key of each game; no game of a tournament has such a key."""

PASSED = frozenset({Reason.SCORE, Reason.TURN_CAP, Reason.ILLEGAL, Reason.TIMEOUT, Reason.BLOCKED})
"""Reasons for the end of a rehearsal that give no information on the environment."""
NOISE = frozenset({"unknown-message", "nul-byte", "not-ascii"})
"""Faults of ``Reason.PROTOCOL`` that a message of an interpreter on standard output causes.  The others are
mistakes in a bot's own messages."""

EXPLAINED = "That is"
"""Text in a verdict's note where referee/judge/crash_hints.py explains the last words of a bot."""
SEE_ERRORS = (
    "`kalarena play BOT first_legal --sandbox required` starts it in the same way, and shows the end of its "
    "standard error"
)

WIDTH = 80
NAME_WIDTH = 18
"""Columns for the bots' names in the table."""

OnRehearsed = Callable[[int], None]
"""Called with the number of bots that have been rehearsed, in the event loop."""


class RehearsalError(Exception):
    """Some bots cannot run confined; the message is the table for people."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason why a bot cannot run confined, with advice for its author."""

    bot: str
    why: str
    advice: str


def unrehearsed(run: Run) -> list[Player]:
    """Return the bots that have games to play and have played none yet.

    A stored game shows that a bot can run: a store holds games of one version of each bot.
    """
    if not run.report.missing:
        return []
    rulings = run.rulings
    known = {name for game in rulings.games for name in (game.first, game.second)} | set(rulings.withdrawn)
    return [player for player in run.tournament.players if player.name not in known]


async def rehearse(
    players: Sequence[Player],
    tournament: Tournament,
    engine: Engine,
    sandbox: Sandbox,
    on_rehearsed: OnRehearsed | None = None,
) -> list[Problem]:
    """Rehearse bots, as many at a time as the engine plays games.

    Returns:
        A problem for each bot that failed, in the order of ``players``.  A game that the engine could not
        play gives no information on the bot: the tournament will report the failure.
    """
    problems: dict[int, Problem] = {}
    done = 0
    # An engine need not limit the number of requested games.
    slots = trio.CapacityLimiter(max(1, engine.concurrency))

    async def one(number: int, player: Player) -> None:
        nonlocal done
        async with slots:
            for attempt in range(ATTEMPTS):
                key = f"{KEY}-{number + 1}-{attempt + 1}"
                players = (player, player)
                control, limits = tournament.control, tournament.limits
                job = Job(key, tournament.game, players, control, limits, sandbox=sandbox)
                problem = await _rehearse(job, engine)
                if problem is None:
                    break
                if attempt + 1 == ATTEMPTS:
                    problems[number] = problem
        done += 1
        if on_rehearsed is not None:
            on_rehearsed(done)

    async with trio.open_nursery() as nursery:
        for number, player in enumerate(players):
            nursery.start_soon(one, number, player)
    return [problems[number] for number in sorted(problems)]


async def _rehearse(job: Job, engine: Engine) -> Problem | None:
    """Play until the result is clear; return the bot's problem, None if it has none."""
    plies = 0
    longest_s = 2 * job.control.start_s + PLAY_S
    with trio.move_on_after(longest_s) as scope:

        def on_snapshot(snapshot: Snapshot) -> None:
            nonlocal plies
            plies += len(snapshot.moves)
            # The first snapshot comes with the first turn: both seats have started by then.
            left_s = PLAY_S if plies < ENOUGH_PLIES else 0.0
            scope.deadline = min(scope.deadline, trio.current_time() + left_s)

        try:
            played = await engine.play(job, on_snapshot=on_snapshot)
            return problem_of(played.record)
        except (RefereeError, EngineError):
            # The game was stopped here, or could not be played for a reason that is not the bot's.
            await trio.lowlevel.checkpoint()
    return None


def problem_of(record: GameRecord) -> Problem | None:
    """Return the problem that the environment caused, worded as by `kalarena check`; None without any."""
    result = record.result
    if result.fault is None or result.reason in PASSED:
        return None
    if result.reason is Reason.PROTOCOL and result.fault not in NOISE:
        return None
    loser = 0 if result.winner is None else 1 - result.winner  # in a draw both seats failed
    scenario = Scenario(record.key, "against itself", "", record.game, loser, record.players[loser].name)
    played = PlayedScenario(scenario, record)
    why, advice = what_happened(played), what_to_do(played)
    if own_fault(played) == "exited":
        advice = "" if EXPLAINED in why else SEE_ERRORS
    return Problem(record.players[loser].name, why, advice)


def problem_table(
    problems: Sequence[Problem], rehearsed: int, sandbox: Sandbox, *, resumed: bool = False
) -> str:
    """Return the table of the bots that cannot run confined, at most ``WIDTH`` columns wide.

    ``resumed`` is true if the tournament was begun by an earlier run, whose games are kept.
    """
    count = f"{len(problems)} of {rehearsed} {'bot' if rehearsed == 1 else 'bots'} cannot run confined"
    played = "no further game" if resumed else "no game"
    head = f"{count}; {played} was played (sandbox: {sandbox.tier.value})"
    lines = [*textwrap.wrap(head, WIDTH, break_on_hyphens=False), ""]
    width = min(NAME_WIDTH, max(len(visible(problem.bot)) for problem in problems))
    lines += _row("bot", "why, and what to do", width)
    lines += _row("-" * width, "-" * (WIDTH - width - 2), width)
    for problem in problems:
        lines += _row(problem.bot, _sentence(problem.why), width)
        if problem.advice:
            lines += _row("", f"To do: {_sentence(problem.advice)}", width)
    lines += [
        "",
        *textwrap.wrap(
            "`kalarena check BOT --sandbox required` tries one bot in detail; `--no-rehearsal` plays the "
            "tournament with these bots as they are.",
            WIDTH,
            break_on_hyphens=False,
        ),
    ]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _row(name: str, text: str, width: int) -> list[str]:
    """Return the lines of one row; a name that is too long has a line of its own."""
    name = visible(name)
    indent = " " * (width + 2)
    own_line = [name] if len(name) > width else []
    begin = indent if own_line else f"{name:{width}}  "
    folded = textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=begin,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return own_line + folded

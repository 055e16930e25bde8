"""The check of a bot: plays the scenarios one after the other and returns the report of all items.

    report = check_bot(resolve_bot("my_bot", Path.cwd()), Settings(sandbox=find_sandbox(AUTO)))

For a process that does nothing else meanwhile and has no other children, as ``play_alone`` is.
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from referee.games.catalog import parse_game
from referee.judge.results import Player
from referee.judge.verdict_text import visible
from referee.version import VERSION
from tournaments.checking import gameplay, output_rules, resource_usage
from tournaments.checking.evidence import Evidence, PlayedScenario, Verdict
from tournaments.checking.report import Game, Item, Report, Status
from tournaments.checking.resource_usage import move_numbers, percentile
from tournaments.checking.scenario_runner import OnPlayed, OnScenario, ScenarioRunner
from tournaments.checking.scenarios import Settings, scenarios

OnItem = Callable[[Item], None]
"""Called with each item as soon as its verdict is final, in the report's order."""


@dataclass(frozen=True)
class ItemDefinition:
    """The definition of one item: its stable word, its title and the function that judges it."""

    id: str
    title: str
    judge: Callable[[Evidence], Verdict]
    brief: bool = False
    """True if the item is judged in a brief check of a game, too."""


FOUND, FOUND_TITLE = "found", "Found"
"""The one item that is about no game: the bot exists and has a command."""
FOUND_ADVICE = "look at docs/bots.md: what a bot may be, and what its bot.toml says"
BUILD_ADVICE = (
    "run the build command in the bot's directory, and mend what it prints. Where bots are confined, a "
    "build has no network: put all that it needs into the directory. In a Makefile, a tab begins each command"
)

ITEMS = (
    ItemDefinition("starts", "Starts", gameplay.starts),
    ItemDefinition("one-reply", "One reply a turn", output_rules.one_reply, brief=True),
    ItemDefinition("plays-first", "Plays as {first}", gameplay.plays_first, brief=True),
    ItemDefinition("plays-second", "Plays as {second}", gameplay.plays_second, brief=True),
    ItemDefinition("spelling", "Writes its moves well", output_rules.spelling, brief=True),
    ItemDefinition("swap", "Swap", gameplay.swap),
    ItemDefinition("extra-turns", "Extra turns", gameplay.extra_turns),
    ItemDefinition("end", "Ends after END", output_rules.ends, brief=True),
    ItemDefinition("end-mid-game", "END in mid-game", output_rules.end_mid_game),
    ItemDefinition("openings", "Openings", gameplay.openings),
    ItemDefinition("time-lines", "TIME lines", gameplay.time_lines),
    ItemDefinition("time", "Time per move", resource_usage.times, brief=True),
    ItemDefinition("idle", "No idle waiting", resource_usage.idle),
    ItemDefinition("memory", "Memory", resource_usage.memory),
    ItemDefinition("stderr", "Standard error", output_rules.stderr),
    ItemDefinition("processes", "Processes", output_rules.processes),
    ItemDefinition("repeats", "Repeats itself", resource_usage.repeats),
)
"""The items in their order.  A fault can show in several items: the one that explains most comes first."""


def _ignore(*_arguments: object) -> None:
    """Do nothing, in place of a callback."""


def check_bot(
    player: Player,
    settings: Settings,
    *,
    on_item: OnItem = _ignore,
    on_scenario: OnScenario = _ignore,
    on_played: OnPlayed = _ignore,
    cancel_fd: int | None = None,
) -> Report:
    """Return the report on a bot, which contains the faults of the bot and of our host.

    Args:
        player: The bot.
        settings: The games and the conditions of the check.
        on_item: Callback for each verdict.
        on_scenario: Callback for each scenario before it is played.
        on_played: Callback for each game that was played.
        cancel_fd: Descriptor that becomes readable when the check is cancelled.

    Raises:
        StoppedError: The check was cancelled.
        SpecError: A game is unknown.
    """
    began = time.monotonic()
    runner = ScenarioRunner(player, settings, began, on_scenario, on_played, cancel_fd)
    items: list[Item] = []

    def add(item: Item) -> None:
        items.append(item)
        on_item(item)

    started_at = _utc_now()
    add(_found_item(player, settings))
    todo = list(scenarios(settings, player.capabilities))
    numbers: dict[str, float] = {}
    for number, game in enumerate(settings.games):
        evidence = runner.play_game([each for each in todo if each.game == game], game, len(todo))
        for item in _items(evidence, full=number == 0):
            add(item)
        if number == 0:
            numbers = _measured_numbers(evidence)
    return Report(
        bot=player.name,
        command=player.command,
        digest=player.digest,
        games=tuple(parse_game(game).name for game in settings.games),
        control=str(settings.control),
        sandbox=settings.sandbox.tier.value,
        items=tuple(items),
        played=tuple(map(_report_entry, runner.played)),
        started_at=started_at,
        duration_s=round(time.monotonic() - began, 3),
        numbers=numbers,
        host_fault=runner.host_fault,
        memory_mb=settings.limits.memory_mb,
        runtime_settings=next(  # the same in all games
            (found for each in runner.played if (found := each.record.runtime_settings[each.bot])), {}
        ),
        versions=_versions(),
    )


def not_found(
    text: str, why: str, settings: Settings, *, is_ours: bool = False, is_build: bool = False
) -> Report:
    """Return the report on a text that names no startable bot.

    Args:
        text: The name, path or command of the bot.
        why: The reason.
        settings: The settings of the check.
        is_ours: True if our host is to blame.
        is_build: True if the bot's build failed.
    """
    advice = BUILD_ADVICE if is_build else FOUND_ADVICE
    item = Item(
        FOUND,
        "",
        FOUND_TITLE,
        Status.SKIPPED if is_ours else Status.FAILED,
        why,
        "" if is_ours else advice,
    )
    return Report(
        bot=text,
        command=(),
        digest="",
        games=settings.games,
        control=str(settings.control),
        sandbox=settings.sandbox.tier.value,
        items=(item,),
        host_fault=why if is_ours else "",
        started_at=_utc_now(),
        versions=_versions(),
    )


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    return {"kalarena": VERSION, "python": platform.python_version()}


def _found_item(player: Player, settings: Settings) -> Item:
    command = " ".join(player.command)
    description = player.how
    if command not in description:
        description = f"{description}: {command}" if description else command
    tier = settings.sandbox.tier
    where = f"confined ({tier.value})" if tier.confines else f"NOT confined (sandbox {tier.value})"
    return Item(FOUND, "", FOUND_TITLE, Status.PASSED, f"{visible(description)}; {where}")


def _items(evidence: Evidence, *, full: bool) -> Iterator[Item]:
    """Yield the items of one game; a mistake that several items show is explained in the first one."""
    game = parse_game(evidence.game)
    first, second = game.seats(game.initial_state())
    causes: dict[str, str] = {}
    for each in ITEMS:
        if not full and not each.brief:
            continue
        title = each.title.format(first=first, second=second)
        verdict = each.judge(evidence)
        known = causes.setdefault(verdict.cause, title) if verdict.cause else title
        if known != title:
            where = f", {verdict.where}" if verdict.where else ""
            verdict = replace(verdict, sentence=f"the same as under {known!r}{where}", advice="", details=())
        yield Item(
            each.id,
            evidence.game,
            title,
            verdict.status,
            verdict.sentence,
            verdict.advice,
            verdict.details,
            _game_keys(verdict, evidence.played_for(each.id)),
        )


def _game_keys(verdict: Verdict, played: Sequence[PlayedScenario]) -> tuple[str, ...]:
    """Return the keys of the games that a verdict names, then of the others played for its item."""
    return tuple(dict.fromkeys(each.scenario.key for each in (*verdict.games, *played)))


def _measured_numbers(evidence: Evidence) -> dict[str, float]:
    """Return the measured numbers, each with its unit in its name."""
    numbers = move_numbers(evidence)
    starts = [observed.start_us / 1000 for _, observed in evidence.observed if observed.start_us]
    if starts:
        numbers |= {"start_median_ms": percentile(starts, 0.5), "start_worst_ms": max(starts)}
    memory = max((observed.memory_bytes for _, observed in evidence.observed), default=0)
    return {name: round(value, 3) for name, value in (numbers | {"memory_mb": memory / (1 << 20)}).items()}


def _report_entry(each: PlayedScenario) -> Game:
    result = each.record.result
    return Game(
        each.scenario.key,
        each.scenario.title,
        each.scenario.item,
        result.detail,
        result.fault if each.lost_by_fault else None,
        each.record.duration_us / 1000,
        each.scenario.opponent,
    )

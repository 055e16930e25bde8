"""The check of a bot: plays the scenarios one after the other and gives the verdicts.

    report = check_bot(resolve_bot("my_bot", Path.cwd()), Settings(sandbox=find_sandbox(AUTO)))

For a process that does nothing else meanwhile and has no other children, as ``play_alone`` is.
"""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from referee.errors import RefereeError
from referee.games.catalog import parse_game
from referee.judge.results import Player
from referee.judge.verdict_text import visible
from referee.version import VERSION
from tournaments.checking.items import FOUND, FOUND_TITLE, items_of
from tournaments.checking.played import Played
from tournaments.checking.playing import bounded, play_scenario
from tournaments.checking.report import Game, Item, Report, Status
from tournaments.checking.resource_usage import move_numbers, percentile
from tournaments.checking.scenarios import Scenario, scenarios
from tournaments.checking.settings import Settings
from tournaments.checking.verdict import OUT_OF_TIME, Evidence

MAX_FAULTS = 4
"""Games lost by faults after which no further one of the same game is played: they would show the same."""
MAX_LATE = 2
"""The same number for games that were lost on time: each costs its limit."""
QUICK_MOVE_S = 1.0
"""Limit per move once a game was lost on time, if it is not shorter anyway."""
QUICK_GRACE_S = 0.1
"""Time to end after END, in seconds, once a bot had to be killed: that fault is recorded by then."""
SHARE_OF_ONE = 1 / 6
"""Share of the time for the whole check after which the examiner ends an interview."""
TRIES = 2
"""A scenario that our host spoilt is played again once."""

MORE_TIME = "give it more with --total-time, or less a move with --move-time"

OnItem = Callable[[Item], None]
"""Called with each item as soon as its verdict is final, in the report's order."""
OnScenario = Callable[[Scenario, int, int], None]
"""Called with the next scenario, its number from 1, and the greatest possible number of scenarios."""
OnPlayed = Callable[[Played], None]
"""Called with each game when it has been played."""


class StoppedError(RefereeError):
    """The check was cancelled: the leash became readable."""


def check_bot(
    player: Player,
    settings: Settings,
    *,
    on_item: OnItem | None = None,
    on_scenario: OnScenario | None = None,
    on_played: OnPlayed | None = None,
    leash: int | None = None,
) -> Report:
    """Check a bot.  A bot's failure is in the report, and so is a fault of our host.

    ``leash`` is a descriptor that becomes readable when the check is cancelled: raises StoppedError.
    Raises SpecError for an unknown game.
    """
    began = time.monotonic()
    course = _Course(player, settings, began, on_scenario, on_played, leash)
    items: list[Item] = []

    def add(item: Item) -> None:
        items.append(item)
        if on_item is not None:
            on_item(item)

    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    add(_found(player, settings))
    todo = list(scenarios(settings, player.capabilities))
    numbers: dict[str, float] = {}
    for number, game in enumerate(settings.games):
        evidence = course.run([each for each in todo if each.game == game], game, len(todo))
        for item in items_of(evidence, full=number == 0):
            add(item)
        if number == 0:
            numbers = _numbers(evidence)
    return Report(
        bot=player.name,
        command=player.command,
        digest=player.digest,
        games=tuple(parse_game(game).name for game in settings.games),
        control=str(settings.control),
        sandbox=settings.sandbox.tier.value,
        items=tuple(items),
        played=tuple(map(_told, course.played)),
        started_at=started_at,
        duration_s=round(time.monotonic() - began, 3),
        numbers=numbers,
        host_fault=course.host_fault,
        memory_mb=settings.limits.memory_mb,
        runtime_settings=_runtime_settings(course.played),
        versions={"kalarena": VERSION, "python": platform.python_version()},
    )


def _runtime_settings(played: Sequence[Played]) -> dict[str, str]:
    """Return the settings of the checked bot, which are the same in all its games."""
    return next((found for each in played if (found := each.record.runtime_settings[each.bot])), {})


def not_found(text: str, why: str, settings: Settings, *, is_ours: bool = False) -> Report:
    """Return the report on a text that names no startable bot; ``is_ours`` if our host is to blame."""
    advice = "look at docs/bots.md: what a bot may be, and what its bot.toml says"
    item = Item(FOUND, "", FOUND_TITLE, Status.FAILED, why, advice)
    if is_ours:
        item = Item(FOUND, "", FOUND_TITLE, Status.SKIPPED, why)
    return Report(
        bot=text,
        command=(),
        digest="",
        games=settings.games,
        control=str(settings.control),
        sandbox=settings.sandbox.tier.value,
        items=(item,),
        host_fault=why if is_ours else "",
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"kalarena": VERSION, "python": platform.python_version()},
    )


class _Course:
    """The course of a check: the games played so far, and the choice of those still worth playing."""

    def __init__(
        self,
        player: Player,
        settings: Settings,
        began: float,
        on_scenario: OnScenario | None,
        on_played: OnPlayed | None,
        leash: int | None,
    ) -> None:
        self.player, self.settings = player, settings
        self.played: list[Played] = []
        self.host_fault = ""
        self._until = began + settings.total_s
        self._on_scenario, self._on_played, self._leash = on_scenario, on_played, leash
        self._control, self._limits = settings.control, settings.limits
        self._number = 0

    def run(self, todo: list[Scenario], game: str, total: int) -> Evidence:
        """Play those of one game's scenarios that are worth playing."""
        played: list[Played] = []
        cut: dict[str, str] = {}
        for scenario in todo:
            self._number += 1
            why = self._why_not(played)
            if not why and scenario.opponent and played and all(each.was_ended_early for each in played):
                why = f"{OUT_OF_TIME}, {self.settings.total_s:g} s, is too short for full games: {MORE_TIME}"
            if not why:
                if self._on_scenario is not None:
                    self._on_scenario(scenario, self._number, total)
                each = self._play(scenario)
                if each is not None:
                    played.append(each)
                    self._learn(each)
                    continue
                why = self._why_not(played) or "our host failed"
            cut.setdefault(scenario.item, why)
        settings = self.settings
        return Evidence(
            game=parse_game(game).name,
            played=tuple(played),
            cut=cut,
            capabilities=self.player.capabilities,
            memory_mb=settings.limits.memory_mb,
            stderr_bytes=settings.limits.stderr_bytes,
            end_grace_s=settings.limits.end_grace_s,
        )

    def _why_not(self, played: list[Played]) -> str:
        """Return the reason why nothing more is played; empty if a further game can show something new."""
        faults = [each for each in played if each.lost_by_fault]
        late = [each for each in faults if each.record.result.fault == "late"]
        if self.host_fault:
            return f"our host failed: {self.host_fault}"
        if any(each.never_started for each in self.played):
            return "it does not start"
        if len(late) >= MAX_LATE:
            return f"left out after {len(late)} games that were lost on time: put that right first"
        if len(faults) >= MAX_FAULTS:
            return f"left out after {len(faults)} games that were lost by faults: put these right first"
        if time.monotonic() > self._until:
            return f"{OUT_OF_TIME}, {self.settings.total_s:g} s, was used up: {MORE_TIME}"
        return ""

    def _play(self, scenario: Scenario) -> Played | None:
        """Play a scenario; return None if the time for the check was used up meanwhile, or our host failed.

        Raises StoppedError.
        """
        for _ in range(TRIES):
            left_s = self._until - time.monotonic()
            with bounded(self._leash, left_s) as bound:
                try:
                    each = play_scenario(
                        scenario,
                        self.player,
                        self._control,
                        self._limits,
                        self.settings.sandbox,
                        self.settings.total_s * SHARE_OF_ONE,
                        bound.descriptor,
                    )
                except RefereeError as error:
                    if bound.is_stopped():
                        raise StoppedError from error
                    if time.monotonic() >= self._until:
                        return None
                    why = str(error)
                    continue
            if not each.lost_by_fault and each.record.result.fault and scenario.opponent:
                why = f"our own bot failed: {each.record.result.detail}"
                continue
            self.host_fault = ""
            self.played.append(each)
            if self._on_played is not None:
                self._on_played(each)
            return each
        self.host_fault = visible(why)
        return None

    def _learn(self, each: Played) -> None:
        """Shorten the limits that need not be waited for again after a game that reached them."""
        control = self._control
        late = each.lost_by_fault and each.record.result.fault == "late"
        if late and (control.move_s is None or control.move_s > QUICK_MOVE_S):
            self._control = replace(control, move_s=QUICK_MOVE_S)
        stayed = each.seen is not None and each.seen.ended_us is None and not each.seen.was_on_turn
        if stayed:
            self._limits = replace(self._limits, end_grace_s=min(self._limits.end_grace_s, QUICK_GRACE_S))


def _found(player: Player, settings: Settings) -> Item:
    command = " ".join(player.command)
    how = f"{player.how}: " if player.how and command not in player.how else ""
    confined = settings.sandbox.tier
    said = f"{how}{command}" if command not in player.how else player.how
    where = (
        f"confined ({confined.value})" if confined.confines else f"NOT confined (sandbox {confined.value})"
    )
    return Item(FOUND, "", FOUND_TITLE, Status.PASSED, f"{visible(said)}; {where}")


def _numbers(evidence: Evidence) -> dict[str, float]:
    """Return the measured numbers, for machines."""
    numbers = move_numbers(evidence)
    starts = [each.seen.start_us / 1000 for each in evidence.interviews if each.seen and each.seen.start_us]
    if starts:
        numbers |= {"start_median_ms": percentile(starts, 0.5), "start_worst_ms": max(starts)}
    memory = max((each.seen.memory_bytes for each in evidence.interviews if each.seen), default=0)
    return {name: round(value, 3) for name, value in (numbers | {"memory_mb": memory / (1 << 20)}).items()}


def _told(each: Played) -> Game:
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

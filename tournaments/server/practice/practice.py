"""The practice ladder: endless games between the current versions of all teams and reference players.

Its games are stored as those of any competition.  Nothing else is: the next match is computed from them, so
that a server that was killed continues where it stopped, beginning with the missing return games.

A ladder is of one game.  When the lecturer changes the course's game, the ladder is finished, and another
begins.
"""

from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, replace

import trio

from referee.errors import RefereeError
from referee.games.spec import SpecError
from referee.judge.results import Player
from referee.play import Job
from referee.sandbox.detection import SandboxError
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, Competitor
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.engines.base import EngineError
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.checks.qualifying import limits_of
from tournaments.server.failures import wait_s
from tournaments.server.live_hub import WatchedEngine
from tournaments.server.practice.contenders import enter_current, may_still_play, why_rest
from tournaments.server.practice.matchmaking import Candidate, next_match
from tournaments.server.practice.practice_games import PracticeGame, PracticeHistory, opening_of
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Kind

SLUG, TITLE = "practice", "Practice ladder"
LOOK_S = 2.0
"""Seconds between checks for changed settings, quiet hours and withdrawn versions.

A version that qualifies wakes the ladder at once.
"""

OUR_FAILURES = (RefereeError, EngineError, SandboxError, SpecError, StoreError)


class Practice:
    """Runner of practice games."""

    def __init__(self, parts: ServiceContext) -> None:
        self._parts = parts
        self._ladder: _Ladder | None = None

    async def run(self) -> None:
        """Play practice games until cancelled.  After a failure, it can be run again."""
        while True:
            competition = await trio.to_thread.run_sync(self._current)
            with ExitStack() as stack:
                place = self._parts.database.competition(competition.slug)
                store = await trio.to_thread.run_sync(Store, place)
                stack.enter_context(store)
                ledger = PracticeHistory.of(await trio.to_thread.run_sync(store.games))
                self._ladder = _Ladder(self._parts, competition, store, ledger)
                await self._ladder.run()

    def wake(self) -> None:
        """Check for changes at once: a bot may have joined or left."""
        if self._ladder is not None:
            self._ladder.wake()

    @property
    def resting(self) -> str:
        """Reason why no game can begin now; empty if games can begin."""
        return self._ladder.resting if self._ladder is not None else "practice has not begun"

    def _current(self) -> Competition:
        """Return the ladder of the course's game, creating it if needed."""
        competitions = self._parts.course.competitions
        now, game = self._parts.now(), self._parts.course.settings.load().game
        with self._parts.course.transaction():
            ladders = [one for one in competitions.all() if one.kind is CompetitionKind.PRACTICE]
            for ladder in ladders:
                if ladder.state is not CompetitionState.FINISHED and ladder.spec.get("game") == game:
                    return ladder
            for ladder in ladders:
                if ladder.state in (CompetitionState.RUNNING, CompetitionState.PAUSED):
                    why = f"The course's game was changed to {game}."
                    competitions.set_state(ladder.id, CompetitionState.FINISHED, why, now)
            number = f"-{len(ladders) + 1}" if ladders else ""
            made = competitions.add(SLUG + number, TITLE, CompetitionKind.PRACTICE, {"game": game}, None, now)
            return competitions.set_state(made.id, CompetitionState.RUNNING, "", now)


@dataclass
class _Rest:
    """Pause of a bot whose games could not be played because of the server."""

    failures: int = 0
    until: float = 0.0


class _Ladder:
    """One practice competition, as long as its game is the course's."""

    def __init__(
        self, parts: ServiceContext, competition: Competition, store: Store, ledger: PracticeHistory
    ) -> None:
        self._parts, self._competition, self._store = parts, competition, store
        self._game: str = competition.spec["game"]
        self._tally = ledger.tally
        self._number = ledger.next_number
        self._halves = deque(ledger.halves)
        self._engine = WatchedEngine(parts.engine, parts.hub, competition.slug)
        self._competitors: dict[str, Competitor] = {}
        self._players: dict[str, Player] = {}
        self._making: set[str] = set()
        self._rests: dict[str, _Rest] = {}
        self._under_way: list[tuple[str, str]] = []
        self._settings = Settings()
        self._leisure_at = float("-inf")
        self._changed = trio.Event()
        self._woken = trio.Event()
        self._why_not = "practice has not begun"

    def wake(self) -> None:
        """Check for changes at once."""
        self._woken.set()
        self._woken = trio.Event()

    async def run(self) -> None:
        """Play until the course's game changes.  Raises StoreError."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._parts.places.total):
                nursery.start_soon(self._play_on)
            woken = self._woken
            while await self._look(nursery):
                with trio.move_on_after(LOOK_S):
                    await woken.wait()
                woken = self._woken
            nursery.cancel_scope.cancel()

    async def _look(self, nursery: trio.Nursery) -> bool:
        """Update the current bots and prepare new ones; return False if the course's game has changed."""
        settings, competition, competitors = await trio.to_thread.run_sync(self._read)
        if settings.game != self._game:
            return False
        self._settings = settings
        self._parts.places.limit(Kind.PRACTICE, settings.practice_places)
        self._why_not = why_rest(competition, settings, self._parts.now())
        self._competitors = {one.name: one for one in competitors}
        self._players = {name: one for name, one in self._players.items() if name in self._competitors}
        self._tell()
        for name, competitor in self._competitors.items():
            is_known = name in self._players or name in self._making
            if not self._why_not and not is_known and not self._is_resting(name):
                self._making.add(name)
                nursery.start_soon(self._make_ready, competitor)
        return True

    async def _make_ready(self, competitor: Competitor) -> None:
        """Prepare a new bot, while the others play."""
        try:
            player = await self._parts.bots.player(competitor, self._game)
            if competitor.name in self._competitors:
                self._players[competitor.name] = player
                self._tell()
        except (CannotPlayError, StoreError) as error:
            self._put_off(str(error), competitor.name)
        finally:
            self._making.remove(competitor.name)

    @property
    def resting(self) -> str:
        """Reason why no game can begin now; empty if games can begin."""
        if not self._why_not and len(self._players) < 2:
            return "practice needs two bots that are ready to play"
        return self._why_not

    def _read(self) -> tuple[Settings, Competition, list[Competitor]]:
        course = self._parts.course
        settings = course.settings.load()
        competition = course.competitions.get(self._competition.id) or self._competition
        return settings, competition, enter_current(course, competition, settings, self._parts.now())

    async def _play_on(self) -> None:
        """Play one game after the other."""
        while True:
            changed = self._changed
            async with self._parts.places.taken(Kind.PRACTICE):
                game = self._next()
                if game is not None:
                    await self._play(game)
                    continue
            with trio.move_on_after(LOOK_S):
                await changed.wait()

    def _next(self) -> PracticeGame | None:
        """Return the next game; None if there is none."""
        if self.resting:
            return None
        for game in self._halves:
            if not any(map(self._is_resting, game.names)):
                self._halves.remove(game)
                return game
        resting = [name for name in self._players if self._is_resting(name)]
        field = [Candidate(name, "openings" in player.capabilities) for name, player in self._players.items()]
        match = next_match(field, self._tally, self._under_way, resting=resting)
        if match is None or (match.is_leisure and not self._has_leisure()):
            return None
        number, self._number = self._number, self._number + 1
        return PracticeGame(number, 1, match.first, match.second, "")

    def _has_leisure(self) -> bool:
        """Return whether it is time for a game that is hardly needed."""
        now = trio.current_time()
        if self._under_way or now < self._leisure_at:
            return False
        self._leisure_at = now + self._parts.config.leisure_s
        return True

    async def _play(self, game: PracticeGame) -> None:
        """Play a game and store it; after a failure of the server, postpone the game and its bots."""
        self._under_way.append(game.names)
        try:
            players = await self._ready(game)
            if players is None:
                return
            if game.leg == 1 and all("openings" in player.capabilities for player in players):
                opening = await trio.to_thread.run_sync(opening_of, self._game, game.number)
                game = replace(game, opening=opening)
            job = await self._job(game, players)
            played = (await self._engine.play(job)).in_round(1, game.pair)
            await trio.to_thread.run_sync(self._store.add_all, [played])
        except CannotPlayError as error:
            self._put_off(str(error), error.name)
            self._again(game)
        except OUR_FAILURES as error:
            self._put_off(f"game {game.key}: {error}", *game.names)
            self._again(game)
        else:
            self._kept(game, played)
        finally:
            self._under_way.remove(game.names)

    async def _job(self, game: PracticeGame, players: tuple[Player, Player]) -> Job:
        settings = self._settings
        sandbox = await self._parts.bots.sandbox(settings.sandbox_mode)
        limits = limits_of(settings)
        return Job(game.key, self._game, players, settings.control(), limits, game.opening, sandbox)

    def _kept(self, game: PracticeGame, played: PackedGame) -> None:
        """Record a game's result."""
        for name in game.names:
            self._rests.pop(name, None)
        self._tally.add(game.first, game.second, played.summary.winner)
        back = game.back()
        if back is not None:
            self._halves.appendleft(back)
        self._tell()

    def _again(self, game: PracticeGame) -> None:
        """Requeue a game that was not played if it completes a pair; otherwise drop it."""
        if game.leg == 2:
            self._halves.append(game)

    async def _ready(self, game: PracticeGame) -> tuple[Player, Player] | None:
        """Return a game's players; None if one of them no longer plays.  Raises CannotPlayError, StoreError.

        A player of a return game may have been replaced by a newer version meanwhile; it still finishes its
        pair.
        """
        found = []
        for name in game.names:
            player = self._players.get(name)
            if player is None:
                competitor = await trio.to_thread.run_sync(self._still, name)
                if competitor is None:
                    return None
                player = await self._parts.bots.player(competitor, self._game)
            found.append(player)
        return found[0], found[1]

    def _still(self, name: str) -> Competitor | None:
        course = self._parts.course
        for competitor in course.competitions.competitors(self._competition.id):
            if competitor.name == name and may_still_play(course, competitor):
                return competitor
        return None

    def _is_resting(self, name: str) -> bool:
        rest = self._rests.get(name)
        return rest is not None and trio.current_time() < rest.until

    def _put_off(self, why: str, *names: str) -> None:
        self._parts.failures.note("practice", why)
        for name in names:
            rest = self._rests.setdefault(name, _Rest())
            rest.failures += 1
            rest.until = trio.current_time() + wait_s(rest.failures, self._parts.config.retry_s)

    def _tell(self) -> None:
        """Wake the tasks that wait for a game."""
        self._changed.set()
        self._changed = trio.Event()

"""The practice ladder: endless games between the current versions of all teams and reference players.

Its games are stored as those of any competition.  Nothing else is: the next match is computed from them, so
that a server that was killed continues where it stopped, beginning with the missing return games.

There is no schedule, and so no ``Run`` as of a tournament: the next match is chosen when a CPU slot is free,
from the ratings, bots and settings of that moment.  The results are written and read as a tournament's.

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
from referee.playing import Job
from referee.sandbox.detection import SandboxError
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, Competitor
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.engines.base import EngineError
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.running.result_writer import ResultWriter, open_result_writer
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.checks.qualifying import limits_of
from tournaments.server.failures import wait_s
from tournaments.server.live_hub import WatchedEngine
from tournaments.server.metrics import PRACTICE
from tournaments.server.practice.contenders import enter_current, may_still_play, reason_to_rest
from tournaments.server.practice.matchmaking import Candidate, next_match
from tournaments.server.practice.practice_games import PracticeGame, PracticeHistory, opening_of
from tournaments.server.service_context import MeasuredStore, ServiceContext
from tournaments.server.slots import Kind

SLUG, TITLE = "practice", "Practice ladder"
POLL_S = 2.0
"""Seconds between checks for changed settings, quiet hours and withdrawn versions.

A version that qualifies wakes the ladder at once.
"""

OUR_FAILURES = (RefereeError, EngineError, SandboxError, SpecError, StoreError)


class Practice:
    """Runner of practice games."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._ladder: _Ladder | None = None

    async def run(self) -> None:
        """Play practice games until cancelled.  After a failure, it can be run again."""
        while True:
            competition = await trio.to_thread.run_sync(self._current)
            with ExitStack() as stack:
                place = self._context.database.competition(competition.slug)
                store = await trio.to_thread.run_sync(MeasuredStore, place, self._context.metrics)
                stack.enter_context(store)
                history = PracticeHistory.from_games(await trio.to_thread.run_sync(store.games))
                self._ladder = _Ladder(self._context, competition, store, history)
                await self._ladder.run()

    def wake(self) -> None:
        """Check for changes at once: a bot may have joined or left."""
        if self._ladder is not None:
            self._ladder.wake()

    @property
    def resting(self) -> str:
        """Reason why no game can begin now; empty if games can begin."""
        return self._ladder.resting if self._ladder is not None else "practice has not begun"

    @property
    def bots_in_use(self) -> set[str]:
        """Names of the bots that play, or are about to."""
        return self._ladder.bots_in_use if self._ladder is not None else set()

    def _current(self) -> Competition:
        """Return the ladder of the course's game, creating it if needed."""
        competitions = self._context.course.competitions
        now, game = self._context.now(), self._context.course.settings.load().game
        with self._context.course.transaction():
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
class _Backoff:
    """Pause of a bot whose games could not be played because of the server."""

    failures: int = 0
    until: float = 0.0


class _Ladder:
    """One practice competition, as long as its game is the course's."""

    def __init__(
        self, context: ServiceContext, competition: Competition, store: Store, history: PracticeHistory
    ) -> None:
        self._context, self._competition, self._store = context, competition, store
        self._game: str = competition.spec["game"]
        self._tally = history.tally
        self._number = history.next_number
        self._return_games = deque(history.return_games)
        self._engine = WatchedEngine(
            context.engine, context.hub, competition.slug, on_ended=context.count_games(PRACTICE)
        )
        self._competitors: dict[str, Competitor] = {}
        self._players: dict[str, Player] = {}
        self._making: set[str] = set()
        self._backoffs: dict[str, _Backoff] = {}
        self._under_way: list[tuple[str, str]] = []
        self._settings = Settings()
        self._next_repeat_at = float("-inf")
        self._changed = trio.Event()
        self._woken = trio.Event()
        self._pause_reason = "practice has not begun"

    def wake(self) -> None:
        """Check for changes at once."""
        self._woken.set()
        self._woken = trio.Event()

    async def run(self) -> None:
        """Play until the course's game changes.  Raises StoreError."""
        async with (
            open_result_writer(self._store, None, self._on_stored) as writer,
            trio.open_nursery() as nursery,
        ):
            for _ in range(self._context.slots.total):
                nursery.start_soon(self._keep_playing, writer)
            woken = self._woken
            while await self._update(nursery):
                with trio.move_on_after(POLL_S):
                    await woken.wait()
                woken = self._woken
            nursery.cancel_scope.cancel()

    async def _update(self, nursery: trio.Nursery) -> bool:
        """Update the current bots and prepare new ones; return False if the course's game has changed."""
        settings, competition, competitors = await trio.to_thread.run_sync(self._load)
        if settings.game != self._game:
            return False
        self._settings = settings
        self._context.slots.limit(Kind.PRACTICE, settings.practice_places)
        self._pause_reason = reason_to_rest(competition, settings, self._context.now())
        self._competitors = {one.name: one for one in competitors}
        self._players = {name: one for name, one in self._players.items() if name in self._competitors}
        self._wake_players()
        for name, competitor in self._competitors.items():
            is_known = name in self._players or name in self._making
            if not self._pause_reason and not is_known and not self._is_resting(name):
                self._making.add(name)
                nursery.start_soon(self._prepare, competitor)
        return True

    async def _prepare(self, competitor: Competitor) -> None:
        """Prepare a new bot, while the others play."""
        try:
            player = await self._context.bots.player(competitor, self._game)
            if competitor.name in self._competitors:
                self._players[competitor.name] = player
                self._wake_players()
        except (CannotPlayError, StoreError) as error:
            self._postpone(str(error), competitor.name)
        finally:
            self._making.remove(competitor.name)

    @property
    def resting(self) -> str:
        """Reason why no game can begin now; empty if games can begin."""
        if not self._pause_reason and len(self._players) < 2:
            return "practice needs two bots that are ready to play"
        return self._pause_reason

    @property
    def bots_in_use(self) -> set[str]:
        """Names of the current bots, and of those with a game that is being played or completes a pair."""
        games = [*self._under_way, *(game.names for game in self._return_games)]
        return {*self._competitors, *self._players, *(name for names in games for name in names)}

    def _load(self) -> tuple[Settings, Competition, list[Competitor]]:
        course = self._context.course
        settings = course.settings.load()
        competition = course.competitions.get(self._competition.id) or self._competition
        return settings, competition, enter_current(course, competition, settings, self._context.now())

    async def _keep_playing(self, writer: ResultWriter[PracticeGame]) -> None:
        """Play one game after the other."""
        while True:
            changed = self._changed
            async with self._context.slots.taken(Kind.PRACTICE):
                game = self._next()
                if game is not None:
                    await self._play(game, writer)
                    continue
            with trio.move_on_after(POLL_S):
                await changed.wait()

    def _next(self) -> PracticeGame | None:
        """Return the next game; None if there is none."""
        if self.resting:
            return None
        for game in self._return_games:
            if not any(map(self._is_resting, game.names)):
                self._return_games.remove(game)
                return game
        resting = [name for name in self._players if self._is_resting(name)]
        field = [Candidate(name, "openings" in player.capabilities) for name, player in self._players.items()]
        match = next_match(field, self._tally, self._under_way, resting=resting)
        if match is None or (match.is_leisure and not self._is_repeat_due()):
            return None
        number, self._number = self._number, self._number + 1
        return PracticeGame(number, 1, match.first, match.second, "")

    def _is_repeat_due(self) -> bool:
        """Return whether it is time for a game that is hardly needed."""
        now = trio.current_time()
        if self._under_way or now < self._next_repeat_at:
            return False
        self._next_repeat_at = now + self._context.config.leisure_s
        return True

    async def _play(self, game: PracticeGame, writer: ResultWriter[PracticeGame]) -> None:
        """Play a game and store it; after a failure of the server, postpone the game and its bots."""
        self._under_way.append(game.names)
        try:
            players = await self._players_of(game)
            if players is None:
                return
            if game.leg == 1 and all("openings" in player.capabilities for player in players):
                opening = await trio.to_thread.run_sync(opening_of, self._game, game.number)
                game = replace(game, opening=opening)
            job = await self._job(game, players)
            await writer.write(game, (await self._engine.play(job)).in_round(1, game.pair))
        except CannotPlayError as error:
            self._postpone(str(error), error.name)
            self._requeue(game)
        except OUR_FAILURES as error:
            self._postpone(f"game {game.key}: {error}", *game.names)
            self._requeue(game)
        finally:
            self._under_way.remove(game.names)

    async def _job(self, game: PracticeGame, players: tuple[Player, Player]) -> Job:
        settings = self._settings
        sandbox = await self._context.bots.sandbox(settings.sandbox_mode)
        limits = limits_of(settings)
        return Job(game.key, self._game, players, settings.control(), limits, game.opening, sandbox)

    def _on_stored(self, game: PracticeGame, played: PackedGame) -> None:
        """Update the ladder with a stored game."""
        for name in game.names:
            self._backoffs.pop(name, None)
        self._tally.add(game.first, game.second, played.summary.winner)
        back = game.back()
        if back is not None:
            self._return_games.appendleft(back)
        self._wake_players()

    def _requeue(self, game: PracticeGame) -> None:
        """Requeue a game that was not played if it completes a pair; otherwise drop it."""
        if game.leg == 2:
            self._return_games.append(game)

    async def _players_of(self, game: PracticeGame) -> tuple[Player, Player] | None:
        """Return a game's players; None if one of them no longer plays.  Raises CannotPlayError, StoreError.

        A player of a return game may have been replaced by a newer version meanwhile; it still finishes its
        pair.
        """
        found = []
        for name in game.names:
            player = self._players.get(name)
            if player is None:
                competitor = await trio.to_thread.run_sync(self._competitor_of, name)
                if competitor is None:
                    return None
                player = await self._context.bots.player(competitor, self._game)
            found.append(player)
        return found[0], found[1]

    def _competitor_of(self, name: str) -> Competitor | None:
        course = self._context.course
        for competitor in course.competitions.competitors(self._competition.id):
            if competitor.name == name and may_still_play(course, competitor):
                return competitor
        return None

    def _is_resting(self, name: str) -> bool:
        rest = self._backoffs.get(name)
        return rest is not None and trio.current_time() < rest.until

    def _postpone(self, why: str, *names: str) -> None:
        self._context.failures.note("practice", why)
        for name in names:
            rest = self._backoffs.setdefault(name, _Backoff())
            rest.failures += 1
            rest.until = trio.current_time() + wait_s(rest.failures, self._context.config.retry_s)

    def _wake_players(self) -> None:
        """Wake the tasks that wait for a game."""
        self._changed.set()
        self._changed = trio.Event()

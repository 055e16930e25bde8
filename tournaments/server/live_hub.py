"""Live state of running games, for watchers, and the engine wrapper that reports them.

The hub has the newest state of each game and wakes the tasks that wait for a newer one.  Games never wait for
watchers: a slow watcher receives several changes at once.  The hub shows only reported events, the store does
not depend on it, and it is never the source of a result.
"""

import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import trio

from referee.errors import RefereeError
from referee.judge.results import GameRecord
from referee.live_feed import Snapshot
from referee.playing import Job
from tournaments.engines.base import Engine, EngineError, EngineWrapper, OnSnapshot, OnStart
from tournaments.results.game_summary import PackedGame

ENDED_STAYS_S = 60.0
"""Seconds for which a game can still be looked up after its end; pages that were just opened link to it."""
MOST_ENDED = 500
"""Maximum number of ended games that are kept; a hundred end in a second where bots answer at once."""
MOST_WATCHERS = 1_500
"""Maximum number of watchers in all; each is an open page."""
MOST_OF_GAME = 500
"""Maximum number of watchers of one game."""
LIST_INTERVAL_S = 2.0
"""Minimum seconds between two states of the list."""
GAME_INTERVAL_S = 0.2
"""Minimum seconds between two states of a game; faster moves are shown together."""


class TooManyWatchersError(Exception):
    """The maximum number of watchers is reached."""


@dataclass(frozen=True, slots=True)
class LiveGame:
    """A game in progress, as far as its events have been reported."""

    competition: str
    """Slug of the game's competition; the key is unique there."""
    key: str
    game: str
    """Spec text of the game."""
    first: str
    second: str
    """Names of the players."""
    opening: str
    """Text of the opening."""
    control: str
    """Time control in words."""
    started_at: datetime
    moves: tuple[str, ...] = ()
    charged_us: tuple[int, ...] = ()
    """Charged time of each move, in microseconds."""
    clocks_ms: tuple[int, int] | None = None
    """The players' clocks when the present turn began, in milliseconds; None before the first turn."""
    on_turn: int | None = None
    """Index of the player whose clock runs."""
    turn_at: datetime | None = None
    """Moment at which the turn was reported."""
    over: str | None = None
    """Sentence on how the game ended; None while it goes on."""
    host: str = ""
    """Cluster host that plays the game, for lecturers; empty if this machine does."""
    kept: bool | None = None
    """True if the game has a record; None until that is decided, a little after its verdict."""


@dataclass(frozen=True, slots=True)
class NowPlaying:
    """Content of the site's first page."""

    games: tuple[LiveGame, ...]
    """Games in progress, oldest first."""
    standings: int
    """Revision of the practice ladder's standings; it changes when they do."""


def ended_game(competition: str, record: GameRecord) -> LiveGame:
    """Return a game that is over, from its record; ``competition`` is a slug."""
    first, second = record.players
    return LiveGame(
        competition=competition,
        key=record.key,
        game=record.game,
        first=first.name,
        second=second.name,
        opening=record.opening,
        control=str(record.control),
        started_at=datetime.fromisoformat(record.started_at),
        moves=tuple(move.move for move in record.moves),
        charged_us=tuple(move.charged_us for move in record.moves),
        over=record.result.detail,
        kept=True,
    )


class Channel:
    """Event channel of one started game.  Events of a channel that was replaced in the hub are ignored."""

    def __init__(self, hub: "Hub", game: LiveGame) -> None:
        self._hub = hub
        self.game = game
        self.changed = trio.Event()
        """Event that is set, and replaced, at the next change."""
        self.watchers = 0
        self.ended_at: datetime | None = None

    def snapshot(self, snapshot: Snapshot) -> None:
        """Add a snapshot's moves; see ``Engine.play``."""
        game = self.game
        if game.kept is not None or snapshot.offset != len(game.moves):
            return  # a program of the same user may write to the feed's socket, too
        self._update(
            replace(
                game,
                moves=(*game.moves, *(move.text for move in snapshot.moves)),
                charged_us=(*game.charged_us, *(move.charged_us for move in snapshot.moves)),
                clocks_ms=snapshot.clocks_ms,
                on_turn=snapshot.on_turn,
                turn_at=self._hub.now(),
                over=snapshot.over,
            )
        )

    def ended(self, record: GameRecord) -> None:
        """End the game with its record."""
        self._end(
            replace(
                self.game,
                moves=tuple(move.move for move in record.moves),
                charged_us=tuple(move.charged_us for move in record.moves),
                on_turn=None,
                over=record.result.detail,
                kept=True,
            )
        )

    def failed(self, sentence: str) -> None:
        """End the game without a result."""
        self._end(replace(self.game, on_turn=None, over=sentence, kept=False))

    def _end(self, game: LiveGame) -> None:
        if self.game.kept is None:
            self.ended_at = self._hub.now()
            self._update(game)
            self._hub.publish_list()

    def _update(self, game: LiveGame) -> None:
        self.game = game
        self.changed.set()
        self.changed = trio.Event()


class Hub:
    """All running games, and those that have just ended."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self._channels: dict[tuple[str, str], Channel] = {}
        self._going: list[Channel] = []
        """Channels of running games, oldest first."""
        self.list_changed = trio.Event()
        """Event that is set, and replaced, at the next change of the list."""
        self._standings = 0
        self.watchers = 0
        """Number of watchers."""

    # Events

    def started(self, competition: str, job: Job, host: str = "") -> Channel:
        """Add a running game and return the channel for its events.  Replaces a game with the same key."""
        first, second = job.players
        channel = Channel(
            self,
            LiveGame(
                competition=competition,
                key=job.key,
                game=job.game,
                first=first.name,
                second=second.name,
                opening=job.opening,
                control=str(job.control),
                started_at=self.now(),
                host=host,
            ),
        )
        replaced = self._channels.pop((competition, job.key), None)
        self._channels[competition, job.key] = channel
        if replaced is not None:
            replaced.failed("The game was started again.")
        self.publish_list()
        return channel

    def standings_changed(self) -> None:
        """Announce new standings of the practice ladder."""
        self._standings += 1
        self.publish_list()

    def publish_list(self) -> None:
        """Wake the watchers of the list."""
        self._forget_old()
        self._going = [channel for channel in self._channels.values() if channel.ended_at is None]
        self.list_changed.set()
        self.list_changed = trio.Event()

    # Queries

    def playing(self) -> list[LiveGame]:
        """Return the running games, oldest first."""
        return [channel.game for channel in self._going]

    def games(self) -> list[LiveGame]:
        """Return the running games, and those that have just ended."""
        self._forget_old()
        return [channel.game for channel in self._channels.values()]

    def game(self, competition: str, key: str) -> LiveGame | None:
        """Return one game; it is also found for a little while after its end."""
        self._forget_old()
        channel = self._channels.get((competition, key))
        return None if channel is None else channel.game

    @contextmanager
    def watch_list(self) -> Iterator[AsyncIterator[NowPlaying]]:
        """Iterate over the list of running games: now, and after each change; never ends.

        Raises TooManyWatchersError.
        """
        with self._counted():
            yield _ListWatcher(self)

    @contextmanager
    def watch_game(self, competition: str, key: str) -> Iterator[AsyncIterator[LiveGame]]:
        """Iterate over the states of a game: now, and after each change, until the game ends.

        Raises KeyError if there is no such game, TooManyWatchersError.
        """
        channel = self._channels[competition, key]
        if channel.watchers >= MOST_OF_GAME:
            raise TooManyWatchersError
        with self._counted():
            channel.watchers += 1
            try:
                yield _GameWatcher(channel)
            finally:
                channel.watchers -= 1

    def has_room(self, game: LiveGame) -> bool:
        """Return True if one more watcher of this game is possible."""
        channel = self._channels.get((game.competition, game.key))
        return self.watchers < MOST_WATCHERS and (channel is None or channel.watchers < MOST_OF_GAME)

    def now_playing(self) -> NowPlaying:
        """Return the current state for ``watch_list``."""
        return NowPlaying(tuple(self.playing()), self._standings)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self.watchers >= MOST_WATCHERS:
            raise TooManyWatchersError
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1

    def _forget_old(self) -> None:
        ended = [(at, key) for key, one in self._channels.items() if (at := one.ended_at) is not None]
        limit = self.now() - timedelta(seconds=ENDED_STAYS_S)
        surplus = len(ended) - MOST_ENDED
        for index, (at, key) in enumerate(sorted(ended)):
            if at > limit and index >= surplus:
                break
            del self._channels[key]


class _ListWatcher:
    """Iterator over the newest list, at most once every ``LIST_INTERVAL_S``."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._last: NowPlaying | None = None
        self._due = 0.0

    def __aiter__(self) -> AsyncIterator[NowPlaying]:
        return self

    async def __anext__(self) -> NowPlaying:
        await trio.sleep_until(self._due)
        while self._is_unchanged(news := self._hub.now_playing()):
            await self._hub.list_changed.wait()
        self._last = news
        self._due = trio.current_time() + LIST_INTERVAL_S
        return news

    def _is_unchanged(self, news: NowPlaying) -> bool:
        """Return True if games and standings are those of the last list; moves do not matter here."""
        last = self._last
        return (
            last is not None
            and last.standings == news.standings
            and [(game.competition, game.key, game.started_at) for game in last.games]
            == [(game.competition, game.key, game.started_at) for game in news.games]
        )


class _GameWatcher:
    """Iterator over the newest states of one game, at most one every ``GAME_INTERVAL_S``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._last: LiveGame | None = None
        self._due = 0.0

    def __aiter__(self) -> AsyncIterator[LiveGame]:
        return self

    async def __anext__(self) -> LiveGame:
        if self._last is not None and self._last.kept is not None:
            raise StopAsyncIteration
        await trio.sleep_until(self._due)
        while self._channel.game is self._last:
            await self._channel.changed.wait()
        self._last = self._channel.game
        self._due = trio.current_time() + GAME_INTERVAL_S
        return self._last


GIVEN_UP = "The game was stopped, and has no result."


class WatchedEngine(EngineWrapper):
    """Engine of one competition that plays with another engine and reports the games to the hub."""

    def __init__(
        self,
        engine: Engine,
        hub: Hub,
        competition: str,
        most_followed: float = math.inf,
        on_ended: Callable[[PackedGame | None], None] = lambda _game: None,
    ) -> None:
        """``competition`` is a slug; moves are reported of at most ``most_followed`` games at a time.

        ``on_ended`` is called with each game, and with None if the host could not play it.
        """
        super().__init__(engine)
        self._on_ended = on_ended
        self._hub = hub
        self._competition = competition
        self._may_follow = most_followed

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Play one game; see ``Engine.play``.  Raises RefereeError, EngineError."""
        channel: Channel | None = None

        def started(host: str) -> None:
            nonlocal channel
            channel = self._hub.started(self._competition, job, host)
            if on_start is not None:
                on_start(host)

        def forward(snapshot: Snapshot) -> None:
            if channel is not None:
                channel.snapshot(snapshot)
            if on_snapshot is not None:
                on_snapshot(snapshot)

        is_followed = self._may_follow > 0
        self._may_follow -= is_followed
        try:
            game = await super().play(job, started, forward if is_followed or on_snapshot else None)
            if channel is not None:
                channel.ended(game.record)
            self._on_ended(game)
            return game
        except (RefereeError, EngineError):
            self._on_ended(None)
            raise
        finally:
            self._may_follow += is_followed
            if channel is not None:
                channel.failed(GIVEN_UP)  # ignored if the channel has a result

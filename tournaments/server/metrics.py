"""Metrics of a server for Prometheus: counters of events, and gauges read from the service at each scrape.

Labels have few values: no metric names a bot, a team, a competition or a game.  docs/operations.md lists the
metrics, whose names are an interface.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from tournaments.results.game_summary import GameSummary
from tournaments.server.status import Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of Prometheus' text format."""
LATENCIES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
"""Upper bounds of the buckets of a transaction's time: 1 ms on an idle disk, seconds on a failing one."""
PRACTICE, TOURNAMENT, CASUAL = "practice", "tournament", "casual"
"""Kinds of games between bots; challenges are CASUAL, as in ``Kind``."""


class PlayEnd(StrEnum):
    """Ends of a game of a person."""

    RULES = "rules"
    """The rules ended the game."""
    RESIGNED = "resigned"
    FAULT = "fault"
    """The referee ended the game, by a fault of the bot."""
    ABANDONED = "abandoned"


class CheckEnd(StrEnum):
    """Ends of a check of a version."""

    QUALIFIED = "qualified"
    FAILED = "failed"
    """The bot has not qualified."""
    STUCK = "stuck"
    """No more checks are tried, because each of them failed on this host."""
    HOST = "host"
    """The check failed because of the host; it is tried again."""


class Metrics:
    """Metrics of one service.  Counters can be increased by any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._games = self._counter(
            "games", "Games with a result, by competition and reason.", "kind", "reason"
        )
        self._moves = self._counter("moves", "Moves of these games.", "kind")
        self._charged = self._counter("charged_seconds", "Time charged to bots for their moves.", "kind")
        self._wall = self._counter("wall_seconds", "Wall time of the same moves.", "kind")
        self._faults = self._counter(
            "host_faults", "Attempts at games that failed because of the host, and count for nobody.", "kind"
        )
        self._plays = self._counter("play_games", "Games of people that are over, by their end.", "end")
        self._checks = self._counter("checks", "Checks of versions that are over, by their end.", "end")
        self._failures = self._counter("failures", "Failures of the server, as the dashboard lists them.")
        self._stored = Histogram(
            "kalarena_store_seconds",
            "Time of a transaction that stores games.",
            buckets=LATENCIES_S,
            registry=self._registry,
        )
        # From the beginning, since rates need a first value.
        for kind in (PRACTICE, TOURNAMENT, CASUAL):
            for counter in (self._moves, self._charged, self._wall, self._faults):
                counter.labels(kind)
        for play_end in PlayEnd:
            self._plays.labels(play_end.value)
        for check_end in CheckEnd:
            self._checks.labels(check_end.value)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"kalarena_{name}", about, labels, registry=self._registry)

    def game_ended(self, kind: str, game: GameSummary) -> None:
        """Count a game with its result; ``kind`` is PRACTICE, TOURNAMENT or CASUAL."""
        self._games.labels(kind, game.reason.value).inc()
        self._moves.labels(kind).inc(sum(game.moves))
        self._charged.labels(kind).inc(sum(game.charged_us) / 1e6)
        self._wall.labels(kind).inc(sum(game.wall_us) / 1e6)

    def host_failed(self, kind: str) -> None:
        """Count an attempt at a game that failed because of the host."""
        self._faults.labels(kind).inc()

    def play_ended(self, end: PlayEnd, games: int = 1) -> None:
        """Count games of people that are over."""
        self._plays.labels(end.value).inc(games)

    def check_ended(self, end: CheckEnd) -> None:
        """Count a check that is over."""
        self._checks.labels(end.value).inc()

    def failed(self) -> None:
        """Count a failure of the server."""
        self._failures.inc()

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Measure a transaction that stores games."""
        began = perf_counter()
        try:
            yield
        finally:
            self._stored.observe(perf_counter() - began)

    def watch(self, status: Callable[[], Status]) -> None:
        """Read gauges of the service's status at each scrape."""
        self._registry.register(_Gauges(status))

    def watch_streams(self, number: Callable[[], int]) -> None:
        """Read the number of open event streams at each scrape."""
        about = "Browsers that follow a page's events."
        Gauge("kalarena_event_streams", about, registry=self._registry).set_function(number)

    def page(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Gauges:
    """Collector of the current values of a service."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def describe(self) -> Iterable[Metric]:
        """Return nothing: no value is needed to register this collector."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges."""
        status = self._status()
        yield gauge("slots", "Games and checks that this machine can run at a time.", status.slots)
        taken = labelled("slots_taken", "Slots in use, by kind.", "kind")
        waiting = labelled("slots_waiting", "Games and checks that wait for a slot, by kind.", "kind")
        for kind, use in status.uses.items():
            taken.add_metric([kind.value], use.taken)
            waiting.add_metric([kind.value], use.waiting)
        yield from (taken, waiting)
        yield gauge(
            "checks_queued", "Versions that wait for their check or are being checked.", status.unchecked
        )
        yield gauge("check_workers", "Processes that check a version now.", status.checking)
        playing = labelled("games_playing", "Games that are being played, by location.", "place")
        elsewhere = sum(bool(game.host) for game in status.playing)
        playing.add_metric(["server"], len(status.playing) - elsewhere)
        playing.add_metric(["cluster"], elsewhere)
        yield playing
        yield gauge("practice_resting", "1 while no practice game can begin.", bool(status.resting))
        if status.cluster is not None:
            yield gauge("cluster_workers", "Connected hosts of the cluster.", len(status.cluster.hosts))
            yield gauge("cluster_slots", "Games that the cluster plays at a time.", status.cluster.slots)
        if status.load is not None:
            yield gauge("load1", "Runnable processes, average of a minute.", status.load[0])
        yield gauge("cores", "Cores that the server may use.", status.cores)


def gauge(name: str, about: str, value: float) -> Metric:
    """Return a gauge with one value."""
    return GaugeMetricFamily(f"kalarena_{name}", about, value=value)


def labelled(name: str, about: str, label: str) -> Any:
    """Return a gauge with one label, without values."""
    return GaugeMetricFamily(f"kalarena_{name}", about, labels=[label])

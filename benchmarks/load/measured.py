"""Measurements of the load: times by kind of page, errors, streams, and this process's own delay."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import trio

from benchmarks.load.client import Answer, Browser

TICK_S = 0.02
"""Interval of the measurements of this process's own delay, in seconds."""


@dataclass
class Times:
    """Durations of one kind of request."""

    seconds: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Return the nearest-rank percentile in seconds; ``share`` is between 0 and 1."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan

    def to_json(self) -> dict[str, float]:
        """Return the number of requests and percentiles in milliseconds."""
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        in_ms = {name: round(1000 * self.quantile(share), 1) for name, share in shares.items()}
        return {"number": len(self.seconds), **in_ms}


@dataclass
class Measured:
    """All measurements of a run."""

    counts: bool = False
    """True during the measured period."""
    pages: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    """Kind of page -> durations in the measured period."""
    others: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    """Durations of other requests, and of pages outside of the measured period."""
    errors: Counter[str] = field(default_factory=Counter)
    """Number of failed requests by kind and status."""
    streams: Counter[str] = field(default_factory=Counter)
    """Number of events and irregularities of streams, by kind."""
    late: Times = field(default_factory=Times)
    """Delays with which this process was woken."""

    async def page(self, browser: Browser, kind: str, path: str) -> Answer:
        """Load a page, and add its duration."""
        began = trio.current_time()
        answer = await browser.get(path)
        self.note(self.pages if self.counts else self.others, kind, began, answer)
        return answer

    def other(self, kind: str, began: float, answer: Answer) -> None:
        """Add the duration of a request that is not a page."""
        self.note(self.others, kind, began, answer)

    def note(self, times: dict[str, Times], kind: str, began: float, answer: Answer) -> None:
        """Add the duration of a request that began at this time, and count it if it failed."""
        times[kind].seconds.append(trio.current_time() - began)
        if not 200 <= answer.status < 400:
            self.errors[f"{kind}: {answer.status or 'no answer'}"] += 1

    @property
    def all_pages(self) -> Times:
        """Durations of all kinds of pages together."""
        return Times([one for times in self.pages.values() for one in times.seconds])

    async def watch_own_delay(self) -> None:
        """Measure the delay with which this process is woken, until cancelled."""
        while True:
            due = trio.current_time() + TICK_S
            await trio.sleep_until(due)
            if self.counts:
                self.late.seconds.append(trio.current_time() - due)

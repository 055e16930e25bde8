"""What was measured: times by kind of page, errors, streams, and how late this process itself was."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import trio

from benchmarks.load.client import Answer, Browser

TICK_S = 0.02
"""So often this process looks how late it is woken."""


@dataclass
class Times:
    """How long one kind of thing took."""

    seconds: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """The least time that so large a share took at most."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan

    def to_json(self) -> dict[str, float]:
        """In milliseconds."""
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        in_ms = {name: round(1000 * self.quantile(share), 1) for name, share in shares.items()}
        return {"number": len(self.seconds), **in_ms}


@dataclass
class Measured:
    """Everything, while it is going on."""

    counts: bool = False
    """Whether the time that counts has begun, and has not ended."""
    pages: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    """By kind."""
    others: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    """What is not a page, or was asked for before the time that counts."""
    errors: Counter[str] = field(default_factory=Counter)
    """By kind and status."""
    streams: Counter[str] = field(default_factory=Counter)
    """What came of streams of events."""
    late: Times = field(default_factory=Times)
    """How late this process was woken."""

    async def page(self, browser: Browser, kind: str, path: str) -> Answer:
        """Load a page, and note how long that took."""
        began = trio.current_time()
        answer = await browser.get(path)
        self.note(self.pages if self.counts else self.others, kind, began, answer)
        return answer

    def other(self, kind: str, began: float, answer: Answer) -> None:
        """Note how long something took that is not a page."""
        self.note(self.others, kind, began, answer)

    def note(self, times: dict[str, Times], kind: str, began: float, answer: Answer) -> None:
        """Note how long an answer took that was asked for at this time, and whether it is an error."""
        times[kind].seconds.append(trio.current_time() - began)
        if not 200 <= answer.status < 400:
            self.errors[f"{kind}: {answer.status or 'no answer'}"] += 1

    @property
    def all_pages(self) -> Times:
        """All kinds together."""
        return Times([one for times in self.pages.values() for one in times.seconds])

    async def watch_own_delay(self) -> None:
        """Note how late this process is woken, for ever."""
        while True:
            due = trio.current_time() + TICK_S
            await trio.sleep_until(due)
            if self.counts:
                self.late.seconds.append(trio.current_time() - due)

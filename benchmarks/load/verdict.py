"""Verdict on a server under load, as lines for people and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.load.audit import Games, Uploads
from benchmarks.load.charges import Charges, median_ratio
from benchmarks.load.measured import Times
from benchmarks.load.running import Run

PAGE_P99_S = 0.3
END_S = 2.0
CHARGED_RATIO = 1.05
"""Maximum ratio of charged times of moves with people and without people; the same for its inverse."""


@dataclass(frozen=True)
class Verdict:
    """Results of a load, compared with the targets."""

    run: Run
    uploads: Uploads
    games: Mapping[str, Games]
    casual_lost: list[str]
    """Casual games with lost moves, as sentences."""
    charges: Sequence[Charges]
    """Charged times of the tournament's bots with and without people who play."""

    @property
    def lost(self) -> list[str]:
        """Lost data and wrong games, as sentences: there must be none."""
        return [
            *self.uploads.lost,
            *self.casual_lost,
            *(text for games in self.games.values() for text in (*games.wrong, *games.by_time)),
        ]

    @property
    def missed(self) -> list[str]:
        """Targets that were missed, as sentences."""
        p99, end_s = self.run.measured.all_pages.quantile(0.99), self.run.end_s
        missed = []
        if not p99 < PAGE_P99_S:
            missed.append(f"p99 of pages is {1000 * p99:.0f} ms, not less than {1000 * PAGE_P99_S:.0f} ms")
        if not end_s < END_S:
            missed.append(f"the server took {end_s:.1f} s to end, not less than {END_S:g} s")
        ratio = median_ratio(self.charges)
        if ratio is not None and not 1 / CHARGED_RATIO <= ratio <= CHARGED_RATIO:
            missed.append(f"moves beside people are charged {ratio:.3f} times as much as without people")
        if self.run.measured.errors:
            missed.append(f"{self.run.measured.errors.total()} requests failed")
        missed += [f"failed on the server's side: {failure}" for failure in self.run.failures]
        return missed

    def to_json(self) -> dict[str, Any]:
        """Return all figures; times are in milliseconds unless their names end in another unit."""
        run, measured = self.run, self.run.measured
        return {
            "pages": {
                "all": measured.all_pages.to_json(),
                **{kind: times.to_json() for kind, times in sorted(measured.pages.items())},
            },
            "others": {kind: times.to_json() for kind, times in sorted(measured.others.items())},
            "errors": dict(measured.errors),
            "streams": dict(measured.streams),
            "uploads": {"acknowledged": len(run.acknowledged), **self.uploads.states},
            "games": {
                slug: {
                    "kept": games.kept,
                    "total": games.total,
                    "lost_by_time": len(games.by_time),
                    "other_faults": games.other_faults,
                }
                for slug, games in self.games.items()
            },
            "casual_games": len(run.casual),
            "casual_moves": sum(len(game.moves) for game in run.casual),
            "charged": [asdict(one) for one in self.charges],
            "charged_ratio": median_ratio(self.charges),
            "end_s": round(run.end_s, 2),
            "connected": run.connected,
            "server_cores": round(run.server_cores, 2),
            "server_memory_mb": round(run.server_memory_mb),
            "client_cores": round(run.client_cores, 2),
            "client_delay": measured.late.to_json(),
            "load_average": [round(run.load_before, 1), round(run.load_after, 1)],
            "lost": self.lost,
            "missed": self.missed,
        }

    def lines(self) -> list[str]:
        """Return the verdict for people."""
        run, measured = self.run, self.run.measured
        lines = [f"{'':<24}{'number':>8}{'p50':>8}{'p99':>8}{'max':>8}  ms"]
        lines += [_line("all pages", measured.all_pages)]
        lines += [_line(f"  {kind}", times) for kind, times in sorted(measured.pages.items())]
        lines += ["beside these, and before the load"]
        lines += [_line(f"  {kind}", times) for kind, times in sorted(measured.others.items())]
        lines += [_line("delay of this client", measured.late)]
        lines += ["", f"errors: {_counted(measured.errors)}", f"streams: {_counted(measured.streams)}"]
        lines += [f"uploads acknowledged: {len(run.acknowledged)}; {_counted(self.uploads.states)}"]
        for slug, games in self.games.items():
            total = "" if games.total is None else f" of {games.total}"
            lines += [f"games of {slug}: {games.kept}{total}; {len(games.by_time)} lost by time"]
            lines += [f"  {text}" for text in games.other_faults]
        moves = sum(len(game.moves) for game in run.casual)
        lines += [f"casual games of people: {len(run.casual)}, with {moves} moves"]
        lines += [
            f"charged to {one.bot}: {one.mean_us[0] / 1000:.2f} ms a move without people, "
            f"{one.mean_us[1] / 1000:.2f} ms beside them ({one.moves[0]} and {one.moves[1]} moves)"
            for one in self.charges
        ]
        ratio = median_ratio(self.charges)
        lines += [] if ratio is None else [f"median ratio of the charged times: {ratio:.3f}"]
        lines += [f"failures on the server's side: {len(run.failures)}"]
        lines += [f"the server's end, with {run.connected} connections: {run.end_s:.2f} s"]
        lines += [
            f"the server's own process: {run.server_cores:.2f} cores, {run.server_memory_mb:.0f} MB; "
            f"this client: {run.client_cores:.2f} cores; load average {run.load_before:.1f} before, "
            f"{run.load_after:.1f} after"
        ]
        lines += ["", *(f"LOST: {text}" for text in self.lost), *(f"missed: {text}" for text in self.missed)]
        lines += [] if self.lost or self.missed else ["All targets were reached."]
        return lines


def _line(name: str, times: Times) -> str:
    shown = times.to_json()
    return f"{name:<24}{shown['number']:>8.0f}{shown['p50']:>8.0f}{shown['p99']:>8.0f}{shown['max']:>8.0f}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "none"

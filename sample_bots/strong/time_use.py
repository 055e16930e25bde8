"""How long to think about a move, under every time control.  Pure: times are arguments, in seconds.

Theory of operation.  A player knows its limits from the announced time control, and what is left of the
game's limit from TIME lines; where it gets none, it counts what it has used itself.  Of a limit per move
nearly all is used; of a limit per game a share, by how many moves are still to be expected.  A reserve is
kept for what is between the end of a search and the referee's stamp.
"""

from dataclasses import dataclass, replace

from protocol.announced import AnnouncedTime

RESERVE_S = 0.02
"""Kept back of each limit, if the limit allows: the search stops within 5 ms of its budget, and the reply's
way to the referee takes some milliseconds on a busy machine.  The margin, 50 ms by default, is never counted
on."""
LEAST_SHARE = 0.5
"""Of a limit that is shorter than four reserves at least this share is used."""
UNKNOWN_S = 0.5
"""Time for a move where nobody tells of any limit, as the course's own engine does not: 60 moves of a long
game of Kalah take 30 s, well below that course's limits."""
FEWEST_MOVES = 8
"""A game's time is never divided by less: an estimate of the moves to come may be wrong."""
MOVE_COST_S = 0.002
"""Kept back for each move that may still come, since it costs something beyond its search: 0.2 to 1.6 ms at
the median on a busy machine."""
LONGEST_GAME = 300
"""Own moves for which that is kept: the house's cap at Kalamala allows so many, and no game of Kalah on the
usual boards comes near it."""
MOVE_COST_SHARE = 0.5
"""No more than this share of a short game's time is kept so."""
LARGEST_SHARE = 0.2
"""Of what is left of the game's time one move never takes more."""


@dataclass(frozen=True)
class TimeUse:
    """What a player knows of its time."""

    announced: AnnouncedTime
    left_s: float | None = None
    """What is left of the game's limit; None if there is none, or none is known."""
    whole_s: float | None = None
    """What there was of it when we first knew of it."""
    moves: int = 0
    """Own moves made."""

    @classmethod
    def of(cls, announced: AnnouncedTime) -> "TimeUse":
        """At the beginning of a game."""
        whole_s = None if announced.game_ms is None else announced.game_ms / 1000
        return cls(announced, whole_s, whole_s)

    def told(self, own_ms: int) -> "TimeUse":
        """After a TIME line, which tells what is left of the game's limit; without one, the limit per move.

        Where nobody announced which of them there is, it is taken for the former, which is the more careful.
        """
        if self.announced.game_ms is None and self.announced.move_ms is not None:
            return self
        left_s = own_ms / 1000
        return replace(self, left_s=left_s, whole_s=left_s if self.whole_s is None else self.whole_s)

    def used(self, seconds: float) -> "TimeUse":
        """After a move that took so long."""
        after = replace(self, moves=self.moves + 1)
        if self.left_s is None:
            return after
        return replace(after, left_s=max(0.0, self.left_s - seconds) + self.announced.increment_ms / 1000)

    def for_move(self, moves_to_come: float) -> float:
        """Seconds to think about the next move, when so many of our own are expected to come, this one
        included."""
        move_ms, increment = self.announced.move_ms, self.announced.increment_ms / 1000
        bounds = []
        if move_ms is not None:
            bounds.append(_within(move_ms / 1000))
        if self.left_s is not None:
            usable = _within(self.left_s)
            usable = max(0.0, usable - self._kept())
            share = usable / max(FEWEST_MOVES, moves_to_come) + increment * LEAST_SHARE
            bounds.append(min(share, usable * LARGEST_SHARE + increment * LEAST_SHARE, usable))
        return min(bounds) if bounds else UNKNOWN_S

    def _kept(self) -> float:
        """What is kept of the game's time for what moves cost beyond their search."""
        assert self.whole_s is not None
        cost_s = min(MOVE_COST_S, self.whole_s * MOVE_COST_SHARE / LONGEST_GAME)
        return cost_s * max(0, LONGEST_GAME - self.moves)


def _within(limit_s: float) -> float:
    """What of a limit may be used."""
    return (
        max(limit_s - 2 * RESERVE_S, limit_s * LEAST_SHARE)
        if limit_s < 4 * RESERVE_S
        else limit_s - RESERVE_S * 2
    )

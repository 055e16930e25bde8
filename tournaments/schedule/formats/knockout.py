"""Knockout: the loser of a match is eliminated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tournaments.schedule.formats.bracket import Bracket, MatchRules, Outcome
from tournaments.schedule.formats.rounds import drawn_lots
from tournaments.schedule.pairing import Entrant, History, Pairing, Schedule

DECIDED_BY = {
    "points": "",
    "margin": ": the final was level on points, and the sum of its margins decided",
    "seed": ": the final was level in everything, and the better seed wins",
    "walkover": ": it had no opponent at the end of the final",
}
"""Criterion that decided a final -> words that the conclusion adds."""


@dataclass(frozen=True)
class Knockout(Schedule):
    """A seeded bracket; the best seeds have a bye when the number of bots is no power of two.

    A match is some pairs of games and is decided by points.  If it is level, up to ``extra_pairs`` follow one
    after another until one bot leads.  If it is still level: the sum of the games' margins, then the better
    seed.  A void game gives no points.  Each pair of games of a round has another opening.

    A bot that withdraws loses the match that it is in, unless that was already played to its end, or else its
    next one.  If both withdraw, neither advances.  A round is paired when all matches of the round before
    are decided.  Bots that join later than in the first round cannot enter: they are never paired.

    Raises ValueError for invalid parameters.
    """

    entrants: Sequence[Entrant]
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""
    pairs: int = 1
    """Pairs of games of every match."""
    extra_pairs: int = 2
    third_place: bool = True
    """True if the losers of the semi-finals play for the third place, in the final's round."""
    seeding: Literal["order", "random"] = "order"
    """``order``: the first entrant is the best seed; ``random``: drawn from ``seed``."""

    def __post_init__(self) -> None:
        if self.seeding not in ("order", "random"):
            raise ValueError(f"no seeding {self.seeding!r}; there are order, random")
        MatchRules(self.pairs, self.extra_pairs)

    @property
    def bracket(self) -> Bracket:
        """The bracket with its seeds."""
        seeds = [number for number, entrant in enumerate(self.entrants) if entrant.since <= 1]
        if self.seeding == "random":
            seeds.sort(key=drawn_lots(len(self.entrants), f"{self.seed}/seeding").__getitem__)
        rules = MatchRules(self.pairs, self.extra_pairs)
        return Bracket(seeds, self.entrants, rules, self.third_place, width=self.width)

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games by round, including those that a withdrawal left unplayed."""
        return self.bracket.pairings(history)

    def total(self, history: History) -> int:
        """Return the number of games played or due, and of the regular games of the later matches."""
        return self.bracket.total(history)

    def places(self, history: History) -> dict[int, int]:
        """Return the decided places, see ``Bracket.places``."""
        return self.bracket.places(history)

    def standing_order(self, history: History) -> dict[int, int]:
        """Return the places, and the order of bots that are still in, see ``Bracket.standing_order``."""
        return self.bracket.standing_order(history)

    def conclusion(self, history: History) -> str:
        """Return the sentence on the winner, with its number in braces: ``{3} wins the knockout``."""
        return final_sentence(self.bracket.final(history), "the knockout")


def final_sentence(final: Outcome | None, stage: str) -> str:
    """Return the sentence on a final, with the winner's number in braces; empty if it is open."""
    if final is None:
        return ""
    if final.winner is None:
        return f"nobody wins {stage}: those who could have withdrew"
    return f"{{{final.winner}}} wins {stage}{DECIDED_BY[final.by] if final.losers else ''}"

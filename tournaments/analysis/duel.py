"""Report on a duel between the new and the old version of a bot (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tournaments.analysis.comparison import Comparison, compare, percent
from tournaments.results.game_summary import GameSummary
from tournaments.schedule.formats.sprt import Sprt, Verdict, stronger_than
from tournaments.schedule.pairing import History

Decision = Literal["stronger", "no improvement", "weaker", "undecided", "unfinished"]
"""Result for the new version.

It is stronger (with a test: H1 was accepted); it is not stronger by the requested difference (H0 was
accepted); it is weaker (never the result of a test); it is undecided; or games are missing.
"""


@dataclass(frozen=True)
class Duel:
    """Result of a duel."""

    comparison: Comparison
    """Comparison of the new version, ``one``, with the old version, ``other``."""
    test: Sprt | None
    """Sequential test; None for a fixed number of games."""
    verdict: Verdict | None
    """Current verdict of the test; None without a test."""
    finished: bool
    """True if no game is missing."""
    neither_started: bool = False
    """True if neither bot could be started in any game: such games are draws, and the test counts them."""

    @property
    def games(self) -> int:
        """Number of games that count."""
        found = self.comparison
        return found.wins + found.draws + found.losses

    @property
    def decision(self) -> Decision:
        """Result for the new version."""
        if self.neither_started:
            return "undecided" if self.finished else "unfinished"
        if self.verdict is not None and self.verdict.accepted is not None:
            return "stronger" if self.verdict.accepted else "no improvement"
        if not self.finished:
            return "unfinished"
        difference = self.comparison.difference
        if self.test is not None or difference is None:
            return "undecided"
        return "stronger" if difference.low > 0 else "weaker" if difference.high < 0 else "undecided"

    def headline(self) -> str:
        """Return the result in one sentence."""
        new, old = self.comparison.one, self.comparison.other
        if self.neither_started:
            return f"Neither {new} nor {old} could be started, so there is no result."
        if self.test is None:
            match self.decision:
                case "unfinished":
                    return f"{new} against {old}: not all games are played yet."
                case "undecided":
                    return f"{self.games} games do not show whether {new} or {old} is the stronger one."
                case decision:
                    return f"{new} is {decision} than {old}."
        match self.decision:
            case "unfinished":
                return f"Not yet decided after {self.games} games."
            case "stronger":
                return f"{new} is {stronger_than(self.test.elo0, 'more').format(new, old)}."
            case "no improvement" if self.test.elo1 > 0:
                return f"No improvement of {self.test.elo1:g} Elo was found."
            case "no improvement":
                return f"{new} is {stronger_than(self.test.elo1, 'less').format(new, old)}."
        return f"Undecided after {self.games} games."

    def meaning(self) -> list[str]:
        """Return the meaning and the limits of the headline, in sentences."""
        if self.neither_started:
            return [
                "A game in which neither bot can be started is a draw, and no evidence: correct the faults, "
                "and play the duel in another directory."
            ]
        if self.test is None:
            return self._meaning_of_games()
        return self._meaning_of_test(self.test)

    def _meaning_of_games(self) -> list[str]:
        if self.decision in ("stronger", "weaker"):
            return [
                "Of duels between equal bots about 5 % end with one or the other taken for the stronger one."
            ]
        if self.decision == "undecided" and self.comparison.difference is not None:
            low, high = self.comparison.difference.low, self.comparison.difference.high
            return [
                f"These games fit any difference from {low:+z.0f} to {high:+z.0f} Elo; more different games "
                "narrow this range."
            ]
        return []

    def _meaning_of_test(self, test: Sprt) -> list[str]:
        new, old = self.comparison.one, self.comparison.other
        match self.decision:
            case "stronger":
                return [
                    f"If the difference were {test.elo0:g} Elo, about {100 * test.alpha:.3g} % of such "
                    "duels would end so.",
                    "Use the answer, not the Elo: a test stops at a favourable moment, so its estimate is "
                    "too far from 0 on average.",
                ]
            case "no improvement":
                return [
                    f"{new} is taken to be {stronger_than(test.elo1, 'less').format(new, old)}: if the "
                    f"difference were {test.elo1:g} Elo, about {100 * test.beta:.3g} % of such duels would "
                    "end so.",
                    self._how_weak(),
                ]
            case "undecided" if self.verdict is not None and self.verdict.stopped == "repeated":
                return [
                    f"The bots only repeat themselves: of {self.verdict.pairs} pairs of games "
                    f"{self.verdict.unique} are different, and copies are no evidence. More openings "
                    "would help."
                ]
            case "undecided" if self.verdict is not None and self.verdict.stopped == "limit":
                return [
                    f"The limit, --max-games {test.max_games}, is reached: the same command with this --out "
                    "and a higher --max-games continues."
                ]
        return []

    def _how_weak(self) -> str:
        difference = self.comparison.difference
        if difference is not None and difference.high < 0:
            return "It looks weaker, even: the whole interval lies below 0."
        return "It may still be a little stronger, as strong, or weaker: the interval is a rough one."

    def figures(self) -> list[str]:
        """Return lines with score, pairs, Elo and likelihood of superiority; with a test, also its state."""
        found = self.comparison
        if not self.games:
            return ["no game was played that counts"]
        score = 100 * (found.wins + found.draws / 2) / self.games
        lines = [
            f"won {found.wins}, drawn {found.draws}, lost {found.losses}: {score:.1f} % of {self.games} "
            f"games, {found.unique} of them different",
        ]
        if pairs := found.pairs_text():
            lines.append(pairs)
        if found.difference is not None:
            value, low, high = found.difference
            lines.append(
                f"Elo {value:+z.0f}, 95 % interval {low:+z.0f} to {high:+z.0f}; likelihood of superiority "
                f"{percent(found.match.superiority)}"
            )
        if self.test is not None and self.verdict is not None:
            lines.append(
                f"LLR {self.verdict.ratio:z.2f} after {2 * self.verdict.pairs} games, bounds "
                f"{self.verdict.lower:.2f} and {self.verdict.upper:.2f} ({self.test.elo0:g} against "
                f"{self.test.elo1:g} Elo, alpha {self.test.alpha:g}, beta {self.test.beta:g})"
            )
        return lines

    def live(self) -> str:
        """Return the current state, in short."""
        found = self.comparison
        if not self.games or found.difference is None:
            return ""
        value, low, high = found.difference
        score = 100 * (found.wins + found.draws / 2) / self.games
        text = (
            f"{found.one}: {score:.1f} %, Elo {value:+z.0f} ({low:+z.0f} to {high:+z.0f}), superior with "
            f"{percent(found.match.superiority)}"
        )
        if self.verdict is None:
            return text
        verdict = self.verdict
        return f"LLR {verdict.ratio:z.2f} between {verdict.lower:.2f} and {verdict.upper:.2f}; {text}"

    def to_json(self) -> dict[str, Any]:
        """Return the duel for scripts."""
        sprt = None
        if self.test is not None and self.verdict is not None:
            sprt = {
                "elo0": self.test.elo0,
                "elo1": self.test.elo1,
                "alpha": self.test.alpha,
                "beta": self.test.beta,
                "max_games": self.test.max_games,
                "llr": self.verdict.ratio,
                "lower": self.verdict.lower,
                "upper": self.verdict.upper,
                "accepted": self.verdict.accepted,
                "stopped": self.verdict.stopped,
                "pairs": self.verdict.pairs,
                "unique_pairs": self.verdict.unique,
            }
        return {
            "decision": self.decision,
            "headline": self.headline(),
            "meaning": self.meaning(),
            "finished": self.finished,
            "sprt": sprt,
            "comparison": self.comparison.to_json(),
        }


def duel_of(
    names: Sequence[str], games: Sequence[GameSummary], test: Sprt | None, history: History, *, finished: bool
) -> Duel:
    """Return the duel so far.

    ``names`` are those of the new version and of the old one, ``games`` those that count.
    """
    verdict = None if test is None else test.verdict(history)
    comparison = compare(names[:2], games, names[0], names[1], was_stopped=test is not None)
    neither_started = bool(games) and all(game.neither_started for game in games)
    return Duel(comparison, test, verdict, finished, neither_started)

"""Configuration of a tournament as its store keeps it, which suffices for its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tournaments.config.host_speed import ScaledControl
from tournaments.schedule.plan import Plan

if TYPE_CHECKING:  # reading results needs no tables of a tournament file
    from tournaments.config.tournament import Tournament


@dataclass
class TournamentConfig:
    """Properties of a tournament that do not depend on its games."""

    name: str
    game: str
    """Canonical spec text of the game."""
    control: str
    """Time control, in words."""
    file_bots: Sequence[str]
    """Names of the bots of the tournament's file."""
    ranking: str | Sequence[str]
    """A preset of tournaments/analysis/tie_breaks.py, or criteria."""
    plan: Plan = field(default_factory=Plan)
    anchor: str | None = None
    """Bot with a fixed rating, which the others refer to; None: the average of all is 0."""
    anchor_rating: float = 0.0
    must_confine: bool = False
    """True if bots and their builds must be confined; stored under the key ``untrusted``."""
    scaled: ScaledControl | None = None
    """Time control on each host; None if it is the same on all."""
    has_default_ranking: bool | None = None
    """True if the ranking is the default of the format; None if a store of an earlier version lacks it."""

    @classmethod
    def of(cls, tournament: "Tournament") -> Self:
        """Create the configuration of a tournament."""
        return cls(
            name=tournament.name,
            game=tournament.game,
            control=str(tournament.control),
            file_bots=tournament.names,
            ranking=tournament.ranking,
            plan=tournament.plan,
            anchor=tournament.anchor,
            anchor_rating=tournament.anchor_rating,
            must_confine=tournament.must_confine,
            scaled=tournament.scaled_control,
            has_default_ranking=tournament.has_default_ranking,
        )

    @classmethod
    def from_json(cls, config: Mapping[str, Any], **results: Any) -> Self:
        """Create the configuration from ``Store.config``; ``results`` are further fields of a subclass."""
        return cls(
            name=config["name"],
            game=config["game"],
            control=config["control"],
            file_bots=config["bots"],
            ranking=config["ranking"],
            plan=Plan.from_json(config),
            anchor=config.get("anchor"),
            anchor_rating=config.get("anchor_rating", 0.0),
            must_confine=config.get("untrusted", False),
            scaled=ScaledControl.from_json(config["scaled"]) if config.get("scaled") else None,
            has_default_ranking=config.get("has_default_ranking"),
            **results,
        )

    def config(self) -> dict[str, Any]:
        """Return the JSON for the store beside the name, for ``from_json``."""
        return {
            "game": self.game,
            "control": self.control,
            "bots": list(self.file_bots),
            "ranking": self.ranking,
            "anchor": self.anchor,
            "anchor_rating": self.anchor_rating,
            "untrusted": self.must_confine,
            "scaled": None if self.scaled is None else self.scaled.to_json(),
            "has_default_ranking": self.has_default_ranking,
            **self.plan.to_json(),
        }

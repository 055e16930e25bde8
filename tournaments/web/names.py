"""Whose bots a viewer may know.  Pure.

Pseudonyms are a competition's own: each of its bots has one, and each team, whose name may be in a bot's
lines.  Reference players are nobody's and keep their names, and so does what belongs to the viewer's team.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tournaments.course.model import Account
from tournaments.course.settings import Settings
from tournaments.report.disguise import HIDDEN, Disguise


class Sight(StrEnum):
    """What somebody may see of names."""

    NOBODY = "nobody"
    """There are no standings for visitors."""
    ANONYMOUS = "anonymous"
    NAMED = "named"


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page, as far as its content depends on it.  Viewers that are equal see the same."""

    sight: Sight
    team_id: int | None = None
    """Whose bots keep their names; None where nobody's names are hidden, or nobody's are known."""


@dataclass(frozen=True)
class Entrant:
    """A bot of a competition, and whose it is."""

    name: str
    """As it is in the games."""
    team_id: int | None
    """None for a reference player."""
    number: int | None
    """The version's; None for a reference player."""
    reference: str | None
    version_id: int | None


def viewer_of(settings: Settings, me: Account | None) -> Viewer:
    """What somebody may see, by the lecturer's settings; None is a visitor."""
    if me is None:
        return Viewer(Sight(settings.standings_for))
    if me.role.teaches or settings.students_see_names:
        return Viewer(Sight.NAMED)
    return Viewer(Sight.ANONYMOUS, me.team_id)


def to_be_drawn(entrants: Iterable[Entrant], teams: Mapping[int, str]) -> list[str]:
    """All names of a competition that need a pseudonym."""
    found = list(entrants)
    owners = {teams[entrant.team_id] for entrant in found if entrant.team_id is not None}
    return [entrant.name for entrant in found] + sorted(owners - {entrant.name for entrant in found})


def known_names(viewer: Viewer, entrants: Iterable[Entrant], teams: Mapping[int, str]) -> set[str]:
    """Names that a viewer to whom the others are hidden may know."""
    known = {
        entrant.name
        for entrant in entrants
        if entrant.reference is not None
        or (entrant.team_id is not None and entrant.team_id == viewer.team_id)
    }
    return known if viewer.team_id is None else known | {teams[viewer.team_id]}


@dataclass(frozen=True)
class Names:
    """How a competition's bots are called before one viewer."""

    disguise: Disguise = field(default_factory=Disguise)

    @classmethod
    def hidden(cls, pseudonyms: Mapping[str, str], known: Collection[str], bots: Sequence[str]) -> "Names":
        """All names but those that are known are replaced.

        ``pseudonyms`` are in an order that says nothing; ``bots`` are the names by their numbers in keys.
        """
        return cls(
            Disguise({name: name if name in known else other for name, other in pseudonyms.items()}, bots)
        )

    @property
    def on(self) -> bool:
        """Whether names are hidden."""
        return self.disguise.on

    def shown(self, name: str) -> str:
        """What a bot is called; one that is too new for a pseudonym is just a bot."""
        return self.disguise.names.get(name, HIDDEN) if self.on else name

    def sentence(self, text: str) -> str:
        """A text without the names that are hidden."""
        return self.disguise.text(text)

    def know(self, *bots: str) -> bool:
        """Whether none of these is too new for a pseudonym: a text about one that is may have its name."""
        return not self.on or all(bot in self.disguise.names for bot in bots)

    def key(self, key: str) -> str:
        """A game's key: numbers in it would tell bots apart."""
        return self.disguise.key(key)

"""Displayed names of bots: real names or pseudonyms, depending on the viewer.  Pure.

Pseudonyms are a competition's own: each of its bots has one, and so has each team, since its name may be in a
bot's lines.  Reference players keep their names, and so do the viewer's team and its bots.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tournaments.course.model import Account
from tournaments.course.settings import Settings
from tournaments.reporting.site.anonymizer import HIDDEN, Anonymizer


class Visibility(StrEnum):
    """Visibility of names for a viewer."""

    NOBODY = "nobody"
    """There are no standings for visitors."""
    ANONYMOUS = "anonymous"
    NAMED = "named"


@dataclass(frozen=True)
class Viewer:
    """The properties of a viewer that a page's content depends on.  Equal viewers see the same content."""

    visibility: Visibility
    team_id: int | None = None
    """Team with bots that keep their names; None where no names are hidden, or the viewer has no team."""


@dataclass(frozen=True)
class Entrant:
    """A bot of a competition, with its team and version."""

    name: str
    """Name of the bot in the games."""
    team_id: int | None
    """None for a reference player."""
    number: int | None
    """Number of the version; None for a reference player."""
    reference: str | None
    version_id: int | None


def viewer_of(settings: Settings, user: Account | None) -> Viewer:
    """Return the viewer for an account under the lecturer's settings; None is a visitor."""
    if user is None:
        return Viewer(Visibility(settings.standings_for))
    if user.role.teaches or settings.students_see_names:
        return Viewer(Visibility.NAMED)
    return Viewer(Visibility.ANONYMOUS, user.team_id)


def names_to_hide(entrants: Iterable[Entrant], teams: Mapping[int, str]) -> list[str]:
    """Return all names of a competition that need a pseudonym."""
    found = list(entrants)
    owners = {teams[entrant.team_id] for entrant in found if entrant.team_id is not None}
    return [entrant.name for entrant in found] + sorted(owners - {entrant.name for entrant in found})


def known_names(viewer: Viewer, entrants: Iterable[Entrant], teams: Mapping[int, str]) -> set[str]:
    """Return the names that stay visible to a viewer from whom the others are hidden."""
    known = {
        entrant.name
        for entrant in entrants
        if entrant.reference is not None
        or (entrant.team_id is not None and entrant.team_id == viewer.team_id)
    }
    return known if viewer.team_id is None else known | {teams[viewer.team_id]}


@dataclass(frozen=True)
class Names:
    """Displayed names of a competition's bots for one viewer."""

    anonymizer: Anonymizer = field(default_factory=Anonymizer)

    @classmethod
    def hidden(cls, pseudonyms: Mapping[str, str], known: Collection[str], bots: Sequence[str]) -> "Names":
        """Return names of which all but the known ones are replaced.

        ``pseudonyms`` are in an order that reveals nothing; ``bots`` are the names by their numbers in keys.
        """
        return cls(
            Anonymizer({name: name if name in known else other for name, other in pseudonyms.items()}, bots)
        )

    @property
    def on(self) -> bool:
        """True if names are hidden."""
        return self.anonymizer.on

    def shown(self, name: str) -> str:
        """Return the displayed name of a bot; HIDDEN for a bot that is too new for a pseudonym."""
        return self.anonymizer.names.get(name, HIDDEN) if self.on else name

    def sentence(self, text: str) -> str:
        """Return a text without the hidden names."""
        return self.anonymizer.text(text)

    def covers(self, *bots: str) -> bool:
        """Return False if one of these bots is too new for a pseudonym: a text could reveal its name."""
        return not self.on or all(bot in self.anonymizer.names for bot in bots)

    def key(self, key: str) -> str:
        """Return a game's displayed key; the numbers in the real one would identify bots."""
        return self.anonymizer.key(key)

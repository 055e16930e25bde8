"""Entrants of a tournament: fixed, unchanging bots for a lecturer's choice."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from referee.games.spec import did_you_mean
from referee.judge.results import CAPABILITIES, Player
from referee.sandbox.detection import REQUIRED
from tournaments.bots.manifest import MANIFEST_FILE, NAME
from tournaments.config.openings import OpeningBook
from tournaments.config.tournament import Tournament, TournamentError, build_tournament, name_clash
from tournaments.config.tournament_file import LimitsTable
from tournaments.course.model import Version, VersionState
from tournaments.course.people.teams import Teams
from tournaments.course.versions import Versions
from tournaments.server.competitions.tournament_spec import (
    FROZEN,
    Entered,
    FixedSpec,
    TournamentSpec,
    TournamentSpecError,
)

LEAST_BOTS = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chosen bot."""

    name: str
    """Name of the bot in the games."""
    team: str | None = None
    version: Version | None = None
    """Submitted version; None for a reference player, whose text is its name."""

    def entered(self, digest: str) -> Entered:
        """Return the entrant, whose bot has this digest."""
        if self.version is None:
            return Entered(name=self.name, digest=digest, reference=self.name)
        return Entered(name=self.name, digest=digest, version=self.version.id)


def candidates(
    spec: TournamentSpec, versions: Versions, teams: Teams, frozen_at: datetime | None, now: datetime
) -> list[Candidate]:
    """Return the chosen bots: those of teams by name, or in the listed order; then reference players.

    Raises TournamentSpecError.
    """
    names = {team.id: team.name for team in teams.all()}
    problems: list[str] = []
    chosen: list[Version] = []
    if isinstance(spec.bots, list):
        known = versions.by_ids(spec.bots)
        for version_id in spec.bots:
            version = known.get(version_id)
            if version is None or version.team_id not in names:
                problems.append(f"bots: there is no version {version_id}")
            elif (why := _unusable(version)) is not None:
                problems.append(f"bots: {_name(names, version)} {why}")
            else:
                chosen.append(version)
    elif spec.bots == FROZEN and frozen_at is None:
        problems.append(
            "bots: the settings of the course have no moment at which versions are frozen: set it, or choose "
            "the current versions"
        )
    elif spec.bots == FROZEN and frozen_at is not None and now < frozen_at:
        problems.append(
            f"bots: versions are frozen at {frozen_at:%Y-%m-%d %H:%M} UTC, which is still to come"
        )
    else:
        at = frozen_at if spec.bots == FROZEN else None
        arriving: set[int] = set() if at is None else versions.teams_arriving(at)
        found = versions.current(at).values()
        of_teams = [version for version in found if version.team_id in names]
        chosen = sorted(of_teams, key=lambda version: names[version.team_id].casefold())
        if spec.bots == FROZEN:
            problems += [
                f"bots: an upload of {name} was submitted in time, and is still being stored: wait for its "
                "check, or choose versions yourself"
                for name in sorted((names[one] for one in arriving if one in names), key=str.casefold)
            ]
            problems += [
                f"bots: {_name(names, version)} was submitted in time, and {_pending(version)}, or choose "
                "versions yourself"
                for version in _without_result(versions, names, chosen, frozen_at)
            ]
    if problems:
        raise TournamentSpecError(problems)
    return [
        *(Candidate(_name(names, version), names[version.team_id], version) for version in chosen),
        *map(Candidate, spec.references),
    ]


def names_without_result(chosen: Sequence[Candidate], versions: Versions, teams: Teams) -> list[str]:
    """Return the names of versions that will replace a team's current version if they qualify, by team."""
    names = {team.id: team.name for team in teams.all()}
    current = [one.version for one in chosen if one.version is not None]
    return [_name(names, version) for version in _without_result(versions, names, current)]


def _without_result(
    versions: Versions, names: Mapping[int, str], chosen: Iterable[Version], at: datetime | None = None
) -> list[Version]:
    """Return the versions, newer than those chosen for their teams, whose checks have no result, by team."""
    numbers = {version.team_id: version.number for version in chosen}
    newer = [
        version
        for version in versions.without_result(at)
        if version.team_id in names and version.number > numbers.get(version.team_id, 0)
    ]
    return sorted(newer, key=lambda version: (names[version.team_id].casefold(), version.number))


def _pending(version: Version) -> str:
    """Return the reason why a version has no result, and a remedy."""
    if version.state is VersionState.STUCK:
        return "could not be checked because of the host: have it checked again, take it out of use"
    return "is still being checked: wait for its check"


def _name(names: Mapping[int, str], version: Version) -> str:
    return f"{names[version.team_id]} v{version.number}"


def _unusable(version: Version) -> str | None:
    """Return the reason why a version cannot play; None if it can."""
    if version.state is not VersionState.QUALIFIED:
        return f"has not qualified: it is {version.state}"
    return "was taken out of use" if version.withdrawn else None


def fix(
    spec: TournamentSpec,
    chosen: Sequence[Candidate],
    players: Mapping[str, Player],
    limits: LimitsTable,
    sandbox: str,
) -> FixedSpec:
    """Return the fixed specification of the tournament of these bots.

    ``players`` are the candidates' players, by name.  Candidates without a player have been reported by the
    caller.  Raises TournamentSpecError.
    """
    problems = []
    names = [candidate.name for candidate in chosen]
    if len(chosen) < LEAST_BOTS:
        problems.append(
            f"bots: {len(chosen)} would play, and a tournament needs {LEAST_BOTS} at least: wait for "
            "versions that qualify, or add reference players"
        )
    for number, name in enumerate(names):
        if not NAME.fullmatch(name):
            problems.append(f"bots: {name!r} cannot be the name of a bot: give its team a shorter one")
        clash = name_clash(name, names[:number])
        if clash is not None:
            problems.append(f"bots: the names {clash!r} and {name!r} are too like one another: leave one out")
        version = chosen[number].version
        if version is not None and version.digest != players[name].digest:
            problems.append(f"bots: {name} is not what was checked: have this version checked again")
    used, wrong = _named(spec, chosen)
    problems += wrong
    if problems:
        raise TournamentSpecError(problems)
    table = spec.format
    if "challengers" in type(table).model_fields:
        table = table.model_copy(update={"challengers": [used[name] for name in _challengers(spec)]})
    anchor = None if spec.rating.anchor is None else used[spec.rating.anchor]
    rating = spec.rating.model_copy(update={"anchor": anchor})
    fixed = FixedSpec(
        chosen=spec.model_copy(update={"format": table, "rating": rating}),
        field=[one.entered(players[one.name].digest) for one in chosen],
        limits=limits,
        sandbox=sandbox,
    )
    tournament_of(fixed, players)  # raises TournamentSpecError
    return fixed


def _challengers(spec: TournamentSpec) -> list[str]:
    return list(getattr(spec.format, "challengers", []))


def _named(spec: TournamentSpec, chosen: Sequence[Candidate]) -> tuple[dict[str, str], list[str]]:
    """Return text -> bot name for the bots in the format and rating tables, and the problems found."""
    used = [("rating.anchor", spec.rating.anchor)] if spec.rating.anchor is not None else []
    used += [("format.challengers", text) for text in _challengers(spec)]
    found: dict[str, str] = {}
    problems = []
    for where, text in used:
        meant = [one.name for one in chosen if one.name == text]
        meant = meant or [one.name for one in chosen if (one.team or "").casefold() == text.casefold()]
        if len(meant) == 1:
            found[text] = meant[0]
        elif meant:
            problems.append(f"{where}: {text!r} has several bots here: say {' or '.join(meant)}")
        else:
            names = [one.name for one in chosen] + [one.team for one in chosen if one.team is not None]
            hint = did_you_mean(text, names) or f"; there are {', '.join(one.name for one in chosen)}"
            problems.append(f"{where}: no bot {text!r} plays here{hint}")
    challengers = [found.get(text) for text in _challengers(spec)]
    if None not in challengers and len(set(challengers)) < len(challengers):
        problems.append("format.challengers: names a bot twice")
    if challengers and set(challengers) >= {one.name for one in chosen}:
        problems.append(
            "format.challengers: these are all bots, and challengers do not meet one another: leave one out"
        )
    return found, problems


def tournament_of(fixed: FixedSpec, players: Mapping[str, Player]) -> Tournament:
    """Return the tournament, ready to be run.  Raises TournamentSpecError."""
    spec = fixed.chosen
    bots = [players[entered.name] for entered in fixed.field]
    openings = None
    if (table := spec.openings) is not None:
        openings = partial(OpeningBook.random, spec.game, table.plies, table.seed)
    try:
        return build_tournament(
            name=spec.title,
            game=spec.game,
            bots=bots,
            control=spec.time.control(),
            format_table=spec.format.model_dump(),
            rounds=spec.rounds,
            openings=openings,
            unable=_without_openings,
            ranking=spec.ranking,
            seed=spec.seed,
            anchor=spec.rating.anchor,
            anchor_rating=spec.rating.value,
            sandbox_mode=fixed.sandbox,
            untrusted=fixed.sandbox == REQUIRED,
            limits=fixed.limits.limits(),
            concurrency=spec.concurrency,
            problems=list(changed_files(fixed.field, bots)),
        )
    except TournamentError as error:
        raise TournamentSpecError(error.problems) from error


def placeholder(name: str, digest: str) -> Player:
    """Return a player for a bot that is not built yet; a schedule needs only its name."""
    return Player(name, ("/",), "/", digest, tuple(CAPABILITIES))


def planned(fixed: FixedSpec) -> Tournament:
    """Return the tournament with placeholders for its bots.  Raises TournamentSpecError."""
    return tournament_of(fixed, {one.name: placeholder(one.name, one.digest) for one in fixed.field})


def changed_files(field: Iterable[Entered], bots: Iterable[Player]) -> Iterator[str]:
    """Yield a sentence for each bot whose files have changed since it was entered."""
    for entered, bot in zip(field, bots, strict=True):
        if bot.digest == entered.digest:
            continue
        why = f"{entered.name} is not made of the same files any more as when it was entered"
        if entered.version is None:
            yield f"{why}, since kalarena has another one now: make a new tournament"
        else:
            yield f"{why}: bring the server's bots back from a backup, or make a new tournament"


def _without_openings(bots: Iterable[Player]) -> list[str]:
    """Return one sentence on all bots that cannot take openings; none if all can."""
    names = [bot.name for bot in bots if "openings" not in bot.capabilities]
    if not names:
        return []
    return [
        f"openings: {', '.join(names)} cannot take openings: a bot that can says "
        f'capabilities = ["openings"] in its {MANIFEST_FILE}; choose no openings, or leave these bots out'
    ]

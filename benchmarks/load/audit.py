"""Comparison of the stored uploads and games with those that the server acknowledged."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from benchmarks.load.charges import Charges, Period, compare_charges
from benchmarks.load.players import Played
from benchmarks.load.scene import CHEAP, Scene
from benchmarks.load.students import Acknowledged
from referee.judge.results import Reason
from tournaments.bots.storage import ContentError, ContentStore
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, VersionState
from tournaments.database.location import Database
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store

PLAYED_OUT = (Reason.SCORE, Reason.TURN_CAP)
BY_TIME = (Reason.TIMEOUT, Reason.START)


@dataclass(frozen=True)
class Uploads:
    """Acknowledged uploads, as they are stored at the end."""

    states: Counter[str]
    lost: list[str]
    """Uploads that are missing, or were refused although they are the starter kit's bot; sentences."""


@dataclass(frozen=True)
class Games:
    """The games of one competition."""

    kept: int
    total: int | None
    """Number of games of the whole tournament; None for the practice ladder, which has no end."""
    by_time: list[str]
    """Games lost by time, as sentences: no bot needs all of its time."""
    other_faults: list[str]
    wrong: list[str]
    """Acknowledged games that are missing or stored twice; sentences."""


def audit_uploads(scene: Scene, acknowledged: Iterable[Acknowledged]) -> Uploads:
    """Compare each acknowledged upload with the stored one."""
    contents = ContentStore(scene.data / "submissions")
    states: Counter[str] = Counter()
    lost: list[str] = []
    with Course(scene.database.course(), CHEAP) as course:
        for one in acknowledged:
            version = course.versions.get(one.version)
            if version is None or version.content != one.content:
                lost.append(f"version {one.version} is {'not there' if version is None else 'another one'}")
                continue
            states[version.state.value] += 1
            if version.state in (VersionState.FAILED, VersionState.STUCK):
                lost += [f"version {one.version} is {version.state.value}: {_why(course, one.version)}"]
            try:
                contents.verify(one.content)
            except ContentError as error:
                lost.append(str(error))
    return Uploads(states, lost)


def _why(course: Course, version_id: int) -> str:
    checked = course.versions.checked(version_id)
    items = [] if checked is None or checked.report is None else checked.report["items"]
    return "; ".join(item["sentence"] for item in items if item["status"] == "failed")


def audit_casual(scene: Scene, played: Iterable[Played]) -> list[str]:
    """Return a sentence for each casual game whose acknowledged moves are not in the database."""
    lost = []
    with Course(scene.database.course(), CHEAP) as course:
        for one in played:
            game = course.casual_games.by_address(one.address)
            moves = () if game is None else game.moves
            if moves[: len(one.moves)] != one.moves:
                lost.append(f"casual game {one.address}: acknowledged moves are not there")
    return lost


def audit_games(scene: Scene, finished: Set[tuple[str, str]]) -> dict[str, Games]:
    """Return the games of each competition by its slug; those in ``finished`` must be stored."""
    with Course(scene.database.course(), CHEAP) as course:
        known = course.competitions.all()
    return {one.slug: _games(scene.database, one, finished) for one in known}


def audit_charges(scene: Scene, slug: str, periods: Sequence[Period]) -> list[Charges]:
    """Return the charged times of the tournament's bots with and without people who play."""
    with Store(scene.database.competition(slug)) as store:
        return compare_charges(map(store.record, store.played()), periods)


def _games(database: Database, competition: Competition, finished: Set[tuple[str, str]]) -> Games:
    with Store(database.competition(competition.slug)) as store:
        games = store.games()
        for game in games:
            store.record(game.key)  # raises StoreError if it is damaged
        is_tournament = competition.kind is CompetitionKind.TOURNAMENT
        total = TournamentResults.load(store).total if is_tournament else None
    keys = {game.key for game in games}
    watched = {key for slug, key in finished if slug == competition.slug}
    wrong = [f"game {key} was finished, and is not there" for key in sorted(watched - keys)]
    if is_tournament:
        # In each round of a round robin everybody moves first once against everybody.
        meetings = Counter((game.round, game.first, game.second) for game in games)
        wrong += [f"{meeting} was played {times} times" for meeting, times in meetings.items() if times > 1]
    return Games(
        kept=len(games),
        total=total,
        by_time=[_sentence(game) for game in games if game.reason in BY_TIME],
        other_faults=[_sentence(game) for game in games if game.reason not in (*PLAYED_OUT, *BY_TIME)],
        wrong=wrong,
    )


def _sentence(game: GameSummary) -> str:
    return f"{game.key}: {game.detail}"

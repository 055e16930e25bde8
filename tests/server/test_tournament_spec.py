"""A lecturer's choices for a tournament, its entrants, and all ways to get the choices wrong."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.results import Player
from tests.server.harness import ANY_VERSION
from tests.support.courses import NOW, after
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.tournament_file import LimitsTable
from tournaments.course.model import Team, Version, VersionState
from tournaments.server.competitions.entrants import Candidate, candidates, fix, tournament_of
from tournaments.server.competitions.tournament_spec import FixedSpec, TournamentSpec, TournamentSpecError

if TYPE_CHECKING:
    from tournaments.course.people.teams import Teams
    from tournaments.course.versions import Versions

pytestmark = pytest.mark.any_database

TEAMS = [Team(1, "beta", NOW), Team(2, "Alpha", NOW), Team(3, "gamma", NOW)]


def version(number: int, team: int, **changes: Any) -> Version:
    """Return a qualified version, whose id is also its number in its team."""
    values = {"state": VersionState.QUALIFIED, "digest": f"d{number}", **changes}
    return replace(ANY_VERSION, id=number, team_id=team, number=number, content=f"c{number}", **values)


class FakeVersions:
    """Versions and teams of a course."""

    def __init__(
        self,
        *versions: Version,
        without_result: Iterable[Version] = (),
        arriving: Iterable[tuple[int, datetime]] = (),
    ) -> None:
        self.versions = {one.id: one for one in versions}
        self.arriving = list(arriving)
        self.pending = list(without_result)
        self.asked: datetime | None = None

    def by_ids(self, version_ids: Iterable[int]) -> dict[int, Version]:
        return {number: self.versions[number] for number in version_ids if number in self.versions}

    def current(self, at: datetime | None = None) -> Mapping[int, Version]:
        self.asked = at
        return {one.team_id: one for one in self.versions.values()}

    def without_result(self, at: datetime | None = None) -> list[Version]:
        return [one for one in self.pending if at is None or one.submitted_at <= at]

    def teams_arriving(self, at: datetime) -> set[int]:
        return {team for team, arrived in self.arriving if arrived <= at}

    def all(self) -> list[Team]:
        return TEAMS

    def candidates(self, spec: TournamentSpec, frozen_at: datetime | None) -> list[Candidate]:
        return candidates(spec, cast("Versions", self), cast("Teams", self), frozen_at, NOW)


ONE_EACH = (version(1, 1), version(2, 2), version(3, 3))


def read(**values: Any) -> TournamentSpec:
    return TournamentSpec.read({"title": "Cup", **values})


def gauntlet(*challengers: str) -> dict[str, Any]:
    return {"kind": "gauntlet", "challengers": list(challengers)}


def problems(action: Callable[[], object]) -> list[str]:
    with pytest.raises(TournamentSpecError) as raised:
        action()
    assert str(raised.value) == "\n".join(raised.value.problems)
    return raised.value.problems


def chosen_by(
    spec: TournamentSpec, versions: Iterable[Version] = ONE_EACH, frozen_at: datetime | None = None
) -> list[Candidate]:
    return FakeVersions(*versions).candidates(spec, frozen_at)


def players_of(names: Iterable[str], **changes: Any) -> dict[str, Player]:
    values = {"capabilities": ("openings",), **changes}
    return {name: Player(name, ("x",), "/", f"d{name.rpartition('v')[2]}", **values) for name in names}


def fixed_by(spec: TournamentSpec, chosen: list[Candidate], **changes: Any) -> FixedSpec:
    players = players_of([one.name for one in chosen], **changes)
    return fix(spec, chosen, players, LimitsTable(memory_mb=100), "off")


def four() -> list[Candidate]:
    return chosen_by(read(references=["greedy"]))


# Choices


def test_a_title_is_enough() -> None:
    spec = read()
    assert (spec.game, spec.format.kind, spec.bots) == ("manchester", "round-robin", "current")


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        lambda: TournamentSpec.read(
            {
                "titel": "x",
                "game": "kalha",
                "time": {"move": 1, "game_s": -1.0},
                "rounds": 0,
                "openings": {"plies": 3, "sed": 1},
                "format": {"kind": "swiss", "pair": 2},
                "ranking": "point",
                "bots": "curent",
                "references": ["laddr:3"],
                "concurrency": "2",
            }
        )
    )
    expected = [
        "title: is missing",
        "titel: unknown key; did you mean 'title'?",
        "game: ",
        "time.move: unknown key; did you mean 'move_s'?",
        "time.game_s: ",
        "rounds: must be greater than or equal to 1, not 0",
        "openings.seed: is missing",
        "openings.sed: unknown key; did you mean 'seed'?",
        "format.pair: unknown key; did you mean 'pairs'?",
        "ranking: must be one of points, wins-then-speed, swiss, rating, score, swiss-match, or a list of "
        "criteria, not 'point'",
        "bots: must be current, frozen or numbers of versions, not 'curent'; did you mean 'current'?",
        "references: there is no reference player 'laddr:3'; did you mean 'ladder'?",
        "concurrency: must be a whole number, not '2'",
    ]
    for begin in expected:
        assert any(one.startswith(begin) for one in found), (begin, found)
    assert len(found) == len(expected), found


UNKNOWN = "references: there is no reference player"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"format": "knockout", "rounds": 2},
            "format 'knockout' goes on until it is decided: leave rounds out",
        ),
        ({"format": "roundrobin"}, "format: there is no format 'roundrobin'; did you mean 'round-robin'?"),
        ({"bots": [1, 1]}, "bots: names a version twice"),
        ({"bots": [True]}, "bots: must be current, frozen or numbers of versions"),
        ({"bots": {}}, "bots: must be current, frozen or numbers of versions"),
        ({"references": ["greedy", "greedy"]}, "references: names a reference player twice"),
        ({"references": ["ladder:99"]}, "references: 'ladder:99': "),
        ({"references": ["/bin/sh"]}, f"{UNKNOWN} '/bin/sh'; there are first_legal, "),
        ({"references": ["python3 -c x"]}, f"{UNKNOWN} 'python3 -c x'"),
        ({"title": ""}, "title: must not be empty"),
        ({"title": "x" * 201}, "title: must be a text of at most 200 characters"),
        ({"time": 5}, "time: must be a table of keys, not 5"),
    ],
)
def test_invalid_choices(values: dict[str, Any], sentence: str) -> None:
    (one,) = problems(lambda: read(**values))
    assert one.startswith(sentence), one


FORMATS = st.sampled_from(list(FORMAT_TABLES)).map(
    lambda kind: {"kind": kind, "challengers": ["a"]} if kind in ("gauntlet", "placement") else kind
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "game": st.sampled_from(["kalah(4,3)", "manchester", "kalamala"]),
            "time": st.sampled_from([{}, {"move_s": 2.5}, {"game_s": 60.0, "increment_s": 1.0}]),
            "format": FORMATS | st.just({"kind": "swiss", "pairs": 2}),
            "openings": st.sampled_from([None, {"plies": 3, "seed": 1}]),
            "seed": st.integers(),
            "ranking": st.sampled_from([None, "points", ["wins", "speed"]]),
            "rating": st.sampled_from([{}, {"anchor": "greedy", "value": 100.0}]),
            "bots": st.sampled_from(["current", "frozen", [3, 1], []]),
            "references": st.sampled_from([[], ["greedy", "ladder:1"]]),
            "concurrency": st.sampled_from([None, 1, 8]),
        },
    )
)
def test_choices_are_restored_from_json(values: dict[str, Any]) -> None:
    spec = read(**values)
    assert TournamentSpec.read(json.loads(json.dumps(spec.to_json()))) == spec


# Entrants


def test_current_versions_are_ordered_by_team_and_come_before_reference_players() -> None:
    assert [one.name for one in four()] == ["Alpha v2", "beta v1", "gamma v3", "greedy"]


def test_frozen_versions_are_those_of_that_moment() -> None:
    course = FakeVersions(*ONE_EACH)
    for bots, at in (("frozen", after(days=-1)), ("current", None)):
        assert len(course.candidates(read(bots=bots), after(days=-1))) == 3
        assert course.asked == at


@pytest.mark.parametrize(
    ("frozen_at", "sentence"),
    [
        (None, "bots: the settings of the course have no moment at which versions are frozen: "),
        (after(hours=1), "bots: versions are frozen at 2026-03-02 13:00 UTC, which is still to come"),
    ],
)
def test_no_version_is_frozen_yet(frozen_at: datetime | None, sentence: str) -> None:
    (one,) = problems(lambda: chosen_by(read(bots="frozen"), frozen_at=frozen_at))
    assert one.startswith(sentence)


def test_frozen_versions_that_were_in_time_and_have_no_result_are_named() -> None:
    queued, checking, stuck = VersionState.QUEUED, VersionState.CHECKING, VersionState.STUCK
    frozen_at = after(hours=-1)
    in_time = {"submitted_at": after(hours=-2)}
    course = FakeVersions(
        version(1, 1),
        version(2, 2),
        without_result=[
            version(1, 2, state=queued, **in_time),  # a newer version of this team has qualified
            version(4, 9, state=queued, **in_time),  # of a team that is gone
            version(5, 1, state=checking, **in_time),
            version(6, 3, state=queued, **in_time),  # no other version of this team has qualified
            version(7, 2, state=stuck, **in_time),
            version(8, 2, state=queued, submitted_at=NOW),  # too late
        ],
        arriving=[(2, frozen_at), (9, frozen_at), (1, NOW)],  # in time; of a team that is gone; too late
    )
    assert problems(lambda: course.candidates(read(bots="frozen"), frozen_at)) == [
        "bots: an upload of Alpha was submitted in time, and is still being stored: wait for its check, or "
        "choose versions yourself",
        "bots: Alpha v7 was submitted in time, and could not be checked because of the host: have it checked "
        "again, take it out of use, or choose versions yourself",
        "bots: beta v5 was submitted in time, and is still being checked: wait for its check, or choose "
        "versions yourself",
        "bots: gamma v6 was submitted in time, and is still being checked: wait for its check, or choose "
        "versions yourself",
    ]
    assert [one.name for one in course.candidates(read(), frozen_at)] == ["Alpha v2", "beta v1"]


def test_listed_versions_keep_their_order() -> None:
    found = chosen_by(read(bots=[4, 2, 1]), [*ONE_EACH, version(4, 1)])
    assert [one.name for one in found] == ["beta v4", "Alpha v2", "beta v1"]


def test_versions_that_cannot_play_are_named_all_at_once() -> None:
    versions = [version(1, 1, state=VersionState.FAILED), version(2, 2, withdrawn=True), version(5, 9)]
    assert problems(lambda: chosen_by(read(bots=[1, 2, 7, 5]), versions)) == [
        "bots: beta v1 has not qualified: it is failed",
        "bots: Alpha v2 was taken out of use",
        "bots: there is no version 7",
        "bots: there is no version 5",
    ]


# Fixed tournaments


def test_a_fixed_tournament_is_restored_from_json() -> None:
    spec = read(
        game="kalah(4,3)",
        format=gauntlet("BETA", "greedy"),
        rating={"anchor": "gamma"},
        openings={"plies": 2, "seed": 7},
        rounds=3,
        concurrency=2,
    )
    fixed = fixed_by(spec, four())
    again = FixedSpec.read(json.loads(json.dumps(fixed.to_json())))
    assert again == fixed
    assert [(one.name, one.version, one.reference, one.digest) for one in again.field] == [
        ("Alpha v2", 2, None, "d2"),
        ("beta v1", 1, None, "d1"),
        ("gamma v3", 3, None, "d3"),
        ("greedy", None, "greedy", "dgreedy"),
    ]
    tournament = tournament_of(again, players_of(one.name for one in again.field))
    assert tournament.names == ["Alpha v2", "beta v1", "gamma v3", "greedy"]
    assert tournament.format == gauntlet("beta v1", "greedy")
    assert (tournament.anchor, tournament.rounds, tournament.concurrency) == ("gamma v3", 3, 2)
    assert (tournament.limits.memory_mb, tournament.sandbox_mode, tournament.untrusted) == (100, "off", False)
    assert len(tournament.openings) == 3
    assert tournament.openings_source == "random, 2 plies, seed 7"


@pytest.mark.parametrize("kind", FORMAT_TABLES)
def test_every_format_can_be_chosen(kind: str) -> None:
    table: dict[str, Any] = {"kind": kind}
    if "challengers" in FORMAT_TABLES[kind].model_fields:
        table["challengers"] = ["Alpha"]
    bots = [1, 2] if kind == "sprt" else [1, 2, 3, 4]
    spec = read(format=table, bots=bots, openings={"plies": 2, "seed": 1})
    fixed = fixed_by(spec, chosen_by(spec, [*ONE_EACH, version(4, 3)]))
    tournament = tournament_of(fixed, players_of(one.name for one in fixed.field))
    assert tournament.format["kind"] == kind
    assert tournament.openings


ALL_BOTS = "there are Alpha v2, beta v1, gamma v3, greedy"


@pytest.mark.parametrize(
    ("values", "begins"),
    [
        (
            {"format": gauntlet("betta", "Alpha", "Alpha v2"), "rating": {"anchor": "x"}},
            [
                f"rating.anchor: no bot 'x' plays here; {ALL_BOTS}",
                "format.challengers: no bot 'betta' plays here; did you mean 'beta'?",
            ],
        ),
        ({"format": gauntlet("Alpha", "Alpha v2")}, ["format.challengers: names a bot twice"]),
        (
            {"format": gauntlet("Alpha", "beta", "gamma", "greedy")},
            ["format.challengers: these are all bots"],
        ),
        ({"format": "sprt"}, ["format: "]),
        ({"game": "kalah(1,1)", "openings": {"plies": 50, "seed": 1}}, ["openings: no kalah(1,1)"]),
    ],
)
def test_choices_that_do_not_fit_the_entrants(values: dict[str, Any], begins: list[str]) -> None:
    found = problems(lambda: fixed_by(read(**values), four()))
    assert [one[: len(begin)] for one, begin in zip(found, begins, strict=True)] == begins


def test_a_team_with_several_bots_is_no_name() -> None:
    spec = read(format=gauntlet("beta"), bots=[1, 4, 2])
    assert problems(lambda: fixed_by(spec, chosen_by(spec, [*ONE_EACH, version(4, 1)]))) == [
        "format.challengers: 'beta' has several bots here: say beta v1 or beta v4"
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_a_tournament_needs_two_bots(count: int) -> None:
    (one,) = problems(lambda: fixed_by(read(), four()[:count]))
    assert one.startswith(f"bots: {count} would play, and a tournament needs 2 at least")


def test_bots_that_cannot_take_openings_are_named_in_one_sentence() -> None:
    spec = read(openings={"plies": 2, "seed": 1})
    (one,) = problems(lambda: fixed_by(spec, four(), capabilities=()))
    assert one.startswith("openings: Alpha v2, beta v1, gamma v3, greedy cannot take openings: ")
    assert len(fixed_by(read(), four(), capabilities=()).field) == 4


def test_bots_that_were_changed_are_refused() -> None:
    players = players_of(one.name for one in four())
    changed = {name: replace(player, digest="other") for name, player in players.items()}
    beta = players | {"beta v1": changed["beta v1"]}
    assert problems(lambda: fix(read(), four(), beta, LimitsTable(), "off")) == [
        "bots: beta v1 is not what was checked: have this version checked again"
    ]
    found = problems(lambda: tournament_of(fixed_by(read(), four()), changed))
    assert len(found) == 4
    assert found[0] == (
        "Alpha v2 is not made of the same files any more as when it was entered: bring the server's bots "
        "back from a backup, or make a new tournament"
    )
    assert found[-1].endswith("since kalarena has another one now: make a new tournament")


def test_names_that_are_similar_or_too_long() -> None:
    chosen = [Candidate("a b"), Candidate("a_b"), Candidate("x" * 61)]
    similar, long = problems(lambda: fixed_by(read(), chosen))
    assert similar == "bots: the names 'a b' and 'a_b' are too like one another: leave one out"
    assert long.startswith(f"bots: '{'x' * 61}' cannot be the name of a bot")


@pytest.mark.parametrize("damage", [{}, {"sandbox": "no"}, {"field": 1}])
def test_a_damaged_specification(damage: dict[str, Any]) -> None:
    whole = fixed_by(read(), four()).to_json()
    (one,) = problems(lambda: FixedSpec.read({**whole, **damage} if damage else {}))
    assert one.startswith("what was noted of this tournament is damaged: ")

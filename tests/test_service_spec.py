"""What a lecturer chooses of a tournament, who then plays, and every way to get that wrong."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.results import Player
from tests.courses import NOW, after
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.tournament import Tournament
from tournaments.config.tournament_file import LimitsTable
from tournaments.course.model import Team, Version, VersionState
from tournaments.server.competitions.entrants import Candidate, candidates, fix, tournament_of
from tournaments.server.competitions.tournament_spec import FixedSpec, TournamentSpec, TournamentSpecError

TEAMS = [Team(1, "beta", NOW), Team(2, "Alpha", NOW), Team(3, "gamma", NOW)]


def version(number: int, team: int, **changes: Any) -> Version:
    """The version with an id, which is its number in its team, too."""
    one = Version(
        id=number,
        team_id=team,
        number=number,
        content=f"c{number}",
        files=1,
        size=1,
        submitted_at=NOW,
        submitted_by=1,
        origin="page",
        state=VersionState.QUALIFIED,
        attempts=1,
        decided_at=NOW,
        digest=f"d{number}",
        failures=0,
        withdrawn=False,
    )
    return replace(one, **changes)


class Shelf:
    """Versions and teams of a course."""

    def __init__(self, *versions: Version) -> None:
        self.versions = {one.id: one for one in versions}
        self.asked: datetime | None = None

    def get(self, version_id: int) -> Version | None:
        return self.versions.get(version_id)

    def current(self, at: datetime | None = None) -> Mapping[int, Version]:
        self.asked = at
        return {one.team_id: one for one in self.versions.values()}

    def all(self) -> list[Team]:
        return TEAMS


def read(**values: Any) -> TournamentSpec:
    return TournamentSpec.read({"title": "Cup", **values})


def problems(act: Callable[[], object]) -> list[str]:
    with pytest.raises(TournamentSpecError) as raised:
        act()
    assert str(raised.value) == "\n".join(raised.value.problems)
    return raised.value.problems


def chosen_by(spec: TournamentSpec, shelf: Shelf, frozen_at: datetime | None = None) -> list[Candidate]:
    return candidates(spec, shelf, shelf, frozen_at, NOW)


def players_of(names: Iterable[str], **changes: Any) -> dict[str, Player]:
    can = {"capabilities": ("openings",), **changes}
    return {name: Player(name, ("x",), "/", f"d{name.rpartition('v')[2]}", **can) for name in names}


def fixed_by(spec: TournamentSpec, chosen: list[Candidate], **changes: Any) -> FixedSpec:
    names = [one.name for one in chosen]
    return fix(spec, chosen, players_of(names, **changes), LimitsTable(memory_mb=100), "off")


def four() -> list[Candidate]:
    shelf = Shelf(version(1, 1), version(2, 2), version(3, 3))
    return chosen_by(read(references=["greedy"]), shelf)


# What is chosen


def test_a_title_is_enough() -> None:
    spec = read()
    assert (spec.game, spec.format.kind, spec.bots) == ("manchester", "round-robin", "current")


def test_all_that_is_wrong_is_told_at_once() -> None:
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
        "concurrency: must be integer, not '2'",
    ]
    for begin in expected:
        assert any(one.startswith(begin) for one in found), (begin, found)
    assert len(found) == len(expected), found


@pytest.mark.parametrize(
    ("values", "said"),
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
        (
            {"references": ["/bin/sh"]},
            "references: there is no reference player '/bin/sh'; there are first_legal, ",
        ),
        ({"references": ["python3 -c x"]}, "references: there is no reference player 'python3 -c x'"),
        ({"title": ""}, "title: must be a text of 1 to 200 characters"),
        ({"time": 5}, "time: must be a table of keys, not 5"),
    ],
)
def test_one_thing_wrong(values: dict[str, Any], said: str) -> None:
    (one,) = problems(lambda: read(**values))
    assert one.startswith(said), one


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "game": st.sampled_from(["kalah(4,3)", "manchester", "kalamala"]),
            "time": st.sampled_from([{}, {"move_s": 2.5}, {"game_s": 60.0, "increment_s": 1.0}]),
            "format": st.sampled_from([*FORMAT_TABLES, {"kind": "swiss", "pairs": 2}]).map(
                lambda kind: (
                    {"kind": kind, "challengers": ["a"]} if kind in ("gauntlet", "placement") else kind
                )
            ),
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
def test_a_spec_survives_json(values: dict[str, Any]) -> None:
    spec = read(**values)
    assert TournamentSpec.read(json.loads(json.dumps(spec.to_json()))) == spec


# Who plays


def test_current_versions_come_by_team_then_reference_players() -> None:
    assert [one.name for one in four()] == ["Alpha v2", "beta v1", "gamma v3", "greedy"]


def test_frozen_versions_are_those_of_that_moment() -> None:
    shelf = Shelf(version(1, 1), version(2, 2))
    assert len(chosen_by(read(bots="frozen"), shelf, after(days=-1))) == 2
    assert shelf.asked == after(days=-1)
    chosen_by(read(), shelf, after(days=-1))
    assert shelf.asked is None


@pytest.mark.parametrize(
    ("frozen_at", "said"),
    [
        (None, "bots: the settings of the course say no moment at which versions are frozen: "),
        (after(hours=1), "bots: versions are frozen at 2026-03-02 13:00 UTC, which is still to come"),
    ],
)
def test_nothing_is_frozen_yet(frozen_at: datetime | None, said: str) -> None:
    (one,) = problems(lambda: chosen_by(read(bots="frozen"), Shelf(version(1, 1)), frozen_at))
    assert one.startswith(said)


def test_chosen_versions_come_as_they_were_listed() -> None:
    shelf = Shelf(version(1, 1), version(2, 2), version(4, 1))
    assert [one.name for one in chosen_by(read(bots=[4, 2, 1]), shelf)] == ["beta v4", "Alpha v2", "beta v1"]


def test_versions_that_cannot_play_are_named_all_at_once() -> None:
    shelf = Shelf(version(1, 1, state=VersionState.FAILED), version(2, 2, withdrawn=True), version(5, 9))
    assert problems(lambda: chosen_by(read(bots=[1, 2, 7, 5]), shelf)) == [
        "bots: beta v1 has not qualified: it is failed",
        "bots: Alpha v2 was taken out of use",
        "bots: there is no version 7",
        "bots: there is no version 5",
    ]


# What stays


def test_what_was_fixed_stays_whatever_happens() -> None:
    spec = read(
        game="kalah(4,3)",
        format={"kind": "gauntlet", "challengers": ["BETA", "greedy"]},
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
    assert tournament.format == {"kind": "gauntlet", "challengers": ["beta v1", "greedy"]}
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
    chosen = chosen_by(spec, Shelf(*(version(number, min(number, 3)) for number in range(1, 5))))
    fixed = fixed_by(spec, chosen)
    tournament = tournament_of(fixed, players_of(one.name for one in fixed.field))
    assert isinstance(tournament, Tournament)
    assert tournament.format["kind"] == kind
    assert tournament.openings


def test_who_is_named_must_play() -> None:
    spec = read(
        format={"kind": "gauntlet", "challengers": ["betta", "Alpha", "Alpha v2"]}, rating={"anchor": "x"}
    )
    assert problems(lambda: fixed_by(spec, four())) == [
        "rating.anchor: no bot 'x' plays here; there are Alpha v2, beta v1, gamma v3, greedy",
        "format.challengers: no bot 'betta' plays here; did you mean 'beta'?",
    ]
    spec = read(format={"kind": "gauntlet", "challengers": ["Alpha", "Alpha v2"]})
    assert problems(lambda: fixed_by(spec, four())) == ["format.challengers: names a bot twice"]


def test_a_team_with_several_bots_is_no_name() -> None:
    spec = read(format={"kind": "gauntlet", "challengers": ["beta"]}, bots=[1, 4, 2])
    chosen = chosen_by(spec, Shelf(version(1, 1), version(2, 2), version(4, 1)))
    assert problems(lambda: fixed_by(spec, chosen)) == [
        "format.challengers: 'beta' has several bots here: say beta v1 or beta v4"
    ]


def test_challengers_need_somebody_to_meet() -> None:
    spec = read(format={"kind": "gauntlet", "challengers": ["Alpha", "beta", "gamma", "greedy"]})
    (one,) = problems(lambda: fixed_by(spec, four()))
    assert one.startswith("format.challengers: these are all bots")


@pytest.mark.parametrize("count", [0, 1])
def test_one_bot_is_no_tournament(count: int) -> None:
    (one,) = problems(lambda: fixed_by(read(), four()[:count]))
    assert one.startswith(f"bots: {count} would play, and a tournament needs 2 at least")


def test_a_format_that_cannot_be_played_with_so_many() -> None:
    (one,) = problems(lambda: fixed_by(read(format="sprt"), four()))
    assert one.startswith("format: ")


def test_bots_that_cannot_take_openings_are_named_in_one_sentence() -> None:
    spec = read(openings={"plies": 2, "seed": 1})
    (one,) = problems(lambda: fixed_by(spec, four(), capabilities=()))
    assert one.startswith("openings: Alpha v2, beta v1, gamma v3, greedy cannot take openings: ")
    assert len(fixed_by(read(), four(), capabilities=()).field) == 4


def test_openings_that_end_the_game() -> None:
    spec = read(game="kalah(1,1)", openings={"plies": 50, "seed": 1})
    (one,) = problems(lambda: fixed_by(spec, four()))
    assert one.startswith("openings: no kalah(1,1)")


def test_a_bot_that_is_not_what_was_checked() -> None:
    chosen = four()
    players = players_of(one.name for one in chosen)
    players["beta v1"] = replace(players["beta v1"], digest="other")
    assert problems(lambda: fix(read(), chosen, players, LimitsTable(), "off")) == [
        "bots: beta v1 is not what was checked: have this version checked again"
    ]


def test_bots_that_changed_since_are_refused() -> None:
    chosen = four()
    fixed = fixed_by(read(), chosen)
    players = players_of(one.name for one in chosen)
    players = {name: replace(player, digest="other") for name, player in players.items()}
    found = problems(lambda: tournament_of(fixed, players))
    assert len(found) == 4
    assert found[0] == (
        "Alpha v2 is not made of the same files any more as when it was entered: bring the server's bots "
        "back from a backup, or make a new tournament"
    )
    assert found[-1].endswith("since kalarena has another one now: make a new tournament")


def test_names_too_like_one_another() -> None:
    chosen = [Candidate("a b"), Candidate("a_b"), Candidate("x" * 61)]
    found = problems(lambda: fixed_by(read(), chosen))
    assert found[0] == "bots: the names 'a b' and 'a_b' are too like one another: leave one out"
    assert found[1].startswith(f"bots: '{'x' * 61}' cannot be the name of a bot")


@pytest.mark.parametrize("damage", [{}, {"sandbox": "no"}, {"field": 1}])
def test_a_damaged_note(damage: dict[str, Any]) -> None:
    whole = fixed_by(read(), four()).to_json()
    (one,) = problems(lambda: FixedSpec.read({**whole, **damage} if damage else {}))
    assert one.startswith("what was noted of this tournament is damaged: ")

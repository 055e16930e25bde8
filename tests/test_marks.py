"""Marks: by hand, and what must hold for all tables and rules."""

import csv
import io
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from referee.judge.results import Reason
from tests.builders import make_summary
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import Tally
from tournaments.reporting.marks.marking import ROUNDINGS, BotMark, Scheme, final_mark, marks_of, rounded
from tournaments.reporting.marks.numbers import decimal, shown_rating, to_step
from tournaments.reporting.marks.people import People, Student
from tournaments.reporting.marks.rules import RULE_KINDS, AnyRule, MarkRule, RankBand, RuleMark
from tournaments.reporting.marks.sheet import ADJUSTMENT, FIXED_COLUMNS, Sheet, sheet_of
from tournaments.results.game_summary import GameSummary

NAMES = ["ann", "bob", "cid", "ref"]
STUDENTS = ["ann", "bob", "cid"]


def rule(kind: str, **keys: Any) -> AnyRule:
    """One rule as a file would have it."""
    made: AnyRule = TypeAdapter(MarkRule).validate_python({"name": kind.title(), "kind": kind, **keys})
    return made


def table(games: list[GameSummary], ratings: dict[str, Estimate] | None = None) -> list[Standing]:
    return Tally(NAMES, games).table("points", ratings=ratings)


def marks(
    lines: list[Standing], *rules: AnyRule, bots: list[str] = STUDENTS, **scheme: Any
) -> dict[str, BotMark]:
    return marks_of(lines, bots, Scheme(rules, **scheme))


def given_by(found: dict[str, BotMark]) -> dict[str, float]:
    """Bot -> what its first rule gave."""
    return {name: float(mark.given[0].marks) for name, mark in found.items()}


GAMES = [
    make_summary("ref", "ann", 0),
    make_summary("ann", "ref", 0),
    make_summary("ann", "bob", 0),
    make_summary("bob", "cid", None),
    make_summary("cid", "ref", 1, reason=Reason.TIMEOUT, moves=(4, 4), wall_us=(2_002_400, 1000)),
    make_summary("bob", "ref", None),
]
# Points: ann 2, ref 2.5, bob 1, cid 0.5; ref 2 wins of 4.


# By hand


def test_ranks_are_counted_among_the_marked_alone() -> None:
    found = marks(table(GAMES), rule("rank", bands=[{"top": 1, "marks": 20}, {"top": 2, "marks": 10}]))
    lines = {name: mark.line for name, mark in found.items()}
    assert [(name, line.rank) for name, line in lines.items() if line] == [("ann", 2), ("bob", 3), ("cid", 4)]
    assert [mark.rank for mark in found.values()] == [1, 2, 3]
    assert given_by(found) == {"ann": 20, "bob": 10, "cid": 0}
    assert found["ann"].given[0].why == "rank 1 of 3 marked: top 1"
    assert found["cid"].given[0].why == "rank 3 of 3 marked: in no band"


def test_ties_share_the_better_rank() -> None:
    draw = [make_summary("ann", "bob", None), make_summary("cid", "ref", 1)]
    found = marks(table(draw), rule("rank", bands=[{"top": 1, "marks": 20}, {"top": 2, "marks": 10}]))
    assert {name: mark.rank for name, mark in found.items()} == {"ann": 1, "bob": 1, "cid": 3}
    assert given_by(found) == {"ann": 20, "bob": 20, "cid": 0}


@pytest.mark.parametrize(
    ("percent", "marked", "last"),
    [(50, 4, 2), (50, 5, 3), (50, 1, 1), (10, 5, 1), (33.3, 3, 1), (100, 3, 3), (20, 10, 2)],
)
def test_top_percent_takes_a_place_that_is_cut_in_two(percent: float, marked: int, last: int) -> None:
    band = RankBand(top_percent=percent, marks=1)
    assert [rank for rank in range(1, marked + 1) if band.holds(rank, marked)] == list(range(1, last + 1))


def test_score_against_reference_players() -> None:
    bands = [{"at_least": 0.75, "marks": 10}, {"at_least": 0.5, "marks": 6}, {"marks": 1}]
    found = marks(table(GAMES), rule("score", opponents=["ref"], bands=bands))
    assert given_by(found) == {"ann": 6, "bob": 6, "cid": 1}
    assert found["ann"].given[0].why == "1 of 2 points (0.5) against ref: at least 0.5"
    line = marks(table(GAMES), rule("score", opponents=["ref"], marks=10, to=0.75))
    assert given_by(line) == {"ann": 6.67, "bob": 6.67, "cid": 0}
    assert line["ann"].given[0].why == (
        "1 of 2 points (0.5) against ref: 6.67 of 10 on the line from 0 to 0.75"
    )


def test_no_games_against_the_opponent() -> None:
    found = marks(table([make_summary("ann", "bob", 0)]), rule("score", opponents=["ref"], marks=10))
    assert found["ann"].given[0] == RuleMark(Fraction(0), "no games against ref")


def test_no_games_at_all() -> None:
    rules = [
        rule("rank", bands=[{"marks": 5}]),
        rule("points", marks=10),
        rule("checks", checks=[{"name": "tidy", "faults_at_most": 0, "marks": 5}]),
    ]
    found = marks(table([make_summary("ann", "bob", 0)]), *rules)
    assert found["cid"].given == (RuleMark(Fraction(0), "no games"),) * 3
    assert found["cid"].mark == 0
    assert found["bob"].given[0].marks == 5


def test_points_of_all_that_are_possible() -> None:
    found = marks(table(GAMES), rule("points", marks=10))
    assert given_by(found) == {"ann": 6.67, "bob": 3.33, "cid": 2.5}
    assert found["bob"].given[0].why == "1 of 3 points (0.333): 3.33 of 10 on the line from 0 to 1"


def test_points_with_a_bye() -> None:
    lines = Tally(NAMES, GAMES).table("points", byes={"bob": 1.0})
    assert marks(lines, rule("points", marks=10))["bob"].given[0].marks == 5  # 2 of 4


def test_rating_and_its_lower_end() -> None:
    ratings = {"ann": Estimate(99.6, 20.0, 180.0), "bob": Estimate(99.4, -10.2, 200.0)}
    bands = [{"at_least": 100, "marks": 10}, {"at_least": -10, "marks": 4}]
    lines = table(GAMES, ratings)
    found = marks(lines, rule("rating", bands=bands))
    assert given_by(found) == {"ann": 10, "bob": 4, "cid": 0}  # in whole Elo, as the table has it
    assert found["cid"].given[0].why == "no rating"
    low = marks(lines, rule("rating", bands=bands, use="low"))
    assert given_by(low) == {"ann": 4, "bob": 4, "cid": 0}
    assert low["bob"].given[0].why == "lower end of the rating's interval -10: at least -10"
    line = marks(lines, rule("rating", **{"from": -100, "to": 300, "marks": 8}))
    assert given_by(line) == {"ann": 4, "bob": 3.98, "cid": 0}


CHECKS = rule(
    "checks",
    checks=[
        {"name": "no faults", "faults_at_most": 0, "marks": 5},
        {"name": "plays", "games_at_least": 3, "unique_games_at_least": 3, "marks": 2},
        {"name": "fast", "mean_move_ms_at_most": 1, "marks": 1},
        {"name": "beats ref", "beats": "ref", "marks": 3},
        {"name": "holds ref", "beats": "ref", "at_least": 0.5, "marks": 0.5},
        {"name": "points", "points_at_least": 2, "marks": 0.25},
    ],
)


def test_checks() -> None:
    found = marks(table(GAMES), CHECKS)
    assert given_by(found) == {"ann": 8.75, "bob": 8.5, "cid": 0}
    assert found["cid"].given[0].why == (
        "no faults: failed, 1 lost by a fault (0); plays: failed, 2 games, 2 unique games (0); "
        "fast: failed, 334.1 ms a move (0); beats ref: failed, 0 of 1 points (0) against ref (0); "
        "holds ref: failed, 0 of 1 points (0) against ref (0); points: failed, 0.5 points (0)"
    )


def test_one_half_does_not_beat() -> None:
    won = [make_summary("ann", "ref", 0), make_summary("bob", "ref", None), make_summary("cid", "ref", 1)]
    found = marks(table(won), rule("checks", checks=[{"name": "beats", "beats": "ref", "marks": 3}]))
    assert given_by(found) == {"ann": 3, "bob": 0, "cid": 0}


def test_a_bot_without_a_move_is_not_fast() -> None:
    lost = [make_summary("ann", "ref", 1, moves=(0, 0), wall_us=(0, 0))]
    fast = rule("checks", checks=[{"name": "fast", "mean_move_ms_at_most": 1, "marks": 3}])
    assert marks(table(lost), fast)["ann"].given[0] == RuleMark(Fraction(0), "fast: failed, no move (0)")


def test_bots_that_are_missing() -> None:
    scheme = Scheme([CHECKS, rule("points", marks=10)], minimum=Fraction(1))
    found = marks_of(table(GAMES), STUDENTS, scheme, ["zed"])["zed"]
    assert found.line is None
    assert found.rank is None
    assert found.mark == 1
    assert found.why == "sum 0, at least 1"
    assert {given.why for given in found.given} == {"not in the tournament"}


@pytest.mark.parametrize(
    ("rounding", "marks_of_sums"),
    [
        ("half-up", {"0.24": 0, "0.25": 0.5, "0.75": 1, "-0.25": 0, "1": 1}),
        ("half-even", {"0.25": 0, "0.75": 1, "1.25": 1}),
        ("up", {"0.01": 0.5, "0.5": 0.5, "-0.3": 0}),
        ("down", {"0.49": 0, "0.99": 0.5}),
    ],
)
def test_rounding(rounding: str, marks_of_sums: dict[str, float]) -> None:
    for total, mark in marks_of_sums.items():
        assert rounded(Fraction(total), Fraction(1, 2), rounding) == mark, total


def test_unknown_rounding() -> None:
    with pytest.raises(ValueError, match="no rounding 'near'; there are half-up, half-even, up, down"):
        rounded(Fraction(1), Fraction(1), "near")


def test_the_greatest_mark_holds_after_rounding() -> None:
    scheme = Scheme([], maximum=Fraction("9.7"), step=Fraction(1, 2))
    assert final_mark(Fraction("9.8"), scheme) == (
        Fraction("9.7"),
        "sum 9.8, rounded half-up to a multiple of 0.5: 10, at most 9.7",
    )


@pytest.mark.parametrize(
    ("value", "text"), [("1/3", "0.333"), ("20", "20"), ("-1/2", "-0.5"), ("100", "100"), ("0.0001", "0")]
)
def test_decimals(value: str, text: str) -> None:
    assert decimal(Fraction(value)) == text


# What must hold for all

games_lists = st.lists(
    st.tuples(
        st.permutations(NAMES), st.none() | st.integers(0, 1), st.sampled_from(Reason), st.integers(0, 9)
    ).map(
        lambda drawn: make_summary(
            drawn[0][0], drawn[0][1], drawn[1], reason=drawn[2], moves=(drawn[3], 1), wall_us=(1000, 7)
        )
    ),
    max_size=14,
)
values = st.integers(0, 10_000).map(lambda hundredths: hundredths / 100)
falling = st.lists(values, min_size=2, max_size=5).map(lambda drawn: sorted(drawn, reverse=True))


@st.composite
def rank_rules(draw: st.DrawFn) -> AnyRule:
    given_marks = draw(falling)
    kinds = draw(st.lists(st.sampled_from(["top", "top_percent"]), min_size=len(given_marks) - 1))
    limits = {
        "top": iter(sorted(draw(st.sets(st.integers(1, 6), min_size=5)))),
        "top_percent": iter(sorted(draw(st.sets(st.integers(1, 99), min_size=5)))),
    }
    bands: list[dict[str, float]] = [
        {kind: next(limits[kind]), "marks": value}
        for kind, value in zip(kinds, given_marks[:-1], strict=False)
    ]
    return rule("rank", bands=[*bands, {"marks": given_marks[-1]}])


@st.composite
def level_rules(draw: st.DrawFn, kind: str) -> AnyRule:
    least, most = (-300, 300) if kind == "rating" else (0, 100)
    ends = sorted(draw(st.sets(st.integers(least, most), min_size=2, max_size=4)), reverse=True)
    scaled = [float(end) if kind == "rating" else end / 100 for end in ends]
    keys: dict[str, Any] = {"opponents": ["ref"]} if kind == "score" else {}
    if draw(st.booleans()):
        return rule(kind, **keys, **{"from": scaled[-1], "to": scaled[0], "marks": draw(values)})
    given_marks = draw(falling.filter(lambda drawn: len(drawn) > 1))
    bands = [{"at_least": end, "marks": value} for end, value in zip(scaled, given_marks, strict=False)]
    return rule(kind, **keys, bands=bands)


any_rule = st.one_of(
    rank_rules(), *(level_rules(kind) for kind in ("score", "points", "rating")), st.just(CHECKS)
)
schemes = st.builds(
    Scheme,
    st.lists(any_rule, min_size=1, max_size=4),
    minimum=st.integers(-5, 5).map(Fraction),
    maximum=st.none() | st.integers(6, 60).map(Fraction),
    step=st.sampled_from([Fraction(1, 100), Fraction(1, 4), Fraction(1, 2), Fraction(1)]),
    rounding=st.sampled_from(ROUNDINGS),
)
ratings_of = st.dictionaries(
    st.sampled_from(NAMES),
    st.floats(-400, 400).map(lambda value: Estimate(value, value - 80, value + 80)),
)


@given(games=games_lists, scheme=schemes, ratings=ratings_of)
def test_a_mark_is_the_sum_of_its_parts(
    games: list[GameSummary], scheme: Scheme, ratings: dict[str, Estimate]
) -> None:
    for mark in marks_of(table(games, ratings), STUDENTS, scheme).values():
        assert len(mark.given) == len(scheme.rules)
        assert mark.total == sum(given.marks for given in mark.given)
        assert (mark.total * 100).denominator == 1
        assert all(given.marks >= 0 and given.why for given in mark.given)
        assert scheme.minimum <= mark.mark
        assert scheme.maximum is None or mark.mark <= scheme.maximum
        if mark.mark not in (scheme.minimum, scheme.maximum):
            assert (mark.mark / scheme.step).denominator == 1
            assert abs(mark.mark - mark.total) < scheme.step


@given(first=st.fractions(-20, 60), second=st.fractions(-20, 60), scheme=schemes)
def test_a_greater_sum_is_never_a_lesser_mark(first: Fraction, second: Fraction, scheme: Scheme) -> None:
    low, high = sorted((first, second))
    assert final_mark(low, scheme)[0] <= final_mark(high, scheme)[0]


@given(games=games_lists, places=rank_rules())
def test_a_better_rank_never_gives_fewer_marks(games: list[GameSummary], places: AnyRule) -> None:
    played = [mark for mark in marks(table(games), places).values() if mark.line and mark.line.games]
    for one in played:
        for other in played:
            if one.rank is not None and other.rank is not None and one.rank <= other.rank:
                assert one.given[0].marks >= other.given[0].marks


@pytest.mark.parametrize("kind", ["score", "points", "rating"])
@given(games=games_lists, data=st.data(), ratings=ratings_of)
def test_a_greater_value_never_gives_fewer_marks(
    kind: str, games: list[GameSummary], data: st.DataObject, ratings: dict[str, Estimate]
) -> None:
    def value(line: Standing) -> Fraction | None:
        if kind == "rating":
            return None if line.rating is None else shown_rating(line.rating.value)
        part = line.versus["ref"] if kind == "score" else line
        return Fraction(part.points) / part.games if part.games else None

    made = data.draw(level_rules(kind))
    found = [
        (at, mark.given[0].marks)
        for mark in marks(table(games, ratings), made).values()
        if mark.line is not None and mark.line.games and (at := value(mark.line)) is not None
    ]
    assert [given for _, given in sorted(found)] == sorted(given for _, given in found)


@given(games=games_lists, scheme=schemes, ratings=ratings_of, data=st.data())
def test_the_order_of_games_and_bots_changes_nothing(
    games: list[GameSummary], scheme: Scheme, ratings: dict[str, Estimate], data: st.DataObject
) -> None:
    people = People({name: [Student(name.title())] for name in STUDENTS})
    shuffled = Tally(data.draw(st.permutations(NAMES)), data.draw(st.permutations(games)))
    sheets = [
        sheet_of("Cup", marks_of(lines, STUDENTS, scheme), people, scheme).to_csv()
        for lines in (table(games, ratings), shuffled.table("points", ratings=ratings))
    ]
    assert sheets[0] == sheets[1]


@given(games=games_lists, scheme=schemes, ratings=ratings_of)
def test_a_sheet_agrees_with_the_table(
    games: list[GameSummary], scheme: Scheme, ratings: dict[str, Estimate]
) -> None:
    lines = {line.name: line for line in table(games, ratings)}
    sheet = sheet_of("Cup", marks_of(list(lines.values()), STUDENTS, scheme), None, scheme)
    rows = sheet.to_json()["rows"]
    assert {row["bot"] for row in rows} == set(STUDENTS)
    for row in rows:
        line = lines[row["bot"]]
        told = (row["points"], row["played"], row["unique"], row["rank"], row["faults"], row["mean_move_ms"])
        assert told == (*(line.points, line.games, line.unique, line.rank, line.forfeits, line.mean_move_ms),)
        rating = (row["rating"], row["rating_low"], row["rating_high"])
        assert rating == (line.rating or (None, None, None))
        assert row["sum"] == pytest.approx(sum(part["marks"] for part in row["rules"]))


@given(
    value=st.fractions(-1000, 1000),
    step=st.fractions(Fraction(1, 100), 10),
    rounding=st.sampled_from(ROUNDINGS),
)
def test_rounding_stays_near(value: Fraction, step: Fraction, rounding: str) -> None:
    mark = rounded(value, step, rounding)
    assert (mark / step).denominator == 1
    assert abs(mark - value) < step
    if rounding.startswith("half"):
        assert abs(mark - value) <= step / 2
    assert (mark >= value) or rounding != "up"
    assert (mark <= value) or rounding != "down"
    assert to_step(mark, step) == mark


# Sheets

EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "a,b", 'say "x"', "a\nb", "Größe"]


def sheet(people: People | None = None, **options: Any) -> Sheet:
    scheme = Scheme([rule("points", marks=10)])
    found = marks_of(table(GAMES), STUDENTS, scheme, ["zed", ""])
    marked = {name: mark for name, mark in found.items() if people is not None or name in STUDENTS}
    return sheet_of("Cup", marked, people, scheme, without=found[""], **options)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


PEOPLE = People(
    {
        "cid": [Student("Zoe", "1", {"class": "A"}), Student("Yan", "2", {"class": "A"})],
        "ann": [Student("Max", "3", {"class": "B"})],
        "zed": [Student("Ida", "4", {"class": "B"})],
    },
    ["class"],
    with_ids=True,
    no_bot=[Student("Jim", "5")],
)


def test_a_row_per_student() -> None:
    rows = rows_of(sheet(PEOPLE).to_csv())
    assert list(rows[0])[:5] == ["student", "id", "class", "bot", "points"]
    assert set(rows[0]) - {"class", "Points (marks)", "Points (why)"} == set(FIXED_COLUMNS) - {
        "group",
        "mark_before",
        *ADJUSTMENT,
    }
    shown = [(row["student"], row["id"], row["class"], row["bot"], row["mark"], row["rank"]) for row in rows]
    assert shown == [
        ("Max", "3", "B", "ann", "6.67", "2"),
        ("Yan", "2", "A", "cid", "2.5", "4"),
        ("Zoe", "1", "A", "cid", "2.5", "4"),
        ("Ida", "4", "B", "zed", "0", ""),
        ("Jim", "5", "", "", "0", ""),
    ]
    assert rows[0]["mark (why)"] == "sum 6.67"
    assert [row["student"] for row in rows_of(sheet(PEOPLE, by_name=True).to_csv())] == [
        *("Ida", "Jim", "Max", "Yan", "Zoe"),
    ]


def test_a_row_per_group() -> None:
    rows = rows_of(sheet(PEOPLE, by_group=True).to_csv())
    assert [(row["group"], row["id"], row["class"]) for row in rows] == [
        ("Max", "3", "B"),
        ("Zoe; Yan", "1; 2", "A"),
        ("Ida", "4", "B"),
        ("Jim", "5", ""),
    ]


def test_a_row_per_bot() -> None:
    rows = rows_of(sheet().to_csv())
    assert [row["bot"] for row in rows] == ["ann", "bob", "cid"]
    assert "student" not in rows[0]


@pytest.mark.parametrize("evil", EVIL)
def test_texts_are_harmless_to_spreadsheets(evil: str) -> None:
    people = People({"ann": [Student(evil, evil, {"note": evil})]}, ["note"], with_ids=True)
    scheme = Scheme([TypeAdapter(MarkRule).validate_python({"kind": "points", "name": evil, "marks": 1})])
    text = sheet_of("Cup", marks_of(table(GAMES), ["ann"], scheme), people, scheme).to_csv()
    head, row = csv.reader(io.StringIO(text))
    for cell in (*head, *row):
        assert cell[:1] not in ("=", "+", "@", "\t", "\r")
        assert not cell.startswith("-")
        assert "\n" not in cell


def test_a_negative_rating_stays_a_number() -> None:
    scheme = Scheme([rule("points", marks=1)])
    lines = table(GAMES, {"ann": Estimate(-50.4, -90.0, -10.0)})
    (row,) = rows_of(sheet_of("Cup", marks_of(lines, ["ann"], scheme), None, scheme).to_csv())
    assert (row["rating"], row["rating_low"], row["rating_high"]) == ("-50", "-90", "-10")


def test_json_explains_every_mark() -> None:
    view = json.loads(json.dumps(sheet(PEOPLE).to_json()))
    assert view["rows"][0]["explanation"] == [
        "Points: 6.67 (2 of 3 points (0.667): 6.67 of 10 on the line from 0 to 1)",
        "mark: 6.67 (sum 6.67)",
    ]
    assert view["rules"] == [{"name": "Points", "marks": 10, "kind": "points"}]
    assert view["mark"] == "the sum of all rules, rounded half-up to a multiple of 0.01, at least 0"


def test_every_kind_is_tried_here() -> None:
    assert set(RULE_KINDS) == {"rank", "score", "points", "rating", "checks"}

"""Marks: by hand, and properties of all tables and rules."""

import csv
import io
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from referee.judge.results import Reason
from tests.support.builders import make_summary
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import Tally
from tournaments.reporting.marks.marking import ROUNDINGS, BotMark, Scheme, final_mark, marks_of, rounded
from tournaments.reporting.marks.numbers import decimal, exact, share_of, shown_rating, to_step
from tournaments.reporting.marks.people import People, Student
from tournaments.reporting.marks.rules import AnyRule, MarkRule, RankBand, RuleMark
from tournaments.reporting.marks.sheet import ADJUSTMENT, FIXED_COLUMNS, Sheet, sheet_of
from tournaments.results.game_summary import GameSummary

NAMES = ["ann", "bob", "cid", "ref"]
STUDENTS = ["ann", "bob", "cid"]


def rule(kind: str, **keys: Any) -> AnyRule:
    """One rule as a file would have it."""
    made: AnyRule = TypeAdapter(MarkRule).validate_python({"name": kind.title(), "kind": kind, **keys})
    return made


def marks(
    lines: list[Standing], *rules: AnyRule, bots: list[str] = STUDENTS, **scheme: Any
) -> dict[str, BotMark]:
    return marks_of(lines, bots, Scheme(rules, **scheme))


GAMES = [
    make_summary("ref", "ann", 0),
    make_summary("ann", "ref", 0),
    make_summary("ann", "bob", 0),
    make_summary("bob", "cid", None),
    make_summary("cid", "ref", 1, reason=Reason.TIMEOUT, moves=(4, 4), wall_us=(2_002_400, 1000)),
    make_summary("bob", "ref", None),
]
"""Points: ann 2, ref 2.5, bob 1, cid 0.5; ref has 2 wins of 4."""
RATINGS = {"ann": Estimate(99.6, 20.0, 180.0), "bob": Estimate(99.4, -10.2, 200.0)}


def table(games: list[GameSummary] = GAMES, ratings: dict[str, Estimate] | None = None) -> list[Standing]:
    return Tally(NAMES, games).table("points", ratings=ratings)


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
RANK = rule("rank", bands=[{"top": 1, "marks": 20}, {"top": 2, "marks": 10}])
SCORE = rule(
    "score",
    opponents=["ref"],
    bands=[{"at_least": 0.75, "marks": 10}, {"at_least": 0.5, "marks": 6}, {"marks": 1}],
)
LEVELS = [{"at_least": 100, "marks": 10}, {"at_least": -10, "marks": 4}]


# By hand


@pytest.mark.parametrize(
    ("made", "expected", "bot", "why"),
    [
        # Ranks are counted among the marked bots alone.
        (RANK, (20, 10, 0), "ann", "rank 1 of 3 marked: top 1"),
        (RANK, (20, 10, 0), "cid", "rank 3 of 3 marked: in no band"),
        (SCORE, (6, 6, 1), "ann", "1 of 2 points (0.5) against ref: at least 0.5"),
        (
            rule("score", opponents=["ref"], marks=10, to=0.75),
            (6.67, 6.67, 0),
            "ann",
            "1 of 2 points (0.5) against ref: 6.67 of 10 on the line from 0 to 0.75",
        ),
        (
            rule("points", marks=10),
            (6.67, 3.33, 2.5),
            "bob",
            "1 of 3 points (0.333): 3.33 of 10 on the line from 0 to 1",
        ),
        # Shares are shown with enough decimals to compare them with each limit.
        (
            rule("points", bands=[{"at_least": 0.667, "marks": 10}, {"at_least": 0.5, "marks": 1}]),
            (1, 0, 0),
            "ann",
            "2 of 3 points (0.6667): at least 0.5",
        ),
        (
            rule("points", marks=100, to=0.667),
            (99.95, 49.98, 37.48),
            "ann",
            "2 of 3 points (0.6667): 99.95 of 100 on the line from 0 to 0.667",
        ),
        (
            rule("points", marks=100, to=0.6666),
            (100, 50.01, 37.5),
            "ann",
            "2 of 3 points (0.667): 100 of 100 on the line from 0 to 0.6666",
        ),
        # Ratings are rounded to whole Elo, as in the table.
        (rule("rating", bands=LEVELS), (10, 4, 0), "cid", "no rating"),
        (
            rule("rating", bands=LEVELS, use="low"),
            (4, 4, 0),
            "bob",
            "lower end of the rating's interval -10: at least -10",
        ),
        (
            rule("rating", **{"from": -100, "to": 300, "marks": 8}),
            (4, 3.98, 0),
            "ann",
            "rating 100: 4 of 8 on the line from -100 to 300",
        ),
        (
            CHECKS,
            (8.75, 8.5, 0),
            "cid",
            "no faults: failed, 1 lost by a fault (0); plays: failed, 2 games, 2 unique games (0); "
            "fast: failed, 334.1 ms a move (0); beats ref: failed, 0 of 1 points (0) against ref (0); "
            "holds ref: failed, 0 of 1 points (0) against ref (0); points: failed, 0.5 points (0)",
        ),
    ],
)
def test_rules(made: AnyRule, expected: tuple[float, ...], bot: str, why: str) -> None:
    found = marks(table(ratings=RATINGS), made)
    assert tuple(float(mark.given[0].marks) for mark in found.values()) == expected
    assert found[bot].given[0].why == why


def test_a_check_that_is_missed_by_less_than_three_decimals() -> None:
    beats = rule("checks", checks=[{"name": "beats", "beats": "ref", "at_least": 0.667, "marks": 3}])
    games = [make_summary("ann", "ref", winner) for winner in (0, 0, 1)]
    found = marks(table(games), beats)["ann"].given[0]
    assert found.marks == 0
    assert found.why == "beats: failed, 2 of 3 points (0.6667) against ref (0)"


@pytest.mark.parametrize(
    ("games", "made", "expected"),
    [
        # Tied bots share the better rank.
        ([make_summary("ann", "bob", None), make_summary("cid", "ref", 1)], RANK, (20, 20, 0)),
        # One half does not beat.
        (
            [make_summary("ann", "ref", 0), make_summary("bob", "ref", None), make_summary("cid", "ref", 1)],
            rule("checks", checks=[{"name": "beats", "beats": "ref", "marks": 3}]),
            (3, 0, 0),
        ),
        # A bot without a move is not fast; bots without a game against the opponents have no score.
        (
            [make_summary("ann", "ref", 1, moves=(0, 0), wall_us=(0, 0))],
            rule("checks", checks=[{"name": "fast", "mean_move_ms_at_most": 1, "marks": 3}]),
            (0, 0, 0),
        ),
        ([make_summary("ann", "bob", 0)], SCORE, (0, 0, 0)),
    ],
)
def test_special_cases(games: list[GameSummary], made: AnyRule, expected: tuple[float, ...]) -> None:
    found = marks(table(games), made)
    assert tuple(float(mark.given[0].marks) for mark in found.values()) == expected


def test_bots_without_a_game_and_bots_that_are_missing() -> None:
    rules = [
        rule("rank", bands=[{"marks": 5}]),
        rule("points", marks=10),
        rule("checks", checks=[{"name": "tidy", "faults_at_most": 0, "marks": 5}]),
    ]
    lines = table([make_summary("ann", "bob", 0)])
    found = marks_of(lines, STUDENTS, Scheme(rules, minimum=Fraction(1)), ["zed"])
    assert found["bob"].given[0].marks == 5
    assert found["cid"].given == (RuleMark(Fraction(0), "no games"),) * 3
    assert found["cid"].mark == 1
    zed = found["zed"]
    assert (zed.line, zed.rank) == (None, None)
    assert (zed.mark, zed.why) == (Fraction(1), "sum 0, at least 1")
    assert {given.why for given in zed.given} == {"not in the tournament"}


def test_points_with_a_bye() -> None:
    lines = Tally(NAMES, GAMES).table("points", byes={"bob": 1.0})
    assert marks(lines, rule("points", marks=10))["bob"].given[0].marks == 5  # 2 of 4


@pytest.mark.parametrize(
    ("percent", "marked", "last"),
    [(50, 4, 2), (50, 5, 3), (50, 1, 1), (10, 5, 1), (33.3, 3, 1), (100, 3, 3), (20, 10, 2)],
)
def test_top_percent_takes_a_place_that_is_cut_in_two(percent: float, marked: int, last: int) -> None:
    band = RankBand(top_percent=percent, marks=1)
    assert [rank for rank in range(1, marked + 1) if band.holds(rank, marked)] == list(range(1, last + 1))


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


# Properties of all tables and rules

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


@settings(max_examples=40)
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


@pytest.mark.parametrize("kind", ["rank", "score", "points", "rating"])
@settings(max_examples=40)
@given(games=games_lists, data=st.data(), ratings=ratings_of)
def test_a_better_value_never_gives_fewer_marks(
    kind: str, games: list[GameSummary], data: st.DataObject, ratings: dict[str, Estimate]
) -> None:
    def value(mark: BotMark) -> Fraction | None:
        assert mark.line is not None
        if kind == "rank":
            return None if mark.rank is None else Fraction(-mark.rank)
        if kind == "rating":
            return None if mark.line.rating is None else shown_rating(mark.line.rating.value)
        part = mark.line.versus["ref"] if kind == "score" else mark.line
        return Fraction(part.points) / part.games if part.games else None

    made = data.draw(rank_rules() if kind == "rank" else level_rules(kind))
    found = [
        (at, mark.given[0].marks)
        for mark in marks(table(games, ratings), made).values()
        if mark.line is not None and mark.line.games and (at := value(mark)) is not None
    ]
    assert [given for _, given in sorted(found)] == sorted(given for _, given in found)


@given(
    halves=st.integers(0, 4000),
    games=st.integers(1, 2000),
    limit=st.decimals(0, 1, places=4).map(float) | st.floats(0, 1),
)
def test_a_share_is_shown_on_its_side_of_a_limit(halves: int, games: int, limit: float) -> None:
    halves = min(halves, 2 * games)
    share, words = share_of(halves / 2, games, [exact(limit)])
    shown = Fraction(words.partition("(")[2].removesuffix(")"))
    assert share == Fraction(halves, 2 * games)
    assert (shown < exact(limit), shown > exact(limit)) == (share < exact(limit), share > exact(limit))


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
    found = marks_of(table(), STUDENTS, scheme, ["zed", ""])
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


@pytest.mark.parametrize(
    ("options", "columns", "expected"),
    [
        (
            {},
            ["student", "id", "class", "bot", "mark", "rank"],
            [
                ("Max", "3", "B", "ann", "6.67", "2"),
                ("Yan", "2", "A", "cid", "2.5", "4"),
                ("Zoe", "1", "A", "cid", "2.5", "4"),
                ("Ida", "4", "B", "zed", "0", ""),
                ("Jim", "5", "", "", "0", ""),
            ],
        ),
        ({"by_name": True}, ["student"], [("Ida",), ("Jim",), ("Max",), ("Yan",), ("Zoe",)]),
        (
            {"by_group": True},
            ["group", "id", "class"],
            [("Max", "3", "B"), ("Zoe; Yan", "1; 2", "A"), ("Ida", "4", "B"), ("Jim", "5", "")],
        ),
    ],
)
def test_rows(options: dict[str, bool], columns: list[str], expected: list[tuple[str, ...]]) -> None:
    rows = rows_of(sheet(PEOPLE, **options).to_csv())
    assert [tuple(row[name] for name in columns) for row in rows] == expected


def test_a_rating_just_below_zero_is_zero_as_in_the_table() -> None:
    scheme = Scheme([rule("points", marks=10)])
    lines = table(ratings={"ann": Estimate(-0.3, -40.2, 0.4)})
    row, *_ = rows_of(sheet_of("Cup", marks_of(lines, ["ann"], scheme), None, scheme).to_csv())
    assert [row[name] for name in ("rating", "rating_low", "rating_high")] == ["0", "-40", "0"]


def test_columns() -> None:
    row, *_ = rows_of(sheet(PEOPLE).to_csv())
    assert list(row)[:5] == ["student", "id", "class", "bot", "points"]
    fixed = set(FIXED_COLUMNS) - {"group", "mark_before", *ADJUSTMENT}
    assert set(row) - {"class", "Points (marks)", "Points (why)"} == fixed
    assert row["mark (why)"] == "sum 6.67"
    # Without students there is a row for each bot.
    rows = rows_of(sheet().to_csv())
    assert [row["bot"] for row in rows] == ["ann", "bob", "cid"]
    assert "student" not in rows[0]


@pytest.mark.parametrize("evil", EVIL)
def test_texts_are_harmless_to_spreadsheets(evil: str) -> None:
    """A negative rating stays a number."""
    people = People({"ann": [Student(evil, evil, {"note": evil})]}, ["note"], with_ids=True)
    scheme = Scheme([TypeAdapter(MarkRule).validate_python({"kind": "points", "name": evil, "marks": 1})])
    lines = table(ratings={"ann": Estimate(-50.4, -90.0, -10.0)})
    text = sheet_of("Cup", marks_of(lines, ["ann"], scheme), people, scheme).to_csv()
    head, row = csv.reader(io.StringIO(text))
    for name, cell in zip(head, row, strict=True):
        is_rating = name.startswith("rating")
        assert name[:1] not in ("=", "+", "-", "@", "\t", "\r")
        assert cell[:1] not in ("=", "+", "@", "\t", "\r", "" if is_rating else "-")
        assert "\n" not in name + cell
    assert row[head.index("rating") : head.index("rating") + 3] == ["-50", "-90", "-10"]


def test_json_explains_every_mark() -> None:
    view = json.loads(json.dumps(sheet(PEOPLE).to_json()))
    assert view["rows"][0]["explanation"] == [
        "Points: 6.67 (2 of 3 points (0.667): 6.67 of 10 on the line from 0 to 1)",
        "mark: 6.67 (sum 6.67)",
    ]
    assert view["rules"] == [{"name": "Points", "marks": 10, "kind": "points"}]
    assert view["mark"] == "the sum of all rules, rounded half-up to a multiple of 0.01, at least 0"

"""Swiss tournaments that give points for matches instead of games."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.results.ruling_helpers import do, is_clean, line_of, run
from tests.schedule.test_swiss import perfect_matchings, price
from tests.support.builders import invoke, make_summary, write_tournament
from tests.support.schedules import VOID, bots, play
from tournaments.analysis.standing import Standing
from tournaments.analysis.standings import NamedMatch, Tally
from tournaments.config.load import ConfigError, load_tournament
from tournaments.schedule.formats.swiss import Swiss
from tournaments.schedule.formats.swiss_pairing import Table
from tournaments.schedule.pairing import NOBODY, Entrant, History, MatchScore, Pairing, Result

CUP = (
    'name = "Cup"\ngame = "kalah(3,2)"\nrounds = 3\nbots = ["first_legal", "greedy", "random:1"]\n'
    'format = {kind = "swiss", scoring = "match"}\n'
)
CUP_OF_GAMES = CUP.replace('"match"', '"games"')
SEEDS = st.integers(0, 2**32)


def by_chance(key: str, salt: int) -> Result:
    """Of 16 games, 1 void, 4 drawn."""
    noise = sha256(f"{salt}/{key}".encode()).digest()
    return Result(None if noise[0] % 4 == 0 else noise[1] % 2, counts=noise[2] % 16 > 0)


def naive_scores(games: Sequence[Pairing], results: Mapping[str, Result], table: Table) -> Counter[int]:
    """The match points of one round of which every game has a result, computed plainly."""
    found: Counter[int] = Counter()
    for first, second in table:
        if second == NOBODY:
            found[first] += 2
            continue
        points = {first: 0.0, second: 0.0}
        for game in games:
            result = results[game.key]
            if {game.first, game.second} == {first, second} and result.counts:
                for side, bot in enumerate((game.first, game.second)):
                    points[bot] += 0.5 if result.winner is None else result.winner == side
        for bot, other in ((first, second), (second, first)):
            if any(points.values()):
                found[bot] += 1 + (points[bot] > points[other]) - (points[bot] < points[other])
    return found


@settings(max_examples=25)
@given(count=st.integers(2, 8), rounds=st.integers(1, 7), pairs=st.integers(1, 2), seed=SEEDS)
def test_rounds_are_paired_by_match_points(count: int, rounds: int, pairs: int, seed: int) -> None:
    """Each round is as good as brute force can make it, where the score is the match points."""
    swiss = Swiss([Entrant()] * count, rounds, seed, pairs=pairs, scoring="match")
    results = play(swiss, lambda game: by_chance(game.key, seed))
    games = swiss.pairings(History(results))
    everybody = [*range(count), NOBODY] if count % 2 else list(range(count))
    scores = dict.fromkeys(range(count), 0)
    past: list[Table] = []
    for number in range(1, rounds + 1):
        of_round = [game for game in games if game.round == number]
        table = tuple((game.first, game.second) for game in of_round[:: 2 * pairs])
        byes = set(range(count)) - {bot for pair in table for bot in pair}
        table += tuple((bot, NOBODY) for bot in byes)
        chosen = [frozenset(pair) for pair in table]
        assert price(chosen, scores, past) == min(
            price(match, scores, past) for match in perfect_matchings(everybody)
        )
        past.append(table)
        for bot, points in naive_scores(of_round, results, table).items():
            scores[bot] += points
    matches = swiss.matches(History(results))
    assert matches is not None
    total: Counter[int] = Counter(dict.fromkeys(range(count), 0))
    for match in matches:
        total[match.first] += match.points[0]
        if match.second != NOBODY:
            total[match.second] += match.points[1]
    assert total == Counter(scores)


def test_a_narrow_win_is_worth_as_much_as_a_clear_one() -> None:
    """Where points are given for games, those of a narrow win decide who is met next."""
    first = Swiss(bots(8), 2).due(History())
    clear = {game.key: Result(0 if game.first < game.second else 1) for game in first}
    narrow = clear | {first[0].key: Result(None), first[-1].key: Result(None)}

    def second_round(scoring: str, results: Mapping[str, Result]) -> set[frozenset[int]]:
        due = Swiss(bots(8), 2, scoring=scoring).due(History(results))
        return {frozenset((game.first, game.second)) for game in due}

    assert second_round("match", narrow) == second_round("match", clear) == second_round("games", clear)
    narrow_winners = {min(game.first, game.second) for game in (first[0], first[-1])}
    assert narrow_winners in second_round("games", narrow)


ONE, BACK = (game.key for game in Swiss(bots(2), 1, scoring="match").due(History()))
WON, DRAWN, LOST = Result(0), Result(None), Result(1)


@pytest.mark.parametrize(
    ("results", "gone", "points"),
    [
        ((WON, None), "", None),
        ((WON, DRAWN), "", (2, 0)),
        ((VOID, LOST), "", (2, 0)),
        ((VOID, VOID), "", (0, 0)),
        # The first bot withdrew: the opponent wins the games that were not played.
        ((None, None), "first", (0, 2)),
        ((WON, None), "first", (1, 1)),
        ((DRAWN, None), "first", (0, 2)),
        ((None, None), "both", (0, 0)),
    ],
)
def test_points_of_a_match(
    results: tuple[Result | None, Result | None], gone: str, points: tuple[int, int] | None
) -> None:
    """A match is played if one of its games counts."""
    first = Swiss(bots(2), 1, scoring="match").due(History())[0].first
    left = {"": (), "first": (first,), "both": (0, 1)}[gone]
    swiss = Swiss(bots(2, **{f"b{bot}": 1 for bot in left}), 1, scoring="match")
    known = {key: result for key, result in zip((ONE, BACK), results, strict=True) if result is not None}
    played = any(result.counts for result in known.values())
    expected = [] if points is None else [MatchScore(first, 1 - first, points, is_played=played)]
    assert swiss.matches(History(known)) == expected
    assert Swiss(bots(2), 1).matches(History(known)) is None


@pytest.mark.parametrize("pairs", [1, 3])
def test_a_bye_is_a_match_won(pairs: int) -> None:
    swiss = Swiss(bots(3), 1, pairs=pairs, scoring="match")
    history = History({game.key: DRAWN for game in swiss.due(History())})
    (bye,) = [match for match in swiss.matches(history) or () if match.second == NOBODY]
    assert (bye.points, bye.is_played) == ((2, 0), False)
    assert swiss.byes(history) == {bye.first: 2.0 * pairs}


# The table


NAMES = ("ann", "bob", "cid", "dan")


def table_of(matches: Sequence[NamedMatch], ranking: str | Sequence[str] = "swiss-match") -> list[Standing]:
    """Each match is one game here, won by the bot with more match points."""
    games = [
        make_summary(match.names[0], match.names[1], None if one == other else int(one < other))
        for match in matches
        for one, other in [match.points]
        if match.names[1] is not None and match.is_played
    ]
    return Tally(NAMES, games).table(ranking, matches=matches)


@pytest.mark.parametrize(
    ("text", "ranking"),
    [(CUP, "swiss-match"), (CUP_OF_GAMES, "swiss"), (CUP + 'ranking = "points"\n', "points")],
)
def test_the_ranking_follows_the_scoring(tmp_path: Path, text: str, ranking: str) -> None:
    tournament = load_tournament(write_tournament(tmp_path, text))
    assert tournament.ranking == ranking
    if text == CUP_OF_GAMES:  # as stores recorded it before there was a choice
        assert tournament.identity()["format"] == "swiss, pairs 1"
        assert tournament.format == {"kind": "swiss", "pairs": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            CUP_OF_GAMES + 'ranking = "swiss-match"\n',
            "ranking: 'match-points' needs a Swiss that",
        ),
        (CUP_OF_GAMES + 'ranking = ["wins", "match-points"]\n', "ranking: 'match-points' needs a Swiss that"),
        (CUP.replace('"match"', '"goals"'), r"format\.scoring: must be 'games' or 'match', not 'goals'"),
    ],
)
def test_refused_scorings(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_tournament(write_tournament(tmp_path, text))


def test_match_points_come_first_and_then_points() -> None:
    matches = [
        NamedMatch(("ann", "bob"), (2, 0), is_played=True),
        NamedMatch(("cid", None), (2, 0), is_played=False),
        NamedMatch(("bob", "dan"), (1, 1), is_played=True),
    ]
    table = table_of(matches)
    assert [(line.name, line.match_points, line.points) for line in table] == [
        *(("ann", 2, 1), ("cid", 2, 0)),
        *(("bob", 1, 0.5), ("dan", 1, 0.5)),
    ]
    assert {line.match_points for line in Tally(NAMES).table("points")} == {None}


@given(
    played=st.lists(
        st.tuples(st.permutations(NAMES), st.sampled_from([(2, 0), (1, 1), (0, 2), (0, 0)]), st.booleans()),
        max_size=12,
    ),
    byes=st.lists(st.sampled_from(NAMES), max_size=4),
)
def test_tie_breaks_are_of_match_points(
    played: list[tuple[list[str], tuple[int, int], bool]], byes: list[str]
) -> None:
    matches = [
        NamedMatch((names[0], names[1]), points, is_played and points != (0, 0))
        for names, points, is_played in played
    ]
    matches += [NamedMatch((name, None), (2, 0), is_played=False) for name in byes]
    total: Counter[str | None] = Counter()
    for names, (one, other), _ in matches:
        total.update({names[0]: one})
        total.update({names[1]: other})
    for line in table_of(matches, ["match-points", "buchholz", "sonneborn-berger"]):
        met = [
            (names[1 - side], points[side])
            for names, points, is_played in matches
            if is_played and line.name in names
            for side in [names.index(line.name)]
        ]
        walkovers = sum(
            not is_played and points[names.index(line.name)] > 0
            for names, points, is_played in matches
            if line.name in names
        )
        assert line.match_points == total[line.name]
        buchholz = sum(total[other] for other, _ in met) + walkovers * total[line.name]
        assert line.criteria["buchholz"] == buchholz
        assert line.criteria["sonneborn-berger"] == sum(points * total[other] for other, points in met)


def test_head_to_head_of_matches() -> None:
    matches = [
        NamedMatch(("ann", "bob"), (0, 2), is_played=True),
        NamedMatch(("ann", "cid"), (2, 0), is_played=True),
        NamedMatch(("bob", "cid"), (0, 2), is_played=True),
    ]
    table = table_of(matches[:2], ["match-points", "head-to-head"])
    assert [(line.name, line.rank) for line in table[:2]] == [("bob", 1), ("ann", 2)]
    circle = table_of(matches, ["match-points", "head-to-head"])
    assert [line.rank for line in circle[:3]] == [1, 1, 1]


# The file and the commands


@pytest.mark.slow
def test_a_tournament_with_match_points(tmp_path: Path) -> None:
    """Each bot has one bye of 2 match points; the table shows both columns everywhere."""
    file = write_tournament(tmp_path, CUP)
    out = tmp_path / "out"
    run(out)
    rows = list(csv.DictReader(io.StringIO(do("table", out, "--format", "csv"))))
    assert list(rows[0])[:4] == ["rank", "name", "match_points", "points"]
    assert sum(int(row["match_points"]) for row in rows) == 2 * 3 + 2 * 3
    lines = json.loads(do("table", out, "--format", "json"))["standings"]
    assert [str(line["match_points"]) for line in lines] == [row["match_points"] for row in rows]
    assert [line["criteria"]["match-points"] for line in lines] == [line["match_points"] for line in lines]
    keys = [(line["match_points"], line["points"]) for line in lines]
    assert keys == sorted(keys, reverse=True)
    assert "match points  points" in do("table", out)
    is_clean(out)
    assert "Match points" in (report := report_of(out))
    assert "points are given for: " in report
    file.write_text(CUP_OF_GAMES + 'ranking = "points"\n')
    result = invoke("tournament", "run", file, "--out", out)
    assert result.exit_code == 2
    assert "its format is swiss, pairs 1, scoring match, now it is swiss, pairs 1" in result.output
    do("withdraw", out, "greedy", "--annul", "--why", "it was copied")
    assert line_of(out, "greedy")["match_points"] == 2, "of its bye"
    is_clean(out)


def report_of(out: Path) -> str:
    result = invoke("tournament", "report", out, "--out", out / "report")
    assert result.exit_code == 0, result.output
    return (out / "report" / "index.html").read_text()

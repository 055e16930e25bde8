"""``format``, ``seed``, ``ranking``, ``rating`` of a tournament file: values, errors, and later changes."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_tournament
from tests.support.schedules import play
from tournaments.analysis.tie_breaks import CRITERIA, PRESETS
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.load import ConfigError, load_tournament
from tournaments.config.tournament import MAX_SPRT_OPENINGS, Tournament
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store, StoreError
from tournaments.running.runner import open_run
from tournaments.schedule.pairing import Entrant, History, Result
from tournaments.schedule.plan import FORMATS

TWO = 'bots = ["first_legal", "greedy"]\n'
GAUNTLET = 'format = {kind = "gauntlet", challengers = ["greedy"]}\n'
THREE = 'bots = ["first_legal", "greedy", "random"]\n'
SPRT = {"elo0": 0.0, "elo1": 50.0, "alpha": 0.05, "beta": 0.05, "max_games": 2000, "batch": 16}


def load(folder: Path, text: str) -> Tournament:
    return load_tournament(write_tournament(folder, text))


def problem(folder: Path, text: str) -> str:
    """Return the only line of the error, without the path."""
    path = write_tournament(folder, text)
    with pytest.raises(ConfigError) as raised:
        load_tournament(path)
    (line,) = str(raised.value).splitlines()
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


def test_every_format_has_a_table() -> None:
    assert set(FORMAT_TABLES) == set(FORMATS)


KNOCKOUT = {"pairs": 1, "extra_pairs": 2, "third_place": True}


@pytest.mark.parametrize(
    ("text", "format_", "rounds", "ranking"),
    [
        (THREE + 'format = "round-robin"', {}, 1, "points"),
        (THREE + 'format = "swiss"', {"pairs": 1}, 2, "swiss"),
        (THREE + 'format = "ladder"', {"pairs": 1}, 3, "points"),
        (THREE + GAUNTLET, {"challengers": ["greedy"]}, 1, "score"),
        (THREE + 'format = "knockout"', {**KNOCKOUT, "seeding": "order"}, 1, "points"),
        (
            THREE + 'format = {kind = "groups", groups = 1}',
            {"groups": 1, "advance": 2, "final": "knockout", **KNOCKOUT},
            1,
            "points",
        ),
        (TWO + 'format = "sprt"', SPRT, 1, "points"),
    ],
)
def test_defaults_of_each_format(
    tmp_path: Path, text: str, format_: dict[str, Any], rounds: int, ranking: str
) -> None:
    cup = load(tmp_path, text)
    assert cup.format == {"kind": cup.format["kind"], **format_}
    assert (cup.rounds, cup.ranking, cup.seed, cup.anchor, cup.anchor_rating) == (rounds, ranking, 0, None, 0)
    # Its plan schedules games.
    summary = TournamentResults.of(cup)
    assert summary.schedule.due(summary.history)


@pytest.mark.parametrize(
    ("bots", "rounds"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (16, 4), (17, 5), (40, 6)]
)
def test_a_swiss_has_as_many_rounds_as_a_knockout_would(tmp_path: Path, bots: int, rounds: int) -> None:
    text = "bots = [" + ", ".join(f'"random:{number}"' for number in range(bots)) + "]\n"
    assert load(tmp_path, text + 'format = "swiss"').rounds == rounds
    assert load(tmp_path, text + 'format = "swiss"\nrounds = 7').rounds == 7


@pytest.mark.parametrize(
    "text",
    [
        'kind = "swiss"\npairs = 100',
        'kind = "ladder"\npairs = 2',
        'kind = "knockout"\npairs = 3\nextra_pairs = 0\nthird_place = false\nseeding = "random"',
        'kind = "groups"\ngroups = 1\nadvance = 2\nfinal = "round-robin"',
        'kind = "gauntlet"\nchallengers = ["random", "greedy"]',
    ],
)
def test_parameters(tmp_path: Path, text: str) -> None:
    for table in ("[format]\n" + text, f"format = {{{text.replace(chr(10), ', ')}}}"):
        cup = load(tmp_path, f"seed = -5\n{THREE}{table}")
        assert cup.format.items() >= tomllib.loads(text).items()
        assert cup.seed == -5


def test_parameters_of_a_sequential_test(tmp_path: Path) -> None:
    given = "elo0 = -5, elo1 = 5.5, alpha = 0.1, beta = 0.2, max_games = 100, batch = 4"
    cup = load(tmp_path, TWO + f'format = {{kind = "sprt", {given}}}')
    assert cup.format == {"kind": "sprt", **tomllib.loads(given.replace(", ", "\n"))}


ALL_FORMATS = "round-robin, gauntlet, swiss, ladder, knockout, groups, sprt, placement"
NO_NAME = f"format: takes the name of a format, or a table with its name as kind; there are {ALL_FORMATS}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('"swis"', "format: there is no format 'swis'; did you mean 'swiss'?"),
        ('{kind = "knock-out"}', "format: there is no format 'knock-out'; did you mean 'knockout'?"),
        ('"xyzzy"', f"format: there is no format 'xyzzy'; there are {ALL_FORMATS}"),
        *((text, NO_NAME) for text in ("5", "[]", "{}", "{pairs = 2}", "{kind = 5}", '{kind = ["swiss"]}')),
        ('{kind = "swiss", pears = 2}', "format.pears: unknown key; did you mean 'pairs'?"),
        ('{kind = "round-robin", pairs = 2}', "format.pairs: unknown key; there are kind"),
        ('{kind = "ladder", challengers = ["greedy"]}', "format.challengers: unknown key; there are kind, p"),
        ('{kind = "swiss", pairs = 0}', "format.pairs: must be greater than or equal to 1, not 0"),
        ('{kind = "ladder", pairs = 101}', "format.pairs: must be less than or equal to 100, not 101"),
        ('{kind = "swiss", pairs = "2"}', "format.pairs: must be a whole number, not '2'"),
        ('{kind = "swiss", pairs = true}', "format.pairs: must be a whole number, not True"),
        ('"gauntlet"', "format.challengers: is missing"),
        ('{kind = "gauntlet", challengers = []}', "format.challengers: needs at least one bot"),
        (
            '{kind = "gauntlet", challengers = "greedy"}',
            "format.challengers: must be a list, such as [\"greedy\"], not 'greedy'",
        ),
        ('{kind = "gauntlet", challengers = [1]}', "format.challengers[1]: must be a text, not 1"),
        ('{kind = "gauntlet", challengers = ["greedy", "greedy"]}', "format.challengers: names a bot twice"),
        ('{kind = "gauntlet", challengers = ["gredy"]}',
         "format.challengers: there is no bot 'gredy'; did you mean 'greedy'?"),
        ('{kind = "gauntlet", challengers = ["random", "zz"]}',
         "format.challengers: there is no bot 'zz'; there are first_legal, greedy, random"),
        ('{kind = "gauntlet", challengers = ["greedy", "first_legal", "random"]}',
         "format.challengers: these are all bots, and challengers do not meet one another: leave one out"),
        ('"knockout"\nrounds = 2', "format 'knockout' goes on until it is decided: leave rounds out"),
        ('"sprt"\nrounds = 2', "format 'sprt' goes on until it is decided: leave rounds out"),
        ('{kind = "knockout", seeding = "rnd"}', "format.seeding: must be 'order' or 'random', not 'rnd'"),
        ('{kind = "knockout", extra_pairs = -1}', "format.extra_pairs: must be greater than or equal to 0, "),
        ('{kind = "groups", groups = 2}', "format: groups = 2 with 3 bots: each group needs at least 2 bots"),
        ('{kind = "groups", groups = 0}', "format.groups: must be greater than or equal to 1, not 0"),
        ('{kind = "groups", final = "swiss"}', "format.final: must be 'knockout' or 'round-robin', not 'swi"),
        ('"sprt"', "format: a sequential test is between 2 bots, not 3"),
        ('{kind = "sprt", elo0 = 5, elo1 = 5}', "format: elo1 must be more than elo0, not 5 and 5"),
        ('{kind = "sprt", elo0 = 50.5}', "format: elo1 must be more than elo0, not 50 and 50.5"),
        ('{kind = "sprt", elo1 = nan}', "format.elo1: must be a finite number, not nan"),
        ('{kind = "sprt", alpha = 0.5}', "format.alpha: must be less than 0.5, not 0.5"),
        ('{kind = "sprt", beta = 0}', "format.beta: must be greater than or equal to 0.000000000001, not 0"),
        ('{kind = "sprt", alpha = 1e-320}', "format.alpha: must be greater than or equal to 0.000000000001"),
        ('{kind = "sprt", batch = 3}', "format.batch: must be a multiple of 2, not 3"),
        ('{kind = "sprt", max_games = 1}', "format.max_games: must be greater than or equal to 2, not 1"),
    ],
)  # fmt: skip
def test_mistakes_in_a_format(tmp_path: Path, text: str, wrong: str) -> None:
    assert problem(tmp_path, f"{THREE}format = {text}").startswith(wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('seed = "x"', "seed: must be a whole number, not 'x'"),
        ("seed = 1.5", "seed: must be a whole number, not 1.5"),
        ('[rating]\nanchor = "gredy"', "rating.anchor: there is no bot 'gredy'; did you mean 'greedy'?"),
        ("[rating]\nanchor = 5", "rating.anchor: must be a text, not 5"),
        ('[rating]\nanchr = "greedy"', "rating.anchr: unknown key; did you mean 'anchor'?"),
        ("[rating]\nvalue = inf", "rating.value: must be a finite number, not inf"),
        ("ranking = []", "ranking: a ranking needs criteria, each of them once"),
        ('ranking = ["wins", "points", "wins"]', "ranking: a ranking needs criteria, each of them once"),
        ('ranking = ["bucholz"]', "ranking: no criterion 'bucholz'; did you mean 'buchholz'?"),
        ('ranking = ["xyzzy"]', f"ranking: no criterion 'xyzzy'; there are {', '.join(CRITERIA)}"),
        ('ranking = ["wins", 3]', f"ranking: must be one of {', '.join(PRESETS)}, or a list of points, "),
        ("ranking = 3", f"ranking: must be one of {', '.join(PRESETS)}, or a list of points, "),
        ('ranking = "swis"',
         f"ranking: must be one of {', '.join(PRESETS)}, or a list of criteria, not 'swis'; did you mean '"),
        ('ranking = "buchholz"',
         f"ranking: must be one of {', '.join(PRESETS)}, or a list of criteria, not 'buchholz'; "
         "a list may be ['buchholz']"),
    ],
)  # fmt: skip
def test_mistakes_in_the_other_keys(tmp_path: Path, text: str, wrong: str) -> None:
    assert problem(tmp_path, THREE + text).startswith(wrong)


def test_rankings_and_anchors(tmp_path: Path) -> None:
    matches = THREE + 'format = {kind = "swiss", scoring = "match"}\n'
    for preset in PRESETS:
        assert load(tmp_path, f'{matches}ranking = "{preset}"').ranking == preset
    listed = load(tmp_path, f"{matches}ranking = {sorted(CRITERIA)}").ranking
    assert listed == tuple(sorted(CRITERIA))
    cup = load(
        tmp_path, f'{THREE}format = "swiss"\nranking = "points"\n[rating]\nanchor = "greedy"\nvalue = 1500'
    )
    assert (cup.ranking, cup.anchor, cup.anchor_rating) == ("points", "greedy", 1500.0)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (THREE + "rounds = 4\n", 4),
        (THREE + 'format = {kind = "swiss", pairs = 3}\n', 6),
        (THREE + 'format = "knockout"\n', 6),
        (THREE + 'format = {kind = "groups", groups = 1}\n', 4),
        (TWO + 'format = {kind = "sprt", max_games = 20}\n', 10),
        (TWO + 'format = "sprt"\n', 1000),
        (TWO + 'format = {kind = "sprt", max_games = 100000}\n', MAX_SPRT_OPENINGS),
    ],
)
def test_as_many_random_openings_as_are_needed(tmp_path: Path, text: str, most: int) -> None:
    cup = load(tmp_path, text + 'game = "manchester"\nopenings = {random = {plies = 8, seed = 1}}')
    assert len(cup.openings) == most


def conclusion(cup: Tournament) -> str:
    """Return the end of a test in which the first bot wins, and plays each opening always alike."""
    schedule = cup.plan.schedule(cup.names, [Entrant(), Entrant()])
    results = play(
        schedule, lambda game: Result(game.first, line=f"{cup.opening(game.opening)}/{game.first}")
    )
    return schedule.conclusion(History(results))


def test_an_opening_that_is_listed_often_is_no_new_evidence_for_a_test(tmp_path: Path) -> None:
    lines = ["1"] * 30 + ["2"] * 30 + ["3"]
    (tmp_path / "openings.txt").write_text("\n".join(lines))
    cup = load(tmp_path, TWO + 'format = "sprt"\nopenings = "openings.txt"')
    assert "; different pairs: 3 of 24 (" in conclusion(cup)
    assert cup.identity()["openings"] == "; ".join(lines)
    assert load(tmp_path, TWO + 'openings = "openings.txt"').rounds == len(lines)
    with Store(tmp_path / "new.db") as store:
        for _ in range(2):
            assert open_run(cup, store).tournament == cup
        config = store.config()
    # Earlier versions played the file line by line: their games remain those of the tournament.
    with Store(tmp_path / "old.db") as store:
        store.claim(cup.name, {**config, "openings": len(lines)}, cup.identity())
        for _ in range(2):
            assert open_run(cup, store).tournament.openings == tuple(lines)


def sprt(folder: Path, max_games: int) -> Tournament:
    """Return a test with random openings."""
    text = TWO + "openings = {random = {plies = 5, seed = 1}}\n"
    return load(folder, f'{text}format = {{kind = "sprt", elo0 = -40, elo1 = 40, max_games = {max_games}}}')


@pytest.mark.slow
def test_a_test_of_bots_without_chance_has_openings_for_all_its_games(tmp_path: Path) -> None:
    """Each opening is won by the bot that begins."""
    cup = sprt(tmp_path, 1040)
    schedule = cup.plan.schedule(cup.names, [Entrant(), Entrant()])
    results = play(schedule, lambda game: Result(0, line=f"{cup.opening(game.opening)}/{game.first}"))
    end = schedule.conclusion(History(results))
    assert end.startswith("undecided after 1040 games: no more games are allowed")


@pytest.mark.parametrize(("max_games", "kept"), [(1000, 1000), (1040, 500)])
def test_a_test_keeps_the_openings_of_an_earlier_version(tmp_path: Path, max_games: int, kept: int) -> None:
    """Earlier versions repeated the first 500 openings, if ``max_games`` was more than 1000."""
    cup, more = sprt(tmp_path, max_games), sprt(tmp_path, 2000)
    with Store(tmp_path / "results.db") as store:
        store.claim(cup.name, {**TournamentResults.of(cup).config(), "openings": 500}, cup.identity())
        for _ in range(2):
            assert open_run(more, store).tournament.openings == more.openings[:kept]
    assert len(more.openings) == 1000


# Identity

OLD_IDENTITY = ["game", "time control", "setup_s", "openings", "limits", "pondering", "bots"]
"""Keys that stores of the first versions have; a new key would make all of them other tournaments."""


def test_the_identity_of_a_round_robin_has_its_old_keys(tmp_path: Path) -> None:
    for text in ("", "seed = 3\n", 'format = "round-robin"\n'):
        assert list(load(tmp_path, text + THREE).identity()) == OLD_IDENTITY
    assert load(tmp_path, "seed = 3\n" + THREE).identity() == load(tmp_path, THREE).identity()


def refusal(folder: Path, before: str, after: str) -> str:
    """Return the error when a store of one tournament is claimed for another; empty if there is none."""
    path = folder / "results.db"
    with Store(path) as store:
        cups = [load(folder, text) for text in (before, after)]
        try:
            for cup in cups:
                store.claim("Cup", TournamentResults.of(cup).config(), cup.identity())
        except StoreError as error:
            return str(error)
        assert TournamentResults.load(store).plan == cups[1].plan
    return ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "rounds = 3\nseed = 4\n"),
        ('format = "swiss"\n', 'format = "swiss"\nrounds = 9\nranking = ["points", "wins"]\n'),
        ('format = "swiss"\n', 'format = {kind = "swiss", pairs = 1}\n'),
        ('format = "ladder"\n', 'format = "ladder"\nrating = {anchor = "greedy", value = 5}\n'),
        (GAUNTLET, GAUNTLET + "seed = 9\nrounds = 2\n"),
        ('format = "knockout"\n', 'format = "knockout"\nconcurrency = 2\n'),
    ],
)
def test_harmless_changes(tmp_path: Path, before: str, after: str) -> None:
    assert refusal(tmp_path, before + THREE, after + THREE) == ""


def test_a_sequential_test_may_get_more_games(tmp_path: Path) -> None:
    before, after = (f'format = {{kind = "sprt", max_games = {games}}}\n{TWO}' for games in (20, 40))
    assert refusal(tmp_path, before, after) == ""
    other = 'format = {kind = "sprt", elo1 = 40}\n' + TWO
    assert "its format is sprt, elo0 0.0, elo1 50.0, " in refusal(tmp_path, before, other)


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ("", 'format = "swiss"\n', "its format is round-robin, now it is swiss, pairs 1"),
        ('format = "swiss"\n', 'format = {kind = "swiss", pairs = 2}\n',
         "its format is swiss, pairs 1, now it is swiss, pairs 2"),
        ('format = "swiss"\n', 'format = "swiss"\nseed = 1\n', "its seed is 0, now it is 1"),
        ('format = "swiss"\n', 'format = "ladder"\n', "swiss, pairs 1, now it is ladder, pairs 1"),
        (GAUNTLET, GAUNTLET.replace("greedy", "random"),
         "its format is gauntlet, challengers greedy, now it is gauntlet, challengers random"),
        ('format = "knockout"\n', 'format = {kind = "knockout", seeding = "random"}\n',
         "seeding order, now it is knockout, pairs 1, extra_pairs 2, third_place True, seeding random"),
    ],
)  # fmt: skip
def test_changes_of_the_identity(tmp_path: Path, before: str, after: str, difference: str) -> None:
    message = refusal(tmp_path, before + THREE, after + THREE)
    assert "holds another tournament ('Cup')" in message
    assert difference in message

"""TournamentResults: a store's contents as one value, in every output format and tournament format."""

import json
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import make_record, make_summary, write_tournament
from tournaments import Results
from tournaments.config.load import load_tournament
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.view import View
from tournaments.reporting.tables import FORMATS
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store
from tournaments.schedule.pairing import pair_of_games
from tournaments.schedule.plan import Plan

NAMES = ["ann", "bob", "cid"]
AT = "2026-01-02T03:04:05+00:00"
KNOCKOUT = {"kind": "knockout", "pairs": 1, "extra_pairs": 2, "third_place": True, "seeding": "order"}


def summary(
    games: list[GameSummary] | None = None,
    journal: list[Entry] | None = None,
    names: list[str] = NAMES,
    **changes: Any,
) -> TournamentResults:
    values: dict[str, Any] = {"ranking": "points"} | changes
    return TournamentResults(
        "Cup", "kalah(6,4)", "2 s per move", names, kept=games or [], journal=journal or [], **values
    )


def played(first: int, second: int, winner: int | None = 0, round_number: int = 1) -> GameSummary:
    """A game of the schedule; bots by number."""
    pairing = pair_of_games(round_number, first, second, 1)[0]
    found = make_summary(NAMES[first], NAMES[second], winner, key=pairing.key)
    return found._replace(pair=pairing.pair, round=round_number, fingerprint=f"{pairing.key}")


def play_on(one: TournamentResults) -> TournamentResults:
    """The summary after everything that is due was won by the bot with the lower number."""
    games = list(one.kept)
    while due := one.schedule.due(one.history):
        for pairing in due:
            first, second = one.bots[pairing.first], one.bots[pairing.second]
            found = make_summary(first, second, int(pairing.second < pairing.first), key=pairing.key)
            games.append(found._replace(round=pairing.round, pair=pairing.pair, fingerprint=pairing.key))
        one = replace(one, kept=games)
    return one


SPRT = {
    "kind": "sprt",
    "elo0": 0.0,
    "elo1": 50.0,
    "alpha": 0.05,
    "beta": 0.05,
    "max_games": 4,
    "batch": 2,
}
ROUND_ROBIN = [played(first, second) for first in range(3) for second in range(3) if first != second]


# From the store and back


@pytest.mark.parametrize(
    "text",
    [
        'ranking = ["points", "speed"]\nseed = 9\nrounds = 3\n[rating]\nanchor = "greedy"\nvalue = 800',
        'format = {kind = "gauntlet", challengers = ["greedy"]}\n',
        'format = "swiss"\nuntrusted = true\n',
        'format = {kind = "knockout", pairs = 2}\n',
    ],
)
def test_the_store_keeps_the_whole_configuration(tmp_path: Path, text: str) -> None:
    bots = 'bots = ["first_legal", "greedy", "random"]\n'
    tournament = load_tournament(write_tournament(tmp_path, bots + text))
    one = TournamentResults.of(tournament)
    with Store(tmp_path / "results.db") as store:
        store.claim(one.name, one.config(), tournament.identity())
        found = TournamentResults.load(store)
    # A list of criteria is read as a list.
    assert replace(found, ranking=one.ranking, file_bots=one.file_bots) == one
    assert (list(found.ranking), list(found.file_bots)) == (list(one.ranking), list(one.file_bots))
    assert found.config() == json.loads(json.dumps(one.config()))


def test_a_store_of_the_first_versions(tmp_path: Path) -> None:
    old = {"game": "kalah(1,1)", "control": "2 s", "bots": ["one", "two"], "ranking": "points", "total": 4}
    with Store(tmp_path / "results.db") as store:
        store.claim("Cup", old, {})
        store.add(make_record(), 1)
        found = TournamentResults.load(store)
    assert found.plan == Plan(rounds=2)
    assert (found.total, found.done, found.anchor, found.must_confine) == (4, 1, None, False)
    assert found.table[0].name == "one"


# Rulings


def test_a_void_game_is_mentioned_and_not_counted() -> None:
    void = Entry(Action.VOID, ROUND_ROBIN[0].key, "x", 1, AT)
    one = summary(ROUND_ROBIN, [void])
    assert one.about == "kalah(6,4), 2 s per move, 6 of 6 games (1 set aside), sandbox off"
    assert len(one.games) == 5
    assert sum(line.games for line in one.table) == 10
    assert one.to_json()["games"] == 5


def test_a_bot_that_withdrew_is_marked() -> None:
    ruled = [Entry(Action.WITHDRAW, "bob", "x", 1, AT, {"annul": True})]
    one = summary(ROUND_ROBIN, ruled)
    bob = next(line for line in one.table if line.name == "bob")
    assert (bob.withdrawn, bob.games, bob.rating) == (True, 0, None)
    assert "bob (withdrawn)" in one.render("text")
    assert "bob (withdrawn)" in one.render("html")
    assert "(withdrawn)" not in one.render("csv")  # names in it are for looking up
    assert [line["withdrawn"] for line in one.to_json()["standings"]] == [False, False, True]
    assert "(withdrawn)" not in summary(ROUND_ROBIN).render("text")


# Ratings


def test_an_anchor_has_the_rating_that_it_is_given() -> None:
    one = summary(ROUND_ROBIN, anchor="cid", anchor_rating=1000.0)
    assert one.estimates["cid"].value == pytest.approx(1000.0)
    assert all(estimate.low <= estimate.value <= estimate.high for estimate in one.estimates.values())
    assert one.to_json()["anchor"] == "cid"


def test_an_anchor_whose_games_count_for_nobody() -> None:
    """Nothing is anchored then, and the tables say so."""
    ruled = [Entry(Action.WITHDRAW, "cid", "x", 1, AT, {"annul": True})]
    one = summary(ROUND_ROBIN, ruled, anchor="cid", anchor_rating=1000.0)
    assert set(one.estimates) == {"ann", "bob"}
    assert one.estimates == summary(ROUND_ROBIN, ruled).estimates
    assert all(name in one.render("text") for name in NAMES)
    assert one.to_json()["anchor"] is None
    caveat = "no game of the anchor cid counts, so that the average of all is 0"
    assert all(caveat in one.render(form) for form in FORMATS)
    assert "average = 0" in Pages(View(one)).rating
    assert summary(anchor="cid").to_json()["anchor"] == "cid"  # before the first game


# Formats


def test_a_knockout_orders_by_its_places() -> None:
    one = play_on(summary(plan=Plan(KNOCKOUT), names=[*NAMES, "dan"]))
    assert one.places["ann"] == 1
    assert one.table[0].name == "ann"
    assert [line.rank for line in one.table] == [1, 2, 3, 4]
    assert one.about.startswith("knockout, kalah(6,4), ")
    assert "{" not in one.conclusion


def test_a_swiss_of_three_has_byes() -> None:
    one = play_on(summary(plan=Plan({"kind": "swiss", "pairs": 1}, rounds=2), ranking="swiss"))
    assert sum(one.byes.values()) == 2 * 2
    assert "byes" in one.render("text")
    assert sum(line["bye_points"] for line in one.to_json()["standings"]) == 4
    assert sum(line.points for line in one.table) == len(one.games) + 4


@pytest.mark.parametrize("name", ["{0}", "{", "%s", "{bots}"])
def test_names_are_no_templates(name: str) -> None:
    """A conclusion names bots by their numbers, which are filled in afterwards."""
    one = play_on(summary(plan=Plan(SPRT), names=[name, "bob"]))
    assert one.conclusion
    assert name in one.render("text")


@pytest.mark.parametrize(
    ("plan", "names", "conclusion"),
    [
        (Plan(SPRT), ["<b>", "bob"], "undecided after 4 games: "),
        (Plan(KNOCKOUT), ["<b>", *NAMES], "<b> wins the knockout"),
    ],
)
def test_the_conclusion_and_the_caveat_are_below_each_table_for_people(
    plan: Plan, names: list[str], conclusion: str
) -> None:
    one = play_on(summary(plan=plan, names=names))
    assert one.conclusion.startswith(conclusion)
    assert one.caveat
    remarks = [one.conclusion, f"Ratings: {one.caveat}."]
    assert one.render("text").split("\n\n")[-2:] == remarks
    for page in (one.render("html"), Results(Path(), one)._repr_html_()):
        assert "".join(f"<p>{escape(remark)}</p>" for remark in remarks) in page.replace("\n", "")
    assert conclusion not in one.render("csv")

"""Manual pairings of a Swiss end to end: the rounds that follow, and the messages of the command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.results.ruling_helpers import do, is_clean, kept, line_of, run
from tests.support.builders import invoke, write_tournament
from tournaments.reporting.tournament_directory import TournamentDirectory

BOTS = ["first_legal", "greedy", "random:1", "random:2", "minimax:1"]
NUMBERS = {name: number for number, name in enumerate(BOTS, 1)}


def text_of(rounds: int, bots: list[str] = BOTS) -> str:
    return (
        f'name = "Cup"\nconcurrency = 1\ngame = "kalah(2,2)"\nrounds = {rounds}\nbots = {json.dumps(bots)}\n'
        'format = "swiss"\n[sandbox]\nmode = "off"\n'
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tournament of which two rounds were played; no test changes it."""
    folder = tmp_path_factory.mktemp("swiss") / "cup"
    write_tournament(folder, text_of(2))
    run(folder / "out")
    return folder


@pytest.fixture
def out(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "cup")) / "out"


def play_on(out: Path, rounds: int) -> None:
    """Run the tournament with more rounds."""
    write_tournament(out.parent, text_of(rounds))
    run(out)


def met(out: Path, number: int) -> set[frozenset[str]]:
    keys = [key.partition("-")[2] for key in kept(out) if key.startswith(f"r{number:03d}")]
    return {frozenset(BOTS[int(bot) - 1] for bot in key.split("v")) for key in keys}


@pytest.mark.slow
def test_pairings_and_a_bye_of_the_next_round(out: Path) -> None:
    before = kept(out)
    said = do(
        "pair", out, "greedy", "random:2", "minimax:1", "random:1", "--bye", "first_legal", "--why", "a"
    )
    assert said.splitlines() == [
        "noted: pair greedy (meets random:2 in round 3): a",
        "noted: pair minimax:1 (meets random:1 in round 3): a",
        "noted: bye first_legal (has a bye in round 3): a",
        "the tournament has 2 rounds: round 3 is played only if its rounds are raised",
    ]
    assert kept(out) == before
    is_clean(out)
    byes = line_of(out, "first_legal")["bye_points"]
    assert isinstance(byes, float)
    play_on(out, 4)
    assert met(out, 3) == {frozenset(("greedy", "random:2")), frozenset(("minimax:1", "random:1"))}
    assert line_of(out, "first_legal")["bye_points"] in (byes + 2, byes + 4), "that of round 4 perhaps, too"
    assert set(before) < set(kept(out))
    is_clean(out)
    assert "has begun" in do(
        "pair", out, "--undo", "greedy", "random:2", "--round", "3", "--why", "b", fails=True
    )


@pytest.mark.slow
def test_a_forbidden_pairing(out: Path) -> None:
    """Five bots meet within five rounds, but for these two."""
    never = next(
        frozenset((one, other))
        for one in BOTS
        for other in BOTS
        if one < other and frozenset((one, other)) not in met(out, 1) | met(out, 2)
    )
    do("pair", out, "--forbid", *sorted(never), "--why", "by the same author")
    play_on(out, 7)
    assert all(never not in met(out, number) for number in range(3, 8))
    is_clean(out)
    do("pair", out, "--undo", "--forbid", *sorted(never), "--why", "it was not", "--round", "8")
    play_on(out, 9)
    assert any(never in met(out, number) for number in (8, 9)), "the only two that have not met"
    is_clean(out)


@pytest.mark.slow
def test_what_is_taken_back_leaves_no_trace_in_the_pairings(out: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(out.parent, tmp_path / "other")) / "out"
    do("pair", out, "greedy", "random:2", "--why", "a")
    do("pair", out, "random:2", "greedy", "--undo", "--why", "b")
    do("pair", out, "--bye", "greedy", "--forbid", "random:1", "random:2", "--why", "c")
    do("pair", out, "--bye", "greedy", "--forbid", "random:2", "random:1", "--undo", "--why", "d")
    entries = json.loads(do("journal", out, "--json"))
    assert [one["action"] for one in entries] == [
        *("pair", "restore", "bye", "forbid", "restore", "restore"),
    ]
    assert entries[1]["data"] == {"what": "pair", "for_round": 3, "opponent": "greedy"}
    for directory in (out, other):
        play_on(directory, 4)
    assert kept(out) == kept(other)
    is_clean(out)


@pytest.mark.slow
def test_a_round_without_a_played_game_has_not_begun(tmp_path: Path) -> None:
    write_tournament(tmp_path / "cup", text_of(1))
    out = tmp_path / "cup" / "out"
    run(out)
    write_tournament(tmp_path / "cup", text_of(3))
    with TournamentDirectory(out).locked():
        locked = do("pair", out, "--bye", "greedy", "--why", "x", fails=True)
        assert locked.startswith("another run is at work")
    do("pair", out, "--bye", "greedy", "--why", "x")
    run(out)
    assert not any("greedy" in pair for pair in met(out, 2))


def test_a_bye_of_an_even_number_of_bots_makes_one_more(tmp_path: Path) -> None:
    write_tournament(tmp_path / "cup", text_of(1, BOTS[:4]))
    run(tmp_path / "cup" / "out")
    said = do("pair", tmp_path / "cup" / "out", "--bye", "greedy", "--why", "x")
    assert "one more bot has a bye in round 2, since an odd number of bots is left" in said


def test_a_later_round_that_cannot_be_paired_is_refused(tmp_path: Path) -> None:
    first, second, third, fourth = BOTS[:4]
    write_tournament(tmp_path / "cup", text_of(1, BOTS[:4]))
    out = tmp_path / "cup" / "out"
    run(out)
    two = ("--forbid", first, second, "--forbid", first, third)
    one = ("--forbid", first, fourth, "--why", "x")
    complaint = "round 5 cannot be paired like this: some of its bots would be left with opponents that they "
    assert complaint in do("pair", out, "--round", "5", *two, *one, fails=True)
    do("pair", out, "--round", "5", *two, "--why", "x")
    for number in ("2", "5", "6"):
        refused = do("pair", out, "--round", number, *one, fails=True)
        assert refused.startswith(f"round {max(number, '5')} cannot be paired like this")
    # Withdrawals leave no other pairing of round 5. It is no reason against pairings of other rounds.
    do("withdraw", out, third)
    do("withdraw", out, fourth)
    assert "noted: bye" in do("pair", out, "--bye", first, "--why", "x")


def test_only_a_swiss_takes_manual_pairings(tmp_path: Path) -> None:
    write_tournament(tmp_path / "cup", text_of(1).replace("swiss", "ladder"))
    run(tmp_path / "cup" / "out")
    assert do("pair", tmp_path / "cup" / "out", "greedy", "random:1", "--why", "x", fails=True) == (
        "a tournament of format 'ladder' takes no manual pairings, only one of format 'swiss' does"
    )


def test_the_report_shows_them(out: Path) -> None:
    do("pair", out, "greedy", "random:2", "--forbid", "first_legal", "random:1", "--why", "<i>by lot</i>")
    for more in ([], ["--anonymous"]):
        result = invoke("tournament", "report", out, "--out", out / "report", *more)
        assert result.exit_code == 0, result.output
        page = (out / "report" / "index.html").read_text()
        assert "&lt;i&gt;by lot&lt;/i&gt;" in page
        assert ("pairing fixed: greedy meets random:2 in round 3" in page) == (not more)
        assert "from round 3 on" in page
        shutil.rmtree(out / "report")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("", "name two bots that meet, a bot that has a bye, or two bots that do not meet"),
        ("greedy", "BOTs are paired two by two, and 1 were named"),
        ("greedy greedy", "'greedy' cannot meet itself: name two bots"),
        ("greedy gredy", "there is no bot 'gredy' here; there are first_legal, greedy"),
        ("greedy random:1 --round 2", "round 2 has begun, and its pairings stay as they are"),
        ("greedy random:1 greedy random:2", "'greedy' has a fixed pairing in round 3 already: take it back"),
        ("greedy random:1 --bye greedy", "'greedy' has a fixed pairing in round 3 already"),
        ("greedy random:1 --forbid greedy random:1", "'greedy' and 'random:1' meet in round 3"),
        ("--undo --bye greedy", "there is nothing to take back: nobody ruled that 'greedy' has a"),
        (
            "greedy random:1 --bye random:2 --forbid first_legal minimax:1",
            "round 3 cannot be paired like this: some of its bots would be left with opponents that they",
        ),
        ("--bye greedy --why ", "say why: a ruling without a reason cannot be defended"),
    ],
)
def test_refused_pairings(out: Path, command: str, complaint: str) -> None:
    why = "" if "--why" in command else " --why x"
    arguments = f"{command}{why}".removeprefix(" ").split(" ")
    assert complaint in do("pair", out, *arguments, fails=True)
    assert do("journal", out) == "There are no rulings.\n"
    without = invoke("tournament", "pair", out, "greedy", "random:1")
    assert (without.exit_code, "Missing option '--why'" in without.output) == (2, True)

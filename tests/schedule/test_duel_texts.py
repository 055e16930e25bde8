"""Texts of a duel: decisions, sentences, numbers."""

import pytest

from referee.judge.results import Reason
from tests.support.builders import make_summary
from tournaments.analysis.duel import Duel, duel_of
from tournaments.schedule.formats.sprt import Sprt
from tournaments.schedule.pairing import Entrant, History, Result

TWO = (Entrant(), Entrant())
NAMES = ("new", "old")


def duel(points: str, *, test: Sprt | None = None, finished: bool = True, alike: bool = False) -> Duel:
    """Of pairs that the new version won twice (w), shared (s), lost twice (l)."""
    games = []
    results: dict[str, Result] = {}
    for number, pair in enumerate(points, 1):
        for first in (0, 1):
            new_wins = pair == "w" or (pair == "s" and first == 0)
            winner = first if new_wins else 1 - first
            key = f"r{number:03d}-{first + 1}v{2 - first}"
            mark = f"{pair}{first}" if alike else key
            game = make_summary(NAMES[first], NAMES[1 - first], winner, key=key)
            games.append(
                game._replace(
                    pair=f"r{number:03d}-1+2", opening="" if alike else str(number), fingerprint=mark
                )
            )
            results[key] = Result(winner, line=mark)
    return duel_of(NAMES, games, test, History(results), finished=finished)


def sprt(elo0: float = 0.0, elo1: float = 100.0, max_games: int = 200) -> Sprt:
    return Sprt(TWO, elo0=elo0, elo1=elo1, max_games=max_games, batch=4)


@pytest.mark.parametrize(
    ("points", "test", "decision", "headline"),
    [
        ("wwswwsww" * 12, sprt(), "stronger", "new is stronger than old."),
        ("llsllsll" * 12, sprt(), "no improvement", "No improvement of 100 Elo was found."),
        ("llsllsll" * 12, sprt(-100, 0), "no improvement", "new is weaker than old."),
        ("wwswwsww" * 12, sprt(20, 120), "stronger", "new is more than 20 Elo stronger than old."),
        ("ws" * 2, sprt(max_games=8), "undecided", "Undecided after 8 games."),
        ("wwswwsww" * 12, None, "stronger", "new is stronger than old."),
        ("llsllsll" * 12, None, "weaker", "new is weaker than old."),
        ("wl", None, "undecided", "4 games do not show whether new or old is the stronger one."),
    ],
)
def test_decisions(points: str, test: Sprt | None, decision: str, headline: str) -> None:
    found = duel(points, test=test)
    assert found.decision == decision
    assert found.headline() == headline
    assert found.meaning()
    value = found.to_json()
    assert (value["decision"], value["headline"]) == (decision, headline)
    assert (value["sprt"] is None) == (test is None)


def test_what_the_figures_say() -> None:
    found = duel("wwsl", test=sprt(max_games=8))
    first, pairs, second, third = found.figures()
    assert first == "won 5, drawn 0, lost 3: 62.5 % of 8 games, 8 of them different"
    assert pairs == "different pairs by points  0: 1, 0.5: 0, 1: 1, 1.5: 0, 2: 2"
    assert second.startswith("Elo +")
    assert "likelihood of superiority" in second
    assert third.startswith("LLR ")
    assert third.endswith(" after 8 games, bounds -2.94 and 2.94 (0 against 100 Elo, alpha 0.05, beta 0.05)")
    assert found.live().startswith("LLR ")
    assert duel("wwsl").live().startswith("new: 62.5 %, Elo +")


def test_an_undecided_match_names_the_range_of_differences() -> None:
    (sentence,) = duel("wl").meaning()
    assert sentence.startswith("These games fit any difference from -")
    assert sentence.endswith(" Elo; more different games narrow this range.")


def test_games_after_the_deciding_pair_are_not_in_the_ratio() -> None:
    """A batch is played to its end; the score has all of its games."""
    found = duel("wwswwsww" * 12, test=sprt())
    assert found.verdict is not None
    decided = 2 * found.verdict.pairs
    assert decided < found.games == 192
    assert f"% of {found.games} games" in found.figures()[0]
    assert f" after {decided} games, bounds " in found.figures()[-1]


def test_a_ratio_of_nothing_has_no_sign() -> None:
    """Equally many points, and claims as far above as below: the ratio is 0 but for rounding."""
    found = duel("wl" * 4, test=sprt(-20, 20, max_games=16))
    assert found.figures()[-1].startswith("LLR 0.00 after 16 games")
    assert found.live().startswith("LLR 0.00 between")


def test_copies_decide_nothing() -> None:
    found = duel("w" * 8, test=sprt(), alike=True)
    assert found.decision == "undecided"
    assert found.meaning()[0].startswith(
        "The bots only repeat themselves: of 6 pairs of games 1 are different, and copies are no evidence."
    )


@pytest.mark.parametrize("test", [sprt(-100, 0), sprt(), None])
def test_games_that_neither_bot_could_start_decide_nothing(test: Sprt | None) -> None:
    """They are drawn, each from another opening, and the test counts them."""
    games = []
    results: dict[str, Result] = {}
    for number in range(1, 41):
        for first in (0, 1):
            key = f"r{number:03d}-{first + 1}v{2 - first}"
            games.append(make_summary(NAMES[first], NAMES[1 - first], None, reason=Reason.START, key=key))
            results[key] = Result(None, line=key)
    history = History(results)
    found = duel_of(NAMES, games, test, history, finished=True)
    assert found.verdict is None or found.verdict.accepted is not None
    assert found.decision == "undecided"
    assert found.headline() == "Neither new nor old could be started, so there is no result."
    assert found.meaning() == [
        "A game in which neither bot can be started is a draw, and no evidence: correct the faults, and play "
        "the duel in another directory."
    ]
    assert duel_of(NAMES, games, test, history, finished=False).decision == "unfinished"
    played = make_summary(*NAMES, None, key=games[0].key)
    assert "Neither" not in duel_of(NAMES, [played, *games[1:]], test, history, finished=True).headline()


def test_unfinished() -> None:
    assert duel("ws", test=sprt(), finished=False).headline() == "Not yet decided after 4 games."
    assert duel("ws", finished=False).headline() == "new against old: not all games are played yet."
    nothing = duel("", finished=False)
    assert nothing.decision == "unfinished"
    assert nothing.live() == ""
    assert nothing.figures() == ["no game was played that counts"]


def test_what_looks_weaker_is_called_so() -> None:
    assert "It looks weaker, even" in duel("llsllsll" * 12, test=sprt()).meaning()[1]
    assert (
        "may still be a little stronger" in duel("ls" * 30 + "sw" * 30, test=sprt(0, 200, 2000)).meaning()[1]
    )

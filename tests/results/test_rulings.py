"""Rulings on games and bots: the results that count after each of them, and after any sequence of them."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import make_summary
from tests.support.schedules import drawn, play
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import BOT, GAME, ON_PAIRINGS, Action, Entry
from tournaments.results.rulings import (
    RulingError,
    Rulings,
    attempt_key,
    attempt_of,
    pairing_key,
    result_of,
)
from tournaments.schedule.formats.ladder import Ladder
from tournaments.schedule.formats.round_robin import RoundRobin
from tournaments.schedule.pairing import NOBODY, Entrant, History, Result

NAMES = ["ann", "bob", "cid"]
KEY = "r001-1v2"


def game(key: str, winner: int | None = 0, first: str = "ann", second: str = "bob") -> GameSummary:
    return make_summary(first, second, winner, key=key)._replace(round=int(key[1:4]))


def entry(
    action: Action, subject: str, *, under_way: int = 1, why: str = "an appeal", **data: object
) -> Entry:
    return Entry(action, subject, why, under_way, "2026-01-02T03:04:05+00:00", data)


def all_games() -> list[GameSummary]:
    return [
        *(game(KEY), game("r001-2v1", 0, "bob", "ann"), game("r002-1v2")),
        *(game("r001-1v3", 0, "ann", "cid"), game("r001-1v4", 0, "ann", "dan")),
    ]


def test_keys_of_attempts() -> None:
    assert attempt_key(KEY, 1) == KEY
    assert attempt_key(KEY, 2) == "r001-1v2~2"
    for number in (1, 2, 11):
        key = attempt_key(KEY, number)
        assert (pairing_key(key), attempt_of(key)) == (KEY, number)


# Examples


def test_nothing_was_ruled() -> None:
    games = [game(KEY), game("r001-2v1", None, "bob", "ann")]
    rulings = Rulings(NAMES, games)
    assert rulings.counted == games
    assert (rulings.set_aside, rulings.withdrawn, rulings.earlier) == ({}, {}, {})
    assert rulings.bots == NAMES
    assert rulings.entrants == [Entrant()] * 3
    assert rulings.results == {one.key: result_of(one) for one in games}
    assert result_of(game(KEY, 1)._replace(score=(3, 5), fingerprint="f")) == Result(1, -2, "f")
    assert result_of(game(KEY, None)._replace(score=None)) == Result(None, 0, "")


def test_a_void_game_stays_in_the_results_and_counts_for_nobody() -> None:
    void = entry(Action.VOID, KEY)
    rulings = Rulings(NAMES, [game(KEY)], [void])
    assert rulings.counted == []
    assert rulings.set_aside == {KEY: void}
    assert rulings.results == {KEY: result_of(game(KEY))._replace(counts=False)}
    assert rulings.job_key(KEY) == KEY


def test_a_game_is_replayed_several_times_and_then_void() -> None:
    """A replayed game has no result until it was played again."""
    games = [game(KEY, 0), game("r001-1v2~2", 1), game("r001-1v2~3", None)]
    ruled = [entry(Action.REPLAY, KEY), entry(Action.REPLAY, "r001-1v2~2"), entry(Action.VOID, "r001-1v2~3")]
    rulings = Rulings(NAMES, games[:1], ruled[:1])
    assert (rulings.results, rulings.counted, rulings.job_key(KEY)) == ({}, [], "r001-1v2~2")
    rulings = Rulings(NAMES, games[:2], ruled[:1])
    assert (rulings.counted, list(rulings.set_aside)) == ([games[1]], [KEY])
    assert rulings.results == {KEY: result_of(games[1])}
    assert Rulings(NAMES, games, ruled[:2]).counted == [games[2]]
    rulings = Rulings(NAMES, games, ruled)
    assert rulings.counted == []
    assert set(rulings.set_aside) == {one.key for one in games}
    rulings.check(entry(Action.REPLAY, "r001-1v2~3"))  # what is void may still be played again


def test_the_games_of_a_bot_that_withdraws_count_or_not() -> None:
    games = [game(KEY), game("r001-1v3", 0, "ann", "cid"), game("r001-2v3", 0, "bob", "cid")]
    kept = Rulings(NAMES, games, [entry(Action.WITHDRAW, "ann", under_way=3, annul=False)])
    assert kept.counted == games
    assert kept.entrants[0] == Entrant(until=3)
    annulled = Rulings(NAMES, games, [entry(Action.WITHDRAW, "ann", annul=True)])
    assert annulled.counted == games[2:]
    assert list(annulled.withdrawn) == ["ann"]
    assert not annulled.results[KEY].counts


def test_a_void_game_keeps_its_reason_when_its_bot_withdraws() -> None:
    ruled = [entry(Action.VOID, KEY), entry(Action.WITHDRAW, "ann", annul=True)]
    rulings = Rulings(NAMES, [game(KEY), game("r001-1v3", 0, "ann", "cid")], ruled)
    assert rulings.set_aside == {KEY: ruled[0], "r001-1v3": ruled[1]}
    assert [len(changes) for changes in rulings.earlier.values()] == [1, 1]


def test_a_bot_that_joins_has_the_next_number() -> None:
    ruled = [
        entry(Action.WITHDRAW, "bob", under_way=2, annul=False),
        entry(Action.ADD, "bob 2", under_way=2, replaces="bob"),
        entry(Action.ADD, "eve", under_way=4, replaces=None),
    ]
    rulings = Rulings(NAMES, [], ruled)
    assert rulings.bots == [*NAMES, "bob 2", "eve"]
    assert rulings.entrants == [
        *(Entrant(), Entrant(until=2), Entrant()),
        *(Entrant(since=3, replaces=1), Entrant(since=5)),
    ]


def test_a_round_is_paired_by_the_results_of_its_time() -> None:
    games = [game(KEY, 0), game("r001-1v2~2", 1), game("r001-1v2~3", None)]
    ruled = [
        entry(Action.REPLAY, KEY, under_way=2),
        entry(Action.REPLAY, "r001-1v2~2", under_way=4),
        entry(Action.VOID, "r001-1v2~3", under_way=4),
    ]
    history = Rulings(NAMES, games, ruled).history
    assert [history.at(number)[KEY] for number in (1, 2)] == [result_of(games[0])] * 2
    assert [history.at(number)[KEY] for number in (3, 4)] == [result_of(games[1])] * 2
    assert history.at(5)[KEY] == result_of(games[2])._replace(counts=False)
    assert history.results[KEY] == history.at(5)[KEY]


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (entry(Action.VOID, KEY, why="  "), "say why: a ruling without a reason cannot be defended"),
        (entry(Action.VOID, "r009-1v2"), "there is no game 'r009-1v2' here"),
        (entry(Action.VOID, "r001-01v02"), "there is no game 'r001-01v02' here; did you mean 'r001-1v2'?"),
        (entry(Action.REPLAY, "r001-1v2~2"), "there is no game 'r001-1v2~2' here"),
        (entry(Action.VOID, "r001-2v1"), r"game 'r001-2v1' was set aside already, .* again as 'r001-2v1~2'"),
        (
            entry(Action.VOID, "r002-1v2"),
            r"game 'r002-1v2' counts for nobody already \(void r002-1v2: an app",
        ),
        (
            entry(Action.VOID, "r001-1v3"),
            r"'r001-1v3' counts for nobody already \(withdraw cid \(its games c",
        ),
        (entry(Action.REPLAY, "r001-1v3"), "'r001-1v3' counts for nobody already"),
        (entry(Action.REPLAY, "r001-1v4"), "'dan' has withdrawn: game 'r001-1v4' can be void, not replayed"),
        (entry(Action.WITHDRAW, "dan"), "'dan' has withdrawn already"),
        (entry(Action.WITHDRAW, "eve"), "there is no bot 'eve' here; there are ann, bob, cid, dan"),
        (entry(Action.ADD, "ann"), "there is a bot 'ann' already: give the new one another name"),
        (entry(Action.ADD, "eve", replaces="bill"), "there is no bot 'bill' here"),
    ],
)
def test_invalid_rulings_are_refused(new: Entry, message: str) -> None:
    games = all_games()
    ruled = [
        entry(Action.REPLAY, "r001-2v1"),
        entry(Action.VOID, "r002-1v2"),
        entry(Action.WITHDRAW, "cid", annul=True),
        entry(Action.WITHDRAW, "dan", annul=False),
    ]
    rulings = Rulings([*NAMES, "dan"], games, ruled)
    with pytest.raises(RulingError, match=message):
        rulings.check(new)


@pytest.mark.parametrize(
    "ruled",
    [
        entry(Action.VOID, "r009-1v2"),
        entry(Action.REPLAY, "r009-1v2"),
        entry(Action.REPLAY, "r001-1v2~x"),
        entry(Action.WITHDRAW, "eve", annul=True),
        entry(Action.ADD, "eve", replaces="bill"),
        replace(entry(Action.WITHDRAW, "ann"), data=[]),  # type: ignore[arg-type]
        replace(entry(Action.ADD, "eve"), data=None),  # type: ignore[arg-type]
    ],
)
def test_a_damaged_journal(ruled: Entry) -> None:
    with pytest.raises(RulingError, match="entry 7 of the journal fits no game or bot here"):
        Rulings(NAMES, [game(KEY)], [replace(ruled, number=7)])


# Any sequence of rulings


ROUNDS = 3


class Tournament:
    """A round robin of three rounds that is played and ruled upon at random, as the command does it."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.games: list[GameSummary] = []
        self.entries: list[Entry] = []

    @property
    def rulings(self) -> Rulings:
        return Rulings(NAMES, self.games, self.entries)

    def play(self) -> None:
        """Some of what is due."""
        rulings = self.rulings
        schedule = RoundRobin(rulings.entrants, ROUNDS)
        for pairing in list(schedule.due(rulings.history))[: self.dice.randrange(6)]:
            key = rulings.job_key(pairing.key)
            assert key not in {one.key for one in self.games}, "what is due was never played"
            winner = self.dice.choice((0, 1, None))
            self.games.append(game(key, winner, rulings.bots[pairing.first], rulings.bots[pairing.second]))

    def rule(self) -> bool:
        """Try something; whether it was allowed."""
        rulings, dice = self.rulings, self.dice
        action = dice.choice(list(Action))
        subject = dice.choice([*rulings.bots, "nobody"])
        data: dict[str, object] = {}
        if action in (Action.VOID, Action.REPLAY):
            subject = dice.choice([*(one.key for one in self.games), "r009-1v2", "r001-1v2~9"])
        elif action is Action.WITHDRAW:
            data["annul"] = dice.random() < 0.5
            data["games"] = rulings.games_of(subject)
        elif action is Action.RESTORE:
            data["what"] = dice.choice([GAME, BOT])
            # Mostly what was ruled before, or there would be hardly any.
            games_and_bots = [one for one in self.entries if one.of_pairing is None]
            ruled = [(one.subject, GAME if one.is_of_game else BOT) for one in games_and_bots]
            subject, data["what"] = dice.choice([*ruled, *ruled, (subject, data["what"])])
            data["keeps_annulled"] = True
        elif action in ON_PAIRINGS:
            data["for_round"] = dice.randint(1, ROUNDS + 1)
            if action is not Action.BYE:
                data["opponent"] = dice.choice([*rulings.bots, "nobody"])
            if dice.random() < 0.3:
                data["what"], action = action.value, Action.RESTORE
        else:
            data["replaces"] = dice.choice([None, *rulings.bots])
            subject = dice.choice([f"late {len(rulings.bots)}", subject])
        under_way = dice.randint(self.entries[-1].round if self.entries else 1, ROUNDS)  # as of a Swiss
        new = replace(entry(action, subject, under_way=under_way), data=data, number=len(self.entries) + 1)
        try:
            rulings.check(new)
        except RulingError:
            return False
        self.entries.append(new)
        return True


def checked(games: Sequence[GameSummary], entries: Sequence[Entry]) -> Rulings:
    """The rulings, of which all that must hold was seen to hold."""
    rulings = Rulings(NAMES, games, entries)
    counted = {one.key for one in rulings.counted}
    # Each game that was kept counts, or was set aside for a reason.
    assert counted | set(rulings.set_aside) == {one.key for one in games}
    assert not counted & set(rulings.set_aside)
    # Of each pairing at most one counts, and that is its result.
    by_pairing = {pairing_key(one.key): one for one in rulings.counted}
    assert len(by_pairing) == len(counted)
    assert {key: result_of(one) for key, one in by_pairing.items()} == {
        key: result for key, result in rulings.results.items() if result.counts
    }
    for key, result in rulings.results.items():
        assert result.counts or rulings.job_key(key) in rulings.set_aside
    for number, one in enumerate(rulings.entrants):
        assert (one.until is not None) == (rulings.bots[number] in rulings.withdrawn)
    for why in rulings.set_aside.values():
        assert why in entries
        assert why.action is not Action.WITHDRAW or rulings.withdrawn[why.subject] == why
    annulled = {name for name, left in rulings.withdrawn.items() if left.data.get("annul")}
    assert all(annulled.isdisjoint((one.first, one.second)) for one in rulings.counted)
    for pairs in rulings.fixed.values():
        fixed = [bot for pair in pairs for bot in pair if bot != NOBODY]
        assert len(set(fixed)) == len(fixed), "each bot has one fixed pairing a round at most"
    return rulings


def test_a_void_game_is_restored() -> None:
    games = all_games()
    ruled = [entry(Action.VOID, KEY), entry(Action.RESTORE, KEY, under_way=3, what=GAME)]
    rulings = Rulings(NAMES, games, ruled)
    assert rulings.counted == Rulings(NAMES, games).counted
    assert rulings.set_aside == {}
    assert [rulings.history.at(number)[KEY].counts for number in (1, 2, 3, 4)] == [True, False, False, True]
    rulings.check(entry(Action.VOID, KEY))  # and may be void once more


def test_a_bot_is_restored_with_its_games() -> None:
    games = all_games()
    void = entry(Action.VOID, KEY)  # which stays void
    ruled = [void, entry(Action.WITHDRAW, "ann", annul=True), entry(Action.RESTORE, "ann", what=BOT)]
    rulings = Rulings(NAMES, games, ruled)
    assert rulings.set_aside == {KEY: void}
    assert rulings.withdrawn == {}
    assert rulings.entrants[0].until is None


def test_games_of_two_annulled_bots_are_restored_with_the_last_of_them() -> None:
    games = all_games()
    ruled = [
        entry(Action.WITHDRAW, "ann", annul=True),
        entry(Action.WITHDRAW, "bob", annul=True),
        entry(Action.RESTORE, "ann", what=BOT, keeps_annulled=True),
    ]
    of_earlier_version = [*ruled[:2], entry(Action.RESTORE, "ann", what=BOT)]
    assert Rulings([*NAMES, "dan"], games, of_earlier_version).counted == games
    rulings = Rulings([*NAMES, "dan"], games, ruled)
    assert [one.key for one in rulings.counted] == ["r001-1v3", "r001-1v4"]
    assert rulings.set_aside == dict.fromkeys([KEY, "r001-2v1", "r002-1v2"], ruled[1])
    ruled.append(entry(Action.RESTORE, "bob", what=BOT, keeps_annulled=True))
    rulings = Rulings([*NAMES, "dan"], games, ruled)
    assert rulings.counted == games
    assert rulings.set_aside == {}


def test_a_void_game_of_an_annulled_bot_counts_for_nobody_until_both_are_restored() -> None:
    ruled = [entry(Action.VOID, KEY), entry(Action.WITHDRAW, "bob", annul=True)]
    restored = entry(Action.RESTORE, KEY, what=GAME)
    rulings = Rulings(NAMES, [game(KEY)], ruled)
    with pytest.raises(RulingError, match="'bob' has withdrawn, and with it this game: restore the bot"):
        rulings.check(restored)
    assert Rulings(NAMES, [game(KEY)], [*ruled, restored]).set_aside == {}, "an older journal"
    ruled.append(entry(Action.RESTORE, "bob", what=BOT))
    Rulings(NAMES, [game(KEY)], ruled).check(restored)
    assert Rulings(NAMES, [game(KEY)], [*ruled, restored]).counted == [game(KEY)]


def test_a_replaced_bot_is_restored_after_its_successor_has_withdrawn() -> None:
    """A second new version of it takes its rank on a ladder, not the bot that was added by mistake."""
    ruled = [
        entry(Action.WITHDRAW, "ann", annul=False),
        entry(Action.ADD, "wrong", replaces="ann"),
        entry(Action.WITHDRAW, "wrong", annul=False),
    ]
    back = entry(Action.RESTORE, "ann", what=BOT)
    Rulings(NAMES, [], ruled).check(back)
    rulings = Rulings(NAMES, [], [*ruled, back])
    assert rulings.entrants[:3] == [Entrant()] * 3
    assert Ladder(rulings.entrants, 2).places(rulings.history) == {0: 1, 1: 2, 2: 3, 3: 4}
    ruled += [
        back,
        entry(Action.WITHDRAW, "ann", annul=False),
        entry(Action.ADD, "right", replaces="ann"),
    ]
    entrants = Rulings(NAMES, [], ruled).entrants
    games = play(Ladder(entrants, 2), drawn)
    assert Ladder(entrants, 2).places(History(games)) == {4: 1, 1: 2, 2: 3, 0: 4, 3: 4}


def test_a_replaced_bot_is_not_restored_while_a_later_version_plays() -> None:
    """Although the version that replaced it has withdrawn."""
    ruled = [
        entry(Action.WITHDRAW, "ann", annul=False),
        entry(Action.ADD, "ann 2", replaces="ann"),
        entry(Action.WITHDRAW, "ann 2", annul=False),
        entry(Action.ADD, "ann 3", replaces="ann 2"),
    ]
    restored = entry(Action.RESTORE, "ann", what=BOT)
    with pytest.raises(RulingError, match="'ann 3' replaces 'ann': withdraw 'ann 3' first"):
        Rulings(NAMES, [], ruled).check(restored)
    Rulings(NAMES, [], [*ruled, entry(Action.WITHDRAW, "ann 3", annul=False)]).check(restored)


@pytest.mark.parametrize(
    ("subject", "what", "complaint"),
    [
        ("r009-1v2", GAME, "there is no game 'r009-1v2' here that was set aside"),
        ("r001-2v1", GAME, "game 'r001-2v1' is played again as 'r001-2v1~2', and cannot be restored"),
        ("r001-1v3", GAME, "'cid' has withdrawn, and with it this game: restore the bot"),
        ("bob", BOT, "'bob' has not withdrawn"),
        ("eve", BOT, "there is no bot 'eve' here"),
        ("dan", BOT, "'late' replaces 'dan': withdraw 'late' first"),
    ],
)
def test_invalid_restorations_are_refused(subject: str, what: str, complaint: str) -> None:
    ruled = [
        entry(Action.REPLAY, "r001-2v1"),
        entry(Action.WITHDRAW, "cid", annul=True),
        entry(Action.WITHDRAW, "dan", annul=False),
        entry(Action.ADD, "late", replaces="dan"),
    ]
    with pytest.raises(RulingError, match=re.escape(complaint)):
        Rulings([*NAMES, "dan"], all_games(), ruled).check(entry(Action.RESTORE, subject, what=what))


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 14))
def test_any_sequence_of_rulings(seed: int, steps: int) -> None:
    dice = random.Random(seed)
    tournament = Tournament(dice)
    for _ in range(steps):
        tournament.play()
        rulings = checked(tournament.games, tournament.entries)
        schedule = RoundRobin(rulings.entrants, ROUNDS)
        due = schedule.due(rulings.history)
        assert schedule.total(rulings.history) == len(rulings.results) + len(due)
        if tournament.rule():
            checked(tournament.games, tournament.entries)
    rulings = tournament.rulings
    shuffled = dice.sample(tournament.games, len(tournament.games))
    other = checked(shuffled, tournament.entries)
    assert other.results == rulings.results
    assert (other.set_aside, other.entrants) == (rulings.set_aside, rulings.entrants)
    assert sorted(one.key for one in other.counted) == sorted(one.key for one in rulings.counted)

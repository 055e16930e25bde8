"""One bot against another: all that is said of them follows from the games."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import invoke, make_summary, one_object
from tests.test_agreement import GAMES, NAMES, fill
from tournaments.analysis.comparison import compare
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.pentanomial import of_pairs
from tournaments.analysis.ratings.ratings import rate
from tournaments.results.game_summary import GameSummary

PAIRS = st.lists(st.tuples(st.sampled_from([0, 1, None]), st.sampled_from([0, 1, None])), max_size=30)


def games_of(
    pairs: list[tuple[int | None, int | None]], one: str = "ann", other: str = "bob"
) -> list[GameSummary]:
    """Pairs of games, each game different; winners count from whoever moved first."""
    found = []
    for number, (forth, back) in enumerate(pairs):
        for first, second, winner in ((one, other, forth), (other, one, back)):
            game = make_summary(first, second, winner, key=f"{number}-{first}")
            found.append(replace_pair(game, f"p{number}"))
    return found


def replace_pair(game: GameSummary, pair: str) -> GameSummary:
    return GameSummary(
        **{name: getattr(game, name) for name in GameSummary.__slots__}
        | {"pair": pair, "fingerprint": game.key, "line": game.key}
    )


def test_by_hand() -> None:
    found = compare(["ann", "bob"], games_of([(0, 1), (0, 0), (None, 1)]), "ann", "bob")
    assert (found.wins, found.draws, found.losses, found.unique) == (4, 1, 1, 6)
    assert list(found.pairs) == [0, 0, 1, 1, 1]
    assert found.match == of_pairs((0, 0, 1, 1, 1))
    assert found.difference is not None
    assert found.difference.low < found.difference.value < found.difference.high
    assert found.superiority is not None
    assert 0.5 < found.superiority < 1
    # There are no other games than these, so that the whole tournament says the same.
    assert found.difference == (found.match.elo, found.match.elo_low, found.match.elo_high)


@given(PAIRS)
def test_the_other_way_round_is_the_mirror(pairs: list[tuple[int | None, int | None]]) -> None:
    games = games_of(pairs)
    one, other = (compare(["ann", "bob"], games, *names) for names in (("ann", "bob"), ("bob", "ann")))
    assert (one.wins, one.draws, one.losses, one.unique) == (
        other.losses,
        other.draws,
        other.wins,
        other.unique,
    )
    assert one.pairs == other.pairs[::-1]
    assert one.superiority is not None
    assert other.superiority is not None
    assert one.superiority == pytest.approx(1 - other.superiority, abs=1e-9)
    if one.difference is not None and other.difference is not None:
        assert one.difference.value == pytest.approx(-other.difference.value, abs=1e-6)
        assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-3)


def test_other_opponents_count() -> None:
    """Two that never met are compared by whom they met."""
    games = games_of([(0, 1)] * 5, "ann", "cid") + games_of([(1, 0)] * 5, "bob", "cid")
    names = ["ann", "bob", "cid"]
    found = compare(names, games, "ann", "bob")
    assert (found.wins, found.draws, found.losses, found.unique) == (0, 0, 0, 0)
    assert found.superiority is not None
    assert found.superiority > 0.95
    assert found.difference is not None
    rated = rate(evidence_of(names, games), anchor=1)
    assert found.difference.value == pytest.approx(float(rated.rating[0]))
    assert found.to_json()["match"]["elo"] is None
    assert "from these" not in found.to_text()


def test_the_command(tmp_path: Path) -> None:
    folder = fill(tmp_path, {pairing.key: (0, False, pairing.key[-1]) for pairing in GAMES}, [])
    shown = invoke("tournament", "compare", folder, NAMES[0], NAMES[1])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("ann against bob: 4 games, 2 of them unique\n  won 2, drawn 0, lost 2\n")
    found = one_object(invoke("tournament", "compare", folder, "ann", "bob", "--json").stdout)
    assert found["pairs"] == [0, 0, 1, 0, 0]
    assert found["likelihood_of_superiority"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("bots", "complaint"),
    [
        (("ann", "bobb"), "there is no bot 'bobb' here; did you mean 'bob'?"),
        (("ann", "ann"), "two different bots are needed"),
    ],
)
def test_bots_that_cannot_be_compared(tmp_path: Path, bots: tuple[str, str], complaint: str) -> None:
    done = invoke("tournament", "compare", fill(tmp_path, {}, []), *bots)
    assert (done.exit_code, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_before_the_first_game(tmp_path: Path) -> None:
    done = invoke("tournament", "compare", fill(tmp_path, {}, []), "ann", "bob")
    assert done.stdout == "ann against bob: 0 games, 0 of them unique\n  won 0, drawn 0, lost 0\n"

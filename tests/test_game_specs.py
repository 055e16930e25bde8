"""Spec texts: which game they name, their canonical form, and every message of refusal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import GAMES, parse_game
from referee.games.kalah import MAX_PITS, MAX_SEEDS, EndRule, Kalah
from referee.games.kalamala import DEFAULT_CAP, MAX_CAP, Kalamala
from referee.games.spec import SpecError, parse_spec


def kalah(text: str) -> Kalah:
    game = parse_game(text)
    assert isinstance(game, Kalah)
    return game


def rules(game: Kalah) -> tuple[Any, ...]:
    """Everything but the name."""
    return (
        (game.pits, game.seeds),
        (game.pie, game.first_move_repeats, game.end.value, game.majority_end, game.empty_capture),
    )


def kalamala(text: str) -> Kalamala:
    game = parse_game(text)
    assert isinstance(game, Kalamala)
    return game


# The rule book's table of presets (docs/rules.md): p,s; pie, first-move-repeats, end, majority-end,
# empty-capture.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("manchester", ((7, 7), (True, False, "either", False, False))),
        ("bga", ((6, 4), (False, True, "on-turn", True, False))),
        ("kalah(5,3)", ((5, 3), (False, True, "either", False, False))),
        # and its examples
        ("bga(6,6)+pie+empty-capture", ((6, 6), (True, True, "on-turn", True, True))),
        ("manchester+end=on-turn", ((7, 7), (True, False, "on-turn", False, False))),
        (
            "kalah(3,3)+pie+first-move-repeats=no+majority-end",
            ((3, 3), (True, False, "either", True, False)),
        ),
    ],
)
def test_presets_and_examples(text: str, expected: tuple[Any, ...]) -> None:
    assert rules(kalah(text)) == expected


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("manchester", "manchester"),
        ("manchester(7,7)", "manchester"),
        ("manchester(6,4)", "manchester(6,4)"),
        ("manchester+pie", "manchester"),
        ("manchester+pie=yes+end=either", "manchester"),
        ("manchester+pie=no", "manchester+pie=no"),
        ("manchester+first-move-repeats", "manchester+first-move-repeats"),
        ("manchester+first-move-repeats=yes", "manchester+first-move-repeats"),
        ("manchester+empty-capture+end=on-turn", "manchester+end=on-turn+empty-capture"),
        ("bga(6,4)+end=on-turn", "bga"),
        ("bga+majority-end=no+end=either+pie", "bga+pie+end=either+majority-end=no"),
        ("kalah(6,4)", "kalah(6,4)"),
        ("kalah(06,004)", "kalah(6,4)"),
        ("kalah(6,4)+empty-capture=yes+pie", "kalah(6,4)+pie+empty-capture"),
        ("  kalah ( 6 , 4 ) + pie = no\t+ end = on-turn\n", "kalah(6,4)+end=on-turn"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    game = kalah(text)
    assert game.name == canonical
    assert kalah(canonical) == game


@pytest.mark.parametrize(
    ("text", "canonical", "ko", "cap"),
    [
        ("kalamala", "kalamala", "superko", 600),
        ("kalamala+ko=superko", "kalamala", "superko", 600),
        ("kalamala+cap=600", "kalamala", "superko", 600),
        ("kalamala+ko=basic", "kalamala+ko=basic", "basic", 600),
        ("kalamala+ko=none+cap=600", "kalamala+ko=none", "none", 600),
        ("kalamala+cap=1", "kalamala+cap=1", "superko", 1),
        ("kalamala+cap=0300+ko=none", "kalamala+ko=none+cap=300", "none", 300),
        ("  kalamala + cap = 5000\t", "kalamala+cap=5000", "superko", 5000),
    ],
)
def test_kalamala_specs(text: str, canonical: str, ko: str, cap: int) -> None:
    game = kalamala(text)
    assert game.name == canonical
    assert (game.ko.value, game.cap) == (ko, cap)
    assert kalamala(canonical) == game


def test_kalamala_in_the_catalog() -> None:
    assert GAMES["kalamala"].board == ""
    assert list(GAMES["kalamala"].options) == ["ko", "cap"]
    assert GAMES["kalamala"].options["ko"][0] == "superko|basic|none, default superko"
    assert GAMES["kalamala"].options["cap"][0] == f"1 to {MAX_CAP}, default {DEFAULT_CAP}"
    assert "Daniel Sherlock and Salih Kadri" in GAMES["kalamala"].about


@pytest.mark.parametrize("text", ["kalah(1,1)", f"kalah({MAX_PITS},{MAX_SEEDS})"])
def test_smallest_and_largest_board(text: str) -> None:
    game = kalah(text)
    assert game.name == text


def test_the_longest_board_text_is_as_short_as_max_pits_promises() -> None:
    # 62 numbers that make 6,000 seeds have the most digits if as many as can be have three.
    game = kalah(f"kalah({MAX_PITS},{MAX_SEEDS})")
    numbers = ["100"] * 59 + ["80", "10", "10"]
    assert len(game.board_text(game.parse_state(",".join(numbers)))) < 250


OPTION_VALUES = {
    "pie": ["yes", "no"],
    "first-move-repeats": ["yes", "no"],
    "end": ["either", "on-turn"],
    "majority-end": ["yes", "no"],
    "empty-capture": ["yes", "no"],
}


@st.composite
def specs(draw: st.DrawFn) -> tuple[str, dict[str, str], tuple[int, int]]:
    """A random spec text, what it says, and its board; options in any order, spaces anywhere."""
    name = draw(st.sampled_from(["manchester", "bga", "kalah"]))
    default = {"manchester": (7, 7), "bga": (6, 4), "kalah": None}[name]
    board = draw(st.tuples(st.integers(1, MAX_PITS), st.integers(1, MAX_SEEDS)))
    parts = [name, f"({board[0]},{board[1]})"]
    if default is not None and draw(st.booleans()):
        board = default
        del parts[1]
    said: dict[str, str] = {}
    for option in draw(st.lists(st.sampled_from(sorted(OPTION_VALUES)), unique=True)):
        said[option] = draw(st.sampled_from(OPTION_VALUES[option]))
        short = said[option] == "yes" and draw(st.booleans())
        parts += ["+", option] if short else ["+", option, "=", said[option]]
    space = draw(st.sampled_from(["", "", " ", "\t "]))
    return space.join(parts), said, board


@given(specs())
def test_random_specs_keep_their_meaning(drawn: tuple[str, dict[str, str], tuple[int, int]]) -> None:
    text, said, board = drawn
    game = kalah(text)
    assert (game.pits, game.seeds) == board
    actual = {
        "pie": "yes" if game.pie else "no",
        "first-move-repeats": "yes" if game.first_move_repeats else "no",
        "end": game.end.value,
        "majority-end": "yes" if game.majority_end else "no",
        "empty-capture": "yes" if game.empty_capture else "no",
    }
    unsaid = kalah(text.split("+")[0])
    assert {option: actual[option] for option in said} == said
    for option, field in [("pie", "pie"), ("end", "end"), ("majority-end", "majority_end")]:
        assert option in said or getattr(game, field) == getattr(unsaid, field)
    # The canonical form says the same, is its own canonical form, and is never longer than needed.
    again = kalah(game.name)
    assert again == game
    assert again.name == game.name
    assert " " not in game.name
    assert len(game.name) <= len("".join(text.split()))


@given(
    st.text(st.sampled_from("kalahbg(),+=-0123456 e\u0663"), max_size=20)
    | st.text(max_size=12)
    | st.text(st.sampled_from("+kocap=123 none"), max_size=20).map("kalamala".__add__)
)
def test_any_text_is_a_game_or_a_spec_error(text: str) -> None:
    try:
        game = parse_game(text)
    except SpecError:
        return
    assert parse_game(game.name) == game


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # no game of that name
        (
            "manchster",
            [
                "no game 'manchster'",
                "did you mean 'manchester'?",
                "there are manchester, bga, kalah, kalamala",
            ],
        ),
        ("Manchester", ["no game 'Manchester'", "did you mean 'manchester'?"]),
        ("BGA+pie", ["no game 'BGA'", "did you mean 'bga'?"]),
        ("kala(6,4)", ["no game 'kala'", "did you mean 'kalah'?"]),
        ("oware(6,4)", ["no game 'oware'", "kalarena games"]),
        # no option of that name
        ("kalah(6,4)+pi", ["no option 'pi' for kalah", "did you mean 'pie'?"]),
        ("manchester+empty_capture", ["no option 'empty_capture'", "did you mean 'empty-capture'?"]),
        ("manchester+PIE", ["no option 'PIE'", "did you mean 'pie'?"]),
        (
            "manchester+xyzzy",
            ["no option 'xyzzy'", "there are pie, first-move-repeats, end, majority-end, empty-capture"],
        ),
        ("manchester+", ["no option ''"]),
        ("manchester++pie", ["no option ''"]),
        ("manchester+=yes", ["no option ''"]),
        # no such value
        ("manchester+end=never", ["option end takes either or on-turn, not 'never'"]),
        ("manchester+end=yes", ["option end takes either or on-turn, not 'yes'"]),
        ("manchester+end", ["option end takes either or on-turn", "for example +end=either"]),
        ("manchester+pie=maybe", ["option pie takes yes or no, not 'maybe'"]),
        ("manchester+pie=YES", ["option pie takes yes or no, not 'YES'"]),
        ("manchester+pie=", ["option pie takes yes or no, not ''"]),
        ("manchester+pie=yes=no", ["option pie takes yes or no, not 'yes=no'"]),
        # twice, also with the same value
        ("manchester+pie+end=either+pie=no", ["option 'pie' is given twice"]),
        ("manchester+pie+pie", ["option 'pie' is given twice"]),
        # boards
        ("kalah", ["kalah needs a board", "kalah(6,4)"]),
        ("kalah+pie", ["kalah needs a board"]),
        ("kalah(6)", ["a board is (PITS,SEEDS)"]),
        ("manchester(7,7,7)", ["a board is (PITS,SEEDS)"]),
        ("kalah(0,4)", ["no such board", f"1 to {MAX_PITS}", f"1 to {MAX_SEEDS}"]),
        ("kalah(6,0)", ["no such board"]),
        (f"kalah({MAX_PITS + 1},4)", ["no such board"]),
        (f"kalah(6,{MAX_SEEDS + 1})", ["no such board"]),
        pytest.param(f"kalah({'9' * 5000},4)", ["no such board"], id="5000 nines"),
        # Kalamala
        ("Kalamala", ["no game 'Kalamala'", "did you mean 'kalamala'?"]),
        ("kalamal", ["no game 'kalamal'", "did you mean 'kalamala'?"]),
        ("kalamala(8,8)", ["the board of kalamala is always 8 x 8", "(8, 8)"]),
        ("kalamala+ko", ["option ko takes superko, basic, none", "+ko=basic"]),
        ("kalamala+ko=yes", ["option ko takes superko, basic, none"]),
        ("kalamala+ko=SuperKo", ["option ko takes superko, basic, none"]),
        ("kalamala+ko=", ["option ko takes superko, basic, none"]),
        ("kalamala+cap", ["option cap takes a number", "+cap=600"]),
        ("kalamala+cap=", ["option cap takes a number"]),
        ("kalamala+cap=many", ["option cap takes a number"]),
        ("kalamala+cap=-1", ["option cap takes a number"]),
        ("kalamala+cap=1.5", ["option cap takes a number"]),
        ("kalamala+cap=1e3", ["option cap takes a number"]),
        ("kalamala+cap=\N{SUPERSCRIPT TWO}", ["option cap takes a number"]),
        ("kalamala+cap=0", [f"option cap takes a number from 1 to {MAX_CAP}"]),
        (f"kalamala+cap={MAX_CAP + 1}", [f"option cap takes a number from 1 to {MAX_CAP}"]),
        pytest.param(f"kalamala+cap={'9' * 5000}", ["option cap takes a number"], id="cap of 5000 nines"),
        ("kalamala+cap=3+cap=3", ["option 'cap' is given twice"]),
        ("kalamala+pie", ["no option 'pie' for kalamala", "there are ko, cap"]),
        ("kalamala+kos=none", ["no option 'kos' for kalamala", "did you mean 'ko'?"]),
        ("kalamala+Cap=3", ["no option 'Cap' for kalamala", "did you mean 'cap'?"]),
        ("kalah(6,4)+ko=none", ["no option 'ko' for kalah"]),
        # not even a spec in form
        ("", ["'' is no game", "expected NAME"]),
        ("   ", ["is no game"]),
        ("(6,4)", ["is no game"]),
        ("7kalah(6,4)", ["is no game"]),
        ("kalah()", ["is no game"]),
        ("kalah(6,4", ["is no game"]),
        ("kalah(6,4))", ["is no game"]),
        ("kalah(6;4)", ["is no game"]),
        ("kalah(-6,4)", ["is no game"]),
        ("kalah(6.0,4)", ["is no game"]),
        ("kalah(\N{FULLWIDTH DIGIT SIX},4)", ["is no game"]),
        ("kalah[6,4]", ["is no game"]),
        ("kalah(6,4)pie", ["is no game"]),
        ("kalah+pie(6,4)", ["kalah needs a board"]),
        ("manchester=yes", ["is no game"]),
    ],
)
def test_refused_specs_say_why(text: str, words: list[str]) -> None:
    with pytest.raises(SpecError) as error:
        parse_game(text)
    assert [word for word in words if word in str(error.value)] == words


@pytest.mark.parametrize("digits", [10, 12, 40])
def test_leading_zeros_do_not_change_a_board(digits: int) -> None:
    assert kalah(f"kalah({17:0{digits}},{4:0{digits}})").name == "kalah(17,4)"


def test_nothing_close_suggests_nothing() -> None:
    with pytest.raises(SpecError) as error:
        parse_game("zzz")
    assert "did you mean" not in str(error.value)


def test_parse_spec_keeps_the_parts() -> None:
    spec = parse_spec("some-game_2 (1, 2,3)+a+b=c+d=")
    assert spec.text == "some-game_2 (1, 2,3)+a+b=c+d="
    assert spec.name == "some-game_2"
    assert spec.board == (1, 2, 3)
    assert spec.options == {"a": None, "b": "c", "d": ""}
    assert parse_spec("x").board is None
    assert parse_spec("x").options == {}


@pytest.mark.parametrize("board", [(0, 1), (1, 0), (-1, 4), (MAX_PITS + 1, 1), (1, MAX_SEEDS + 1)], ids=str)
def test_a_rule_book_refuses_a_board_that_cannot_be(board: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no board"):
        Kalah("x", *board, False, True, EndRule.EITHER, False, False)


def test_catalog_shows_every_option_with_its_default() -> None:
    assert GAMES["manchester"].board == "(PITS,SEEDS), default (7,7)"
    assert GAMES["kalah"].board == "(PITS,SEEDS), to be given"
    assert GAMES["manchester"].options["pie"][0] == "yes|no, default yes"
    assert GAMES["bga"].options["end"][0] == "either|on-turn, default on-turn"
    for name in ("manchester", "bga", "kalah"):
        assert list(GAMES[name].options) == list(OPTION_VALUES)

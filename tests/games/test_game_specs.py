"""Spec texts: which game they name, their canonical form, and every message of refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import GAMES, parse_game
from referee.games.kalah import MAX_PITS, MAX_SEEDS, EndRule, Kalah
from referee.games.kalamala import DEFAULT_CAP, MAX_CAP, Kalamala
from referee.games.spec import SpecError, parse_spec

OPTION_VALUES = {
    "pie": ["yes", "no"],
    "first-move-repeats": ["yes", "no"],
    "end": ["either", "on-turn"],
    "majority-end": ["yes", "no"],
    "empty-capture": ["yes", "no"],
}


def kalah(text: str) -> Kalah:
    game = parse_game(text)
    assert isinstance(game, Kalah)
    return game


def options_of(game: Kalah) -> dict[str, str]:
    """The options of a game as a spec text would write them."""
    values = (game.pie, game.first_move_repeats, game.end.value, game.majority_end, game.empty_capture)
    texts = [str(value).replace("True", "yes").replace("False", "no") for value in values]
    return dict(zip(OPTION_VALUES, texts, strict=True))


# The rule book's table of presets (docs/rules.md) and its examples: p,s; pie, first-move-repeats, end,
# majority-end, empty-capture.
@pytest.mark.parametrize(
    ("text", "board", "options"),
    [
        ("manchester", (7, 7), "yes no either no no"),
        ("bga", (6, 4), "no yes on-turn yes no"),
        ("kalah(5,3)", (5, 3), "no yes either no no"),
        ("bga(6,6)+pie+empty-capture", (6, 6), "yes yes on-turn yes yes"),
        ("manchester+end=on-turn", (7, 7), "yes no on-turn no no"),
        ("kalah(3,3)+pie+first-move-repeats=no+majority-end", (3, 3), "yes no either yes no"),
    ],
)
def test_presets_and_examples(text: str, board: tuple[int, int], options: str) -> None:
    game = kalah(text)
    assert (game.pits, game.seeds) == board
    assert " ".join(options_of(game).values()) == options


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("manchester", "manchester"),
        ("manchester(7,7)", "manchester"),
        ("manchester(6,4)", "manchester(6,4)"),
        ("manchester+pie=yes+end=either", "manchester"),
        ("manchester+pie=no", "manchester+pie=no"),
        ("manchester+first-move-repeats=yes", "manchester+first-move-repeats"),
        ("manchester+empty-capture+end=on-turn", "manchester+end=on-turn+empty-capture"),
        ("bga(6,4)+end=on-turn", "bga"),
        ("bga+majority-end=no+end=either+pie", "bga+pie+end=either+majority-end=no"),
        ("kalah(06,004)", "kalah(6,4)"),
        (f"kalah({17:040},{4:010})", "kalah(17,4)"),
        ("kalah(1,1)", "kalah(1,1)"),
        (f"kalah({MAX_PITS},{MAX_SEEDS})", f"kalah({MAX_PITS},{MAX_SEEDS})"),
        ("kalah(6,4)+empty-capture=yes+pie", "kalah(6,4)+pie+empty-capture"),
        ("  kalah ( 6 , 4 ) + pie = no\t+ end = on-turn\n", "kalah(6,4)+end=on-turn"),
        ("kalamala+ko=superko", "kalamala"),
        ("kalamala+cap=600", "kalamala"),
        ("kalamala+ko=none+cap=600", "kalamala+ko=none"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    game = parse_game(text)
    assert game.name == canonical
    assert parse_game(canonical) == game


@pytest.mark.parametrize(
    ("text", "canonical", "ko", "cap"),
    [
        ("kalamala", "kalamala", "superko", 600),
        ("kalamala+ko=basic", "kalamala+ko=basic", "basic", 600),
        ("kalamala+cap=1", "kalamala+cap=1", "superko", 1),
        ("kalamala+cap=0300+ko=none", "kalamala+ko=none+cap=300", "none", 300),
        ("  kalamala + cap = 5000\t", "kalamala+cap=5000", "superko", 5000),
    ],
)
def test_kalamala_specs(text: str, canonical: str, ko: str, cap: int) -> None:
    game = parse_game(text)
    assert isinstance(game, Kalamala)
    assert (game.name, game.ko.value, game.cap) == (canonical, ko, cap)


def test_the_longest_board_text_is_as_short_as_max_pits_promises() -> None:
    # 62 numbers that make 6,000 seeds have the most digits if as many as can be have three.
    game = kalah(f"kalah({MAX_PITS},{MAX_SEEDS})")
    numbers = ["100"] * 59 + ["80", "10", "10"]
    assert len(game.board_text(game.parse_state(",".join(numbers)))) < 250


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
    actual = options_of(game)
    unsaid = kalah(text.split("+")[0])
    assert actual == {**options_of(unsaid), **said}
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


REFUSED: dict[tuple[str, ...], tuple[str, ...]] = {
    # No game of that name.
    ("no game 'manchster'", "did you mean 'manchester'?", "there are manchester, bga, kalah, kalamala"): (
        "manchster",
    ),
    ("no game 'Manchester'", "did you mean 'manchester'?"): ("Manchester",),
    ("no game 'BGA'", "did you mean 'bga'?"): ("BGA+pie",),
    ("no game 'kala'", "did you mean 'kalah'?"): ("kala(6,4)",),
    ("no game 'oware'", "kalarena games"): ("oware(6,4)",),
    ("no game 'kalamal'", "did you mean 'kalamala'?"): ("kalamal",),
    # No option of that name, or twice.
    ("no option 'pi' for kalah", "did you mean 'pie'?"): ("kalah(6,4)+pi",),
    ("no option 'empty_capture'", "did you mean 'empty-capture'?"): ("manchester+empty_capture",),
    ("no option 'PIE'", "did you mean 'pie'?"): ("manchester+PIE",),
    ("no option 'xyzzy'", "there are pie, first-move-repeats, end, majority-end, empty-capture"): (
        "manchester+xyzzy",
    ),
    ("no option ''",): ("manchester+", "manchester++pie", "manchester+=yes"),
    ("option 'pie' is given twice",): ("manchester+pie+end=either+pie=no", "manchester+pie+pie"),
    ("option 'cap' is given twice",): ("kalamala+cap=3+cap=3",),
    ("no option 'pie' for kalamala", "there are ko, cap"): ("kalamala+pie",),
    ("no option 'kos' for kalamala", "did you mean 'ko'?"): ("kalamala+kos=none",),
    ("no option 'Cap' for kalamala", "did you mean 'cap'?"): ("kalamala+Cap=3",),
    ("no option 'ko' for kalah",): ("kalah(6,4)+ko=none",),
    # No such value.
    ("option end takes either or on-turn, not 'never'",): ("manchester+end=never",),
    ("option end takes either or on-turn", "for example +end=either"): ("manchester+end",),
    ("option pie takes yes or no, not 'YES'",): ("manchester+pie=YES",),
    ("option pie takes yes or no, not ''",): ("manchester+pie=",),
    ("option pie takes yes or no, not 'yes=no'",): ("manchester+pie=yes=no",),
    ("option ko takes superko, basic, none", "+ko=basic"): (
        *("kalamala+ko", "kalamala+ko=yes", "kalamala+ko=SuperKo", "kalamala+ko="),
    ),
    ("option cap takes a number", "+cap=600"): (
        *("kalamala+cap", "kalamala+cap=", "kalamala+cap=many", "kalamala+cap=-1", "kalamala+cap=1.5"),
        *("kalamala+cap=1e3", "kalamala+cap=\N{SUPERSCRIPT TWO}", f"kalamala+cap={'9' * 5000}"),
    ),
    (f"option cap takes a number from 1 to {MAX_CAP}",): ("kalamala+cap=0", f"kalamala+cap={MAX_CAP + 1}"),
    # Boards.
    ("kalah needs a board", "kalah(6,4)"): ("kalah", "kalah+pie", "kalah+pie(6,4)"),
    ("a board is (PITS,SEEDS)",): ("kalah(6)", "manchester(7,7,7)"),
    ("no such board", f"1 to {MAX_PITS}", f"1 to {MAX_SEEDS}"): (
        *("kalah(0,4)", "kalah(6,0)", f"kalah({MAX_PITS + 1},4)", f"kalah(6,{MAX_SEEDS + 1})"),
        f"kalah({'9' * 5000},4)",
    ),
    ("the board of kalamala is always 8 x 8", "(8, 8)"): ("kalamala(8,8)",),
    # Not even a spec in form.
    ("'' is no game", "expected NAME"): ("",),
    ("is no game",): (
        *("   ", "(6,4)", "7kalah(6,4)", "kalah()", "kalah(6,4", "kalah(6,4))", "kalah(6;4)", "kalah(-6,4)"),
        *("kalah(6.0,4)", "kalah(\N{FULLWIDTH DIGIT SIX},4)", "kalah[6,4]", "kalah(6,4)pie"),
        "manchester=yes",
    ),
}
"""Parts of the message -> spec texts that are refused with it."""


@pytest.mark.parametrize(
    ("text", "words"),
    [pytest.param(text, words, id=text[:60]) for words, texts in REFUSED.items() for text in texts],
)
def test_refused_specs_say_why(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as error:
        parse_game(text)
    assert [word for word in words if word in str(error.value)] == list(words)


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
    kalamala = GAMES["kalamala"]
    assert kalamala.board == ""
    assert {name: texts[0] for name, texts in kalamala.options.items()} == {
        "ko": "superko|basic|none, default superko",
        "cap": f"1 to {MAX_CAP}, default {DEFAULT_CAP}",
    }
    assert "Daniel Sherlock and Salih Kadri" in kalamala.about

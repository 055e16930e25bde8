"""Stepping through a game in a real browser, opened from the file system."""

import random
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.reporting.replay_pages import (
    FURTHER_GAMES,
    GAMES,
    WHOLE_PLY_MS,
    Write,
    at_ply,
    moving,
    positions,
    shown,
    stop_clock,
)
from tests.support.browser import chromium, watched_page
from tests.support.random_games import random_game

"""Writes the page of a record, and says where it is."""


# Loading and stepping.


@pytest.mark.usefixtures("further_games")
@pytest.mark.parametrize(
    "game", [GAMES[0], *(pytest.param(game, marks=pytest.mark.browser) for game in GAMES[1:] + FURTHER_GAMES)]
)
def test_every_position_is_right_forwards_and_backwards(browser: Browser, write: Write, game: str) -> None:
    record = random_game(game)
    expected = positions(record)
    with watched_page(browser, reduced_motion="reduce") as page:
        page.goto(write(record))
        at_ply(page, 0)
        expect(page.locator("#replay")).to_be_visible()
        expect(page.locator("#replay-still")).to_be_hidden()
        assert shown(page) == expected[0]
        expect(page.locator(".replay-said")).to_have_text("Start of the game")
        assert "#" not in page.url
        for ply in range(1, len(expected)):
            page.keyboard.press("ArrowRight")
            assert shown(page) == expected[ply]
        page.keyboard.press("ArrowRight")  # there is no more
        at_ply(page, len(record.moves))
        for ply in reversed(range(len(expected) - 1)):
            page.keyboard.press("ArrowLeft")
            assert shown(page) == expected[ply]
        page.keyboard.press("ArrowLeft")
        at_ply(page, 0)


@pytest.mark.browser
@pytest.mark.usefixtures("further_games")
@pytest.mark.parametrize("game", GAMES + FURTHER_GAMES)
def test_animated_steps_end_where_they_should(browser: Browser, write: Write, game: str) -> None:
    record = random_game(game)
    expected = positions(record)
    with watched_page(browser) as page:
        page.clock.install()
        page.goto(write(record))
        stop_clock(page)
        animated = 0
        for ply in range(1, min(12, len(expected))):
            page.keyboard.press("ArrowRight")
            animated += moving(page)
            page.clock.run_for(WHOLE_PLY_MS)
            assert not moving(page)
            assert shown(page) == expected[ply]
        assert animated > 5


SEEDS = """() => [
    [...document.querySelectorAll("[data-cell]")].reduce(
        (sum, cell) => sum + Number(cell.getAttribute("data-content")), 0),
    document.querySelectorAll(".replay-scene > svg > g:last-child circle").length,
]"""
"""Number of seeds on the board, and number of seeds in an animation."""


@pytest.mark.browser
def test_nothing_is_lost_on_the_way(browser: Browser, write: Write) -> None:
    """At every moment each seed either lies somewhere or is on its way."""
    record = random_game("manchester(3,3)")
    total = 18
    met = set()
    with watched_page(browser) as page:
        page.clock.install()
        page.goto(write(record))
        stop_clock(page)
        for _ in range(4):
            page.keyboard.press("ArrowRight")
            for _ in range(30):
                page.clock.run_for(35)
                lying, on_the_way = page.evaluate(SEEDS)  # at once: the page's clock goes on
                assert lying + on_the_way == total
                met.add(on_the_way)
    assert met >= {0, 1}


@pytest.mark.browser
@pytest.mark.parametrize("game", GAMES)
def test_interrupted_animation_leaves_the_right_board(browser: Browser, write: Write, game: str) -> None:
    record = random_game(game)
    expected = positions(record)
    last = len(expected) - 1
    dice = random.Random(7)
    interrupted = 0
    with watched_page(browser) as page:
        page.clock.install()
        page.goto(write(record))
        stop_clock(page)
        ply = 0
        for _ in range(20):
            page.keyboard.press("ArrowRight")
            ply = min(last, ply + 1)
            page.clock.run_for(dice.randrange(20, 400))
            interrupted += moving(page)
            key = dice.choice(["ArrowLeft", "ArrowLeft", "Home", "End", "ArrowRight", "hash"])
            if key == "hash":
                page.clock.run_for(200)  # until the address says where we are
                ply = (ply + dice.randrange(1, last)) % (last + 1)  # any but this one
                page.evaluate(f"location.hash = '#ply={ply}'")
                at_ply(page, ply)
            else:
                page.keyboard.press(key)
                aims = {
                    "ArrowLeft": max(0, ply - 1),
                    "Home": 0,
                    "End": last,
                    "ArrowRight": min(last, ply + 1),
                }
                ply = aims[key]
            if key == "ArrowRight":  # animated again: it must begin from the right board, and end at it
                page.clock.run_for(WHOLE_PLY_MS)
            assert shown(page) == expected[ply]
            assert not moving(page)
            at_ply(page, ply)
    assert interrupted > 7


@pytest.mark.browser
@pytest.mark.parametrize("game", GAMES)
def test_plays_to_the_end_and_stops(browser: Browser, write: Write, game: str) -> None:
    record = random_game(game)
    expected = positions(record)
    with watched_page(browser) as page:
        page.clock.install()
        page.goto(write(record))
        stop_clock(page)
        page.locator(".replay-speed").select_option("4")
        play = page.locator("[data-do=play]")
        play.click()
        expect(play).to_have_attribute("aria-label", "Pause (Space)")
        for _ in record.moves:
            page.clock.run_for(WHOLE_PLY_MS)
        at_ply(page, len(record.moves))
        expect(play).to_have_attribute("aria-label", "Play (Space)")
        assert shown(page) == expected[-1]
        play.click()  # again, from the start
        at_ply(page, 0)
        page.clock.run_for(400)
        play.click()
        stopped = int(page.locator("#replay").get_attribute("data-ply") or "")
        assert 0 < stopped < len(record.moves)
        page.clock.run_for(WHOLE_PLY_MS)
        at_ply(page, stopped)
        assert shown(page) == expected[stopped]


@pytest.mark.browser
def test_plays_in_real_time(browser: Browser, write: Write) -> None:
    """Without the artificial clock of the tests above."""
    record = random_game("kalah(2,1)")
    with watched_page(browser) as page:
        page.goto(write(record))
        page.locator(".replay-speed").select_option("4")
        page.keyboard.press("Escape")
        page.locator("[data-do=play]").click()
        at_ply(page, len(record.moves))
        expect(page.locator("#replay:not([data-moving])")).to_be_visible()
        assert shown(page) == positions(record)[-1]


# The tests' own means.


@pytest.mark.slow
def test_missing_browser_is_a_reason_to_skip_but_not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.browser.CHROMIUM", Path("/no/such/browser"))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("KALARENA_REQUIRE_BROWSER", raising=False)
    for raised in (pytest.skip.Exception, pytest.fail.Exception):
        with pytest.raises(raised, match="/no/such/browser is missing"), chromium():
            pass
        monkeypatch.setenv("KALARENA_REQUIRE_BROWSER", "1")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("script", "event", "trouble"),
    [
        ("console.error('oh')", "console", "error: oh"),
        ("setTimeout(() => { throw new Error('oh'); })", "pageerror", "page error: oh"),
        ("alert('oh')", "dialog", "dialog: oh"),
        (
            "document.body.append(Object.assign(new Image(), {src: 'none.png'}))",
            "requestfailed",
            "could not load .*none.png",
        ),
    ],
)
def test_errors_of_a_page_fail_its_test(
    browser: Browser, write: Write, script: str, event: str, trouble: str
) -> None:
    address = write(random_game("kalah(2,1)"))

    def visit() -> None:
        with watched_page(browser) as page:
            page.goto(address)
            with page.expect_event(event):
                page.evaluate(f"() => {{ {script}; }}")

    with pytest.raises(AssertionError, match=trouble):
        visit()


# Keys.


@pytest.mark.browser
def test_keys(browser: Browser, write: Write) -> None:
    record = random_game("manchester(3,3)")
    last = len(record.moves)
    with watched_page(browser, reduced_motion="reduce") as page:
        page.goto(write(record))
        for key, ply in [("End", last), ("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)]:
            page.keyboard.press(key)
            at_ply(page, ply)
        for modifier in ("Control", "Shift", "Meta"):
            page.keyboard.press(f"{modifier}+End")
            at_ply(page, 1)
        page.keyboard.press("Space")
        expect(page.locator("#replay.playing")).to_be_visible()
        page.keyboard.press("Space")
        expect(page.locator("#replay.playing")).to_have_count(0)


@pytest.mark.browser
def test_keys_of_inputs_stay_theirs(browser: Browser, write: Write) -> None:
    with watched_page(browser, reduced_motion="reduce") as page:
        page.goto(write(random_game("manchester(3,3)")))
        page.locator(".replay-speed").focus()
        page.keyboard.press("End")
        expect(page.locator(".replay-speed")).to_have_value("4")
        at_ply(page, 0)
        page.locator(".replay-slider").focus()
        page.keyboard.press("ArrowRight")  # once, by the slider itself
        at_ply(page, 1)
        page.locator("[data-do=next]").focus()
        page.keyboard.press("Space")  # presses the button, and does not play
        at_ply(page, 2)
        expect(page.locator("#replay.playing")).to_have_count(0)
        page.locator("summary").first.focus()
        page.keyboard.press("Space")
        expect(page.locator(".replay-conversation")).to_have_attribute("open", "")
        expect(page.locator("#replay.playing")).to_have_count(0)


# Addresses.


@pytest.mark.browser
def test_address_leads_to_a_ply_and_follows(browser: Browser, write: Write) -> None:
    record = random_game("manchester(3,3)")
    last = len(record.moves)
    with watched_page(browser, reduced_motion="reduce") as page:
        address = write(record)
        page.goto(f"{address}#ply=5")
        at_ply(page, 5)
        assert shown(page) == positions(record)[5]
        before = page.evaluate("history.length")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => location.hash === '#ply=6'")
        assert page.evaluate("history.length") == before
        page.evaluate("location.hash = '#ply=2'")
        at_ply(page, 2)
        page.evaluate("location.hash = '#ply=999999999'")
        at_ply(page, last)
        page.evaluate("location.hash = '#ply=-1'")
        page.evaluate("location.hash = '#elsewhere'")
        at_ply(page, last)
        page.reload()
        at_ply(page, 0)


@pytest.mark.browser
def test_an_address_that_is_not_the_replays_is_left_alone(browser: Browser, write: Write) -> None:
    """Also within the time for which it waits to write its own."""
    with watched_page(browser, reduced_motion="reduce") as page:
        page.clock.install()
        page.goto(write(random_game("manchester(3,3)")))
        stop_clock(page)
        page.keyboard.press("End")
        page.evaluate("location.hash = '#elsewhere'")
        page.clock.run_for(1_000)
        assert page.evaluate("location.hash") == "#elsewhere"
        page.keyboard.press("ArrowLeft")
        page.clock.run_for(1_000)
        assert page.evaluate("location.hash").startswith("#ply=")


@pytest.mark.browser
def test_link_to_the_ply_is_copied(browser: Browser, write: Write) -> None:
    with watched_page(browser, reduced_motion="reduce") as page:
        page.add_init_script(
            "Object.defineProperty(navigator, 'clipboard',"
            " {value: {writeText: async (text) => { window.copied = text; }}})"
        )
        address = write(random_game("manchester(3,3)"))
        page.goto(f"{address}#ply=3")
        link = page.locator(".replay-link")
        expect(link).to_have_attribute("href", "#ply=3")
        link.click()
        expect(link).to_have_text("Copied")
        assert page.evaluate("window.copied") == f"{address}#ply=3"
        page.keyboard.press("ArrowRight")
        expect(link).to_have_text("Copy link")
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
        link.click()
        expect(link).to_have_text("Copy it from the address bar")
        page.wait_for_function("() => location.hash === '#ply=4'")

"""The replay in a real browser for all readers: lists, small windows, print, hostile texts."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, expect

from tests.reporting.replay_pages import GAMES, WHOLE_PLY_MS, Write, at_ply, positions, shown, stop_clock
from tests.reporting.test_replay_page import hostile_record
from tests.support.browser import overflow, watched_page
from tests.support.builders import make_player
from tests.support.random_games import random_game
from tournaments.reporting.site.replay import replay_data

"""Writes the page of a record, and says where it is."""


pytestmark = pytest.mark.browser

# Beside the board.


def test_moves_lines_and_times_follow(browser: Browser, write: Write) -> None:
    record = random_game("manchester")
    data = replay_data(record)
    with watched_page(browser, reduced_motion="reduce", viewport={"width": 1100, "height": 700}) as page:
        page.goto(write(record))
        page.locator(".replay-conversation summary").click()
        page.evaluate("scrollTo(0, 0)")
        for ply in (1, 17, len(record.moves), 3):
            page.evaluate(f"location.hash = '#ply={ply}'")
            at_ply(page, ply)
            row = page.locator(".replay-moves tr[aria-current=step]")
            expect(row.locator("td").first).to_have_text(str(ply))
            within = (
                "(row) => { const a = row.getBoundingClientRect();"
                " const b = row.closest('.replay-moves').getBoundingClientRect();"
                " return a.top >= b.top && a.bottom <= b.bottom + 1; }"
            )
            assert row.evaluate(within)
            assert page.evaluate("scrollY") == 0
            lines = data["plies"][ply - 1]["wire"]
            expect(page.locator(".replay-wire li.past")).to_have_count(lines)
            within_log = within.replace(".replay-moves", ".replay-wire")
            assert page.locator(".replay-conversation li").nth(lines - 1).evaluate(within_log)
            expect(page.locator(".replay-times rect.now")).to_have_count(1)
            move = record.moves[ply - 1]
            said = page.locator(".replay-said").inner_text()
            assert said.startswith(f"Move {ply} of {len(record.moves)}: {record.players[move.player].name} (")
            assert said.endswith(f"plays {move.move}")
            expect(page.locator(".replay-slider")).to_have_attribute("aria-valuetext", said)
            position = re.compile(rf"^Position after move {ply}\. .*: [0-9]+; ")
            expect(page.locator(".replay-scene svg")).to_have_attribute("aria-label", position)


def test_clicks_lead_to_plies_and_captions_follow(browser: Browser, write: Write) -> None:
    record = random_game("manchester(3,3)")
    with watched_page(browser) as page:
        page.goto(write(record))
        page.locator(".replay-moves tbody tr").nth(3).click()
        at_ply(page, 4)
        assert shown(page) == positions(record)[4]
        page.locator(".replay-moves a").nth(1).click()
        at_ply(page, 2)
        chart = page.locator(".replay-times svg")
        box = chart.bounding_box()
        assert box is not None
        chart.click(position={"x": box["width"] - 2, "y": box["height"] - 2})
        at_ply(page, len(record.moves))
        page.locator("[data-do=first]").click()
        at_ply(page, 0)
        assert record.moves[1].move == "SWAP"
        page.evaluate("location.hash = '#ply=1'")
        above, below = page.locator(".replay-seat").nth(0), page.locator(".replay-seat").nth(1)
        expect(above).to_contain_text("BobNorthto move, or swap")
        expect(below).to_contain_text("AdaSouth")
        page.keyboard.press("ArrowRight")
        expect(above).to_contain_text("AdaNorthto move")
        expect(below).to_contain_text("BobSouth")


def test_fault_is_the_last_ply(browser: Browser, write: Write) -> None:
    record = random_game("manchester(3,3)", illegal_after=3)
    with watched_page(browser) as page:
        page.goto(write(record))
        page.keyboard.press("End")
        at_ply(page, 4)
        assert shown(page) == positions(record)[3]
        expect(page.locator(".replay-said")).to_have_text(record.result.detail)
        expect(page.locator("tr.now")).to_contain_text("MOVE;99")
        assert sorted(page.locator(".replay-seat-note").all_inner_texts()) == ["lost", "won"]
    record = random_game("manchester(3,3)")
    moves = [*record.moves[:4], record.moves[4]._replace(move="99"), *record.moves[5:]]
    with watched_page(browser) as page:  # a record that cannot be replayed as a whole
        page.goto(write(replace(record, moves=moves)))
        page.keyboard.press("End")
        at_ply(page, len(moves))
        assert shown(page) == positions(record)[4]
        expect(page.locator(".replay-remark")).to_be_visible()


# All kinds of readers.


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("game", ["manchester", "kalamala", "kalah(30,4)", "kalah(1,1)"])
def test_narrow_window_needs_no_scrolling_sideways(
    browser: Browser, write: Write, game: str, scheme: str
) -> None:
    record = random_game(game)
    names = [make_player("N" * 200), make_player("a name of many words " * 9)]
    record = replace(record, players=(names[0], names[1]))
    with watched_page(browser, viewport={"width": 360, "height": 700}, color_scheme=scheme) as page:
        page.goto(f"{write(record)}#ply=1")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert overflow(page) == 0
        for name in ("first", "play", "last"):
            box = page.locator(f"[data-do={name}]").bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 360


def test_texts_of_others_do_nothing(browser: Browser, write: Write) -> None:
    """A dialog, an error or a request would fail it, too."""
    record = hostile_record()
    with watched_page(browser) as page:
        page.goto(f"{write(record)}#ply=6")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        at_ply(page, 6)
        for key in ("Home", "ArrowRight", "End"):
            page.keyboard.press(key)
        expect(page.locator("img")).to_have_count(0)
        expect(page.locator("script")).to_have_count(3)
        expect(page.locator("h1")).to_contain_text("</script><img src=x onerror=alert(1)>\\u202e&\"'1")
        expect(page.locator(".replay-seat").first).to_contain_text("<img src=x onerror=alert(1)>")
        expect(page.locator("pre").first).to_contain_text("</pre>")
        assert "\u202e" not in page.content()


@pytest.mark.parametrize("game", GAMES)
def test_a_page_without_scripts_in_print_and_with_reduced_motion(
    browser: Browser, write: Write, game: str
) -> None:
    record = random_game(game)
    address = write(record)
    with watched_page(browser, java_script_enabled=False) as page:
        page.goto(address)
        expect(page.locator("#replay-still svg")).to_be_visible()
        expect(page.locator("#replay")).to_be_hidden()
        expect(page.locator(".replay-moves tbody tr")).to_have_count(len(record.moves))
        expect(page.locator(".replay-wire").first.locator("li")).to_have_count(len(record.wire))
    with watched_page(browser, reduced_motion="reduce") as page:
        page.clock.install()
        page.goto(address)
        stop_clock(page)
        page.evaluate(
            "window.moved = 0; new MutationObserver(() => { window.moved += 1; })"
            ".observe(document.getElementById('replay'), {attributeFilter: ['data-moving']})"
        )
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Space")
        page.clock.run_for(WHOLE_PLY_MS)
        assert page.locator("#replay").get_attribute("data-ply") not in ("0", "1", "2")  # it does play
        assert page.evaluate("window.moved") == 0
        page.emulate_media(media="print")
        expect(page.locator(".replay-scene svg")).to_be_visible()
        expect(page.locator(".replay-controls")).to_be_hidden()
        cut = "(box) => box.scrollHeight - box.clientHeight"
        assert page.locator(".replay-moves").evaluate(cut) == 0
        expect(page.locator(".replay-moves tbody tr").last).to_be_visible()


def test_every_control_has_a_name_and_shows_its_focus(browser: Browser, write: Write) -> None:
    with watched_page(browser) as page:
        page.goto(write(random_game("manchester(3,3)")))
        for control in page.locator("#replay button").all():
            name = control.get_attribute("aria-label")
            assert name
            expect(control).to_have_accessible_name(name)
        expect(page.locator(".replay-slider")).to_have_accessible_name("Move")
        expect(page.locator(".replay-speed")).to_have_accessible_name("Speed")
        expect(page.locator(".replay-said")).to_have_attribute("aria-live", "polite")
        page.keyboard.press("Tab")
        focused = page.locator(":focus-visible")
        expect(focused).to_have_count(1)
        assert focused.evaluate("(one) => getComputedStyle(one).outlineStyle") == "solid"

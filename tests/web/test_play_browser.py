"""Casual games in a real browser, on a real server with confined bots."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect

from tests.server.server_process import Served, served
from tests.support.accessibility import page_findings
from tests.support.browser import audit, chromium, focus_outline, overflow, watched_page
from tests.support.courses import FAST_PASSWORDS
from tests.support.databases import database_of
from tests.web.test_live_browser import HIDE
from tournaments.course.course import Course

pytestmark = [pytest.mark.browser, pytest.mark.any_database]

SMALL, KALAMALA = "manchester(4,3)", "kalamala+cap=20"
ANIMATED_MOVES = 3
"""Moves of a person that are shown with animations, with the replies of the bot."""
MOST_MOVES = 300
"""Moves of a person after which a game of a test has certainly gone wrong."""
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
QUICK: dict[str, Any] = {"reduced_motion": "reduce"}
"""Options of a browser that shows moves without animation."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def prepare(data: Path, **settings: Any) -> None:
    """Prepare a course whose visitors may play."""
    data.mkdir(parents=True, exist_ok=True)
    defaults = {"game": SMALL, "practice_on": False, "references": [], "play_for": "everybody"}
    with Course(database_of(data).course(), FAST_PASSWORDS) as course:
        course.settings.change(**defaults | settings)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("play") / "data"
    prepare(data, play_games=["manchester", "kalah(4,3)", KALAMALA])
    with served(data) as running:
        yield running


def begin(page: Page, site: str, **choices: str) -> str:
    """Begin a game by the form, and return its address."""
    page.goto(f"{site}/play")
    for name, value in choices.items():
        page.locator(f"[name={name}]").select_option(value)
    page.get_by_role("button", name="Start the game").click()
    page.wait_for_url(re.compile(r"/play/[\w-]{20,}"))
    return page.url


def cells(page: Page) -> Locator:
    """Return the cells that can be chosen now."""
    return page.locator("#play-cells button")


def number_of_moves(page: Page) -> int:
    return page.locator("#play-moves tr").count()


def is_over(page: Page) -> bool:
    return page.get_by_role("button", name="Play again").is_visible()


def own_turn(page: Page) -> bool:
    """Wait until the person may move; return False if the game is over."""
    page.wait_for_function(
        "() => document.querySelector('#play-cells button') || !document.getElementById('play-again').hidden"
    )
    return not is_over(page)


def moves_are(page: Page, number: int) -> None:
    """Wait until there are at least so many moves."""
    page.wait_for_function(
        "(number) => document.querySelectorAll('#play-moves tr').length >= number", arg=number
    )


COUNT_ANIMATIONS = """() => {
    window.animations = 0;
    new MutationObserver(() => { window.animations += 1; })
        .observe(document.getElementById("replay"), { attributeFilter: ["data-moving"] });
}"""
Act = Callable[[Locator], None]


def play_one(page: Page, act: Act) -> None:
    """Play a move: the first cell, and another one if the move needs two."""
    before = number_of_moves(page)
    stones = page.locator("#play-cells button:not(.quiet)")  # in Kalamala, movements rather than placements
    act(stones.first if before % 4 == 0 and stones.count() else cells(page).first)
    if page.locator("#play-cells button.chosen").count():
        act(page.locator("#play-cells button:not(.chosen)").first)
        choices = page.locator("#play-choices button")
        if choices.count() and number_of_moves(page) == before:
            act(choices.first)
    moves_are(page, before + 1)


def play_on(page: Page, act: Act) -> None:
    """Play moves until the game is over."""
    for _ in range(MOST_MOVES):
        if not own_turn(page):
            return
        play_one(page, act)
    raise AssertionError("the game does not end")


def by_mouse(cell: Locator) -> None:
    cell.click()


def by_touch(cell: Locator) -> None:
    cell.tap()


GAMES = pytest.mark.parametrize("game", [SMALL, KALAMALA])


def assert_over(page: Page) -> None:
    expect(page.locator("#play-words")).to_contain_text(re.compile("won|draw"))
    assert not page.get_by_text("By keyboard: Tab to the board").is_visible()
    assert (audit(page), overflow(page)) == ([], 0)


@GAMES
def test_a_game_by_mouse(server: Served, browser: Browser, game: str) -> None:
    with watched_page(browser, site=server.url) as page:
        begin(page, server.url, game=game, opponent="ladder:2")
        for _ in range(ANIMATED_MOVES):
            assert own_turn(page)
            play_one(page, by_mouse)
        page.emulate_media(**QUICK)  # from now on without animations, of which a whole game has 20 s
        play_on(page, by_mouse)
        assert_over(page)


@GAMES
def test_a_game_by_touch_on_a_phone(server: Served, browser: Browser, game: str) -> None:
    with watched_page(browser, site=server.url, **PHONE, **QUICK) as page:
        begin(page, server.url, game=game, opponent="ladder:1")
        assert own_turn(page)
        # In one script, as the page replaces the cells when the state of the game comes: a locator first
        # finds the cells and then measures them, in two calls.
        sizes = page.evaluate(
            "() => [...document.querySelectorAll('#play-cells button')]"
            ".map((cell) => Math.min(cell.offsetWidth, cell.offsetHeight))"
        )
        assert sizes
        assert min(sizes) >= 44
        play_on(page, by_touch)
        assert_over(page)


def test_a_visitor_plays_a_game_from_the_first_page_on(server: Served, browser: Browser) -> None:
    """With the choices that the form suggests."""
    with watched_page(browser, site=server.url, **QUICK) as page:
        page.goto(server.url)
        page.locator("main").get_by_role("link", name="Play against a bot").click()
        page.get_by_role("button", name="Start the game").click()
        page.wait_for_url(re.compile(r"/play/[\w-]{20,}"))
        play_on(page, by_mouse)
        assert_over(page)


@GAMES
def test_a_game_by_keyboard_alone(server: Served, browser: Browser, game: str) -> None:
    with watched_page(browser, site=server.url, **QUICK) as page:
        begin(page, server.url, game=game, opponent="ladder:1")
        own_turn(page)
        # A function, as Playwright cannot repeat another text on a page that forbids eval.
        focused = "() => document.activeElement.closest('#play-cells') !== null"
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate(focused):
                break
        assert focus_outline(page) >= 2
        first = page.evaluate("document.activeElement.dataset.cell")
        page.keyboard.press("ArrowRight")
        assert page.evaluate(focused)
        assert page.evaluate("document.activeElement.dataset.cell") != first
        for _ in range(MOST_MOVES):
            if not own_turn(page):
                break
            page.wait_for_function(focused)  # it came back to the board by itself
            before = number_of_moves(page)
            page.keyboard.press("Enter")
            if page.locator("#play-cells button.chosen").count():
                page.keyboard.press("Escape")
                assert not page.locator("#play-cells button.chosen").count()
                page.keyboard.press("Enter")
                own = page.evaluate("document.activeElement.dataset.cell")
                for key in ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"):
                    page.keyboard.press(key)
                    if page.evaluate("document.activeElement.dataset.cell") != own:
                        break
                page.keyboard.press("Enter")
                if page.locator("#play-choices button").count() and number_of_moves(page) == before:
                    page.keyboard.press("Enter")  # the first of several moves has the focus
            moves_are(page, before + 1)
        assert_over(page)


def test_the_big_board_with_the_swap_and_what_is_announced(server: Served, browser: Browser) -> None:
    with watched_page(browser, site=server.url, **QUICK) as page:
        begin(page, server.url, game="manchester", opponent="ladder:1", side="second")
        assert own_turn(page)
        words, announced = page.locator("#play-words"), page.locator("#play-status")
        expect(announced).to_have_attribute("aria-live", "polite")
        for each in (words, announced):
            expect(each).to_have_text(re.compile(r"ladder:1 plays \d.* Your turn. You may swap sides."))
        page.get_by_role("button", name="Swap sides (pie rule)").click()
        expect(words).to_have_text(re.compile("^You swap sides. ladder:1 plays .* Your turn.$"))
        expect(announced).to_have_text(re.compile("^(You swap sides. )?ladder:1 plays .* Your turn.$"))
        assert own_turn(page)
        expect(page.locator(".replay-seat[data-place='1']")).to_contain_text("Player (you)South")
        expect(cells(page).first).to_have_attribute("aria-label", re.compile(r"^South \d, \d+$"))
        play_on(page, by_mouse)
        assert_over(page)


def test_an_extra_turn_is_animated_and_announced(server: Served, browser: Browser) -> None:
    with watched_page(browser, site=server.url) as page:
        begin(page, server.url, game="kalah(4,3)", opponent="ladder:1")
        own_turn(page)
        page.evaluate(COUNT_ANIMATIONS)  # of less than a second, which a locator may miss
        page.get_by_role("button", name="South 2, 3").click()
        page.wait_for_function("() => window.animations > 0")
        expect(page.locator("#play-words")).to_have_text("You play 2. You have another turn. Your turn.")
        expect(page.get_by_role("button", name="South 3, 4")).to_be_visible()
        expect(page.get_by_role("button", name="South 2")).to_have_count(0)


def test_a_move_is_taken_back(server: Served, browser: Browser) -> None:
    with watched_page(browser, site=server.url) as page:
        begin(page, server.url, game=SMALL, opponent="ladder:2")
        own_turn(page)
        expect(page.get_by_role("button", name="Take back")).to_be_hidden()
        play_one(page, by_mouse)
        assert own_turn(page)
        page.get_by_role("button", name="Take back").click()
        expect(page.locator("#play-words")).to_have_text("Taken back. Your turn.")
        assert number_of_moves(page) == 0
        play_one(page, by_mouse)
        assert own_turn(page)
        assert number_of_moves(page) > 1
        page.get_by_role("button", name="Resign").click()
        expect(page.locator("#play-words")).to_contain_text("Player resigned.")
        page.get_by_role("button", name="Play again").click()
        page.wait_for_url(re.compile(r"/play/[\w-]{20,}"))
        expect(page.locator("h1")).to_have_text("Player vs ladder:2")


STREAM_OF_THE_TEST = """
    window.EventSource = class extends EventTarget {
        constructor() { super(); window.stream = this; }
        close() {}
    };
"""
STATE_WITH_A_CHOICE = """() => {
    const { state } = JSON.parse(document.getElementById("play-data").textContent);
    const { from, to } = state.legal[0];
    state.legal = ["one", "two"].map((move) => ({ move, from, to }));
    window.stream.dispatchEvent(new MessageEvent("state", { data: JSON.stringify(state) }));
    return from[0];
}"""
"""Sends a state with two moves that are chosen by the same cell, and returns the cell."""


def test_the_choice_of_a_move_stays_when_the_state_comes_again(server: Served, browser: Browser) -> None:
    """As it does when a bot begins to wait for a slot, for example."""
    with watched_page(browser, site=server.url, **QUICK) as page:
        page.add_init_script(STREAM_OF_THE_TEST)
        begin(page, server.url, game="kalah(4,3)", opponent="ladder:1", side="first")
        cell = page.evaluate(STATE_WITH_A_CHOICE)
        page.locator(f"#play-cells [data-cell='{cell}']").click()
        choices = page.locator("#play-choices button")
        expect(choices).to_have_text(["one", "two"])
        page.keyboard.press("Tab")
        expect(choices.last).to_be_focused()
        page.evaluate(STATE_WITH_A_CHOICE)
        expect(choices).to_have_text(["one", "two"])
        expect(choices.last).to_be_focused()


def test_a_refusal_stays_on_the_page_when_the_state_comes_again(server: Served, browser: Browser) -> None:
    with browser.new_context(**QUICK) as context:  # a refused request is an error of the console
        page = context.new_page()
        page.add_init_script(STREAM_OF_THE_TEST)
        begin(page, server.url, game="kalah(4,3)", opponent="ladder:1", side="first")
        page.evaluate("document.getElementById('play').dataset.csrf = 'of another day'")
        cells(page).first.click()
        problem = page.locator("#play-problem")
        expect(problem).to_contain_text("open for too long")
        page.evaluate(STATE_WITH_A_CHOICE)
        expect(page.locator("#play-cells button")).to_have_count(1)
        expect(problem).to_contain_text("open for too long")


def is_stream(request: Request) -> bool:
    return "/events?" in request.url


def test_a_hidden_page_has_no_stream(server: Served, browser: Browser) -> None:
    with (
        watched_page(browser, site=server.url, **QUICK) as one,
        watched_page(browser, site=server.url, **QUICK) as other,
    ):
        begin(one, server.url, game="kalah(4,3)", opponent="person", side="first")
        other.goto(one.url)
        other.get_by_label("Your name in this game").fill("Bob")
        other.get_by_role("button", name="Play", exact=True).click()
        expect(one.locator("h1")).to_have_text("Player vs Bob")
        expect(other.locator("h1")).to_have_text("Player vs Bob")
        with other.expect_request(is_stream) as stream:
            other.reload()
        with other.expect_event("requestfailed", lambda request: request == stream.value):  # it is closed
            other.evaluate(HIDE, True)
        assert own_turn(one)
        play_one(one, by_mouse)
        assert number_of_moves(other) == 0
        with other.expect_request(is_stream):
            other.evaluate(HIDE, False)
        moves_are(other, 1)


def test_a_stream_that_was_refused_is_opened_again(server: Served, browser: Browser) -> None:
    with browser.new_context(**QUICK) as context:  # a refused request is an error of the console
        page = context.new_page()
        page.add_init_script("Math.random = () => 0")  # the least delay, 3 s
        page.route(re.compile("/events[?]"), lambda route: route.fulfill(status=503))
        with page.expect_response(re.compile("/events[?]")):
            begin(page, server.url, game="kalah(4,3)", opponent="ladder:1", side="second")
        # Expected before it is let through: a try between these two would be the last one, and not be seen.
        with page.expect_response(lambda response: is_stream(response.request) and response.ok):
            page.unroute_all()
        assert own_turn(page)


def test_two_people_play_each_other_by_a_link(server: Served, browser: Browser) -> None:
    with (
        watched_page(browser, site=server.url, **QUICK) as one,
        watched_page(browser, site=server.url, **QUICK, **PHONE) as other,
        watched_page(browser, site=server.url, **QUICK) as third,
    ):
        begin(one, server.url, game="kalah(4,3)", opponent="person")
        assert cells(one).count() == 0
        other.goto(one.get_by_label("Link of this game").input_value())
        other.get_by_label("Your name in this game").fill("Bob")
        other.get_by_role("button", name="Play", exact=True).click()
        third.goto(one.url)
        expect(third.get_by_text("you are watching")).to_be_visible()
        expect(one.locator("h1")).to_have_text("Player vs Bob")
        for _ in range(MOST_MOVES):
            for page in (one, other):
                page.wait_for_function("() => !document.querySelector('[aria-busy]')")
            if is_over(one) or is_over(other):
                break
            for page, act in ((one, by_mouse), (other, by_touch)):
                if cells(page).count():
                    before = number_of_moves(page)
                    act(cells(page).first)
                    for each in (one, other):
                        moves_are(each, before + 1)
                    break
        for page in (one, other, third):
            expect(page.locator("#play-words")).to_contain_text(re.compile("won|draw"))
        assert number_of_moves(third) == number_of_moves(one)


def test_a_game_goes_on_after_the_server_was_killed(tmp_path: Path, browser: Browser) -> None:
    data = tmp_path / "data"
    prepare(data)
    with browser.new_context(**QUICK) as context:
        page = context.new_page()
        with served(data) as running:
            address = begin(page, running.url, opponent="ladder:2").removeprefix(running.url)
            for _ in range(3):
                assert own_turn(page)
                play_one(page, by_mouse)
            acknowledged = number_of_moves(page)
            running.kill()
        with served(data) as running:
            # Another port is another address, with the same cookies, as a browser sees it.
            page.goto(f"{running.url}{address}")
            moves_are(page, acknowledged)
            play_on(page, by_mouse)
            expect(page.locator("#play-words")).to_contain_text(re.compile("won|draw"))


def test_a_position_is_played_on_from_a_link(server: Served, browser: Browser) -> None:
    with watched_page(browser, site=server.url, **QUICK) as page:
        page.goto(f"{server.url}/play?game=manchester&from=3+SWAP+2")
        expect(page.locator(".play-picture svg")).to_be_visible()
        page.locator("[name=side]").select_option("first")
        page.get_by_role("button", name="Start the game").click()
        assert own_turn(page)
        expect(cells(page).first).to_have_attribute("aria-label", re.compile("^South 1"))
        assert number_of_moves(page) == 0
        play_one(page, by_mouse)
        assert own_turn(page)
        assert number_of_moves(page) > 1


def test_axe_finds_nothing(server: Served, browser: Browser) -> None:
    """On the form, during a game, between the choices of a turn, at its end, and for the guests of a link."""
    troubles: list[str] = []
    with (
        watched_page(browser, site=server.url, **QUICK) as page,
        watched_page(browser, site=server.url, **QUICK) as guest,
        watched_page(browser, site=server.url, **QUICK) as third,
    ):
        page.goto(f"{server.url}/play")
        troubles += page_findings(page, "the form")
        page.goto(f"{server.url}/play?game=manchester&from=3+SWAP+2")
        troubles += page_findings(page, "the form with a position")
        for game in ("manchester", KALAMALA):
            begin(page, server.url, game=game, opponent="ladder:1", side="first")
            own_turn(page)
            troubles += page_findings(page, f"a turn in {game}")
            if game == KALAMALA:
                page.locator("#play-cells button:not(.quiet)").first.click()
                expect(page.locator("#play-cells button.chosen")).to_be_visible()
                troubles += page_findings(page, f"a half turn in {game}")
            page.get_by_role("button", name="Resign").click()
            expect(page.get_by_role("button", name="Play again")).to_be_visible()
            troubles += page_findings(page, f"the end of {game}")
        begin(page, server.url, opponent="person")
        troubles += page_findings(page, "an invitation")
        guest.goto(page.url)
        troubles += page_findings(guest, "the guest's page")
        guest.get_by_role("button", name="Play", exact=True).click()
        expect(page.locator("h1")).to_contain_text("Player")
        third.goto(page.url)
        expect(third.get_by_text("you are watching")).to_be_visible()
        troubles += page_findings(third, "a spectator's page")
    assert troubles == []

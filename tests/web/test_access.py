"""Access to every route in every role.

A row has the result of a request for each of these: a visitor while the standings are not public, a visitor
while they are public, a student of Team 1, a student of Team 2, a lecturer, an admin.

    in     is led to signing in (the API: 401)
    no     has not the permission (403)
    none   finds nothing there (404)
    ok     is admitted; a form without its fields may then be refused (400, 409, 413, 415, 422)

A route without a row fails, and so does a row without a route.  Routes with an object in them have a row for
each kind of object: `make` brings the address's parameters, from the scene that `make_scene` sets up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.support.tiers import slow_but
from tests.web.played_course import Played
from tests.web.site import ORIGIN, World
from tournaments.course.challenges import Side
from tournaments.course.model import BotChoice, LinkPurpose
from tournaments.course.people.credentials import FEED_PREFIX
from tournaments.web.http.rate_limits import Limits
from tournaments.web.http.rendering import path_for
from tournaments.web.http.routing import Access, Route
from tournaments.web.routes import ROUTES

WHO = ("visitor", "public", "student", "other", "lecturer", "admin")

EVERYBODY = "ok ok ok ok ok ok"
PUBLIC = "in ok ok ok ok ok"
EMBEDDED = "no ok no no no no"  # everybody gets the response for visitors
SIGNED_IN = "in in ok ok ok ok"
PLAY = SIGNED_IN  # by the default of the setting; visitors are in test_play.py
STUDENT = "in in ok ok no no"
LECTURER = "in in no no ok ok"
ADMIN = "in in no no no ok"

WORDS = {401: "in", 403: "no", 404: "none"} | dict.fromkeys(
    (200, 201, 202, 303, 400, 409, 413, 415, 422), "ok"
)
Scene = dict[str, Any]
"""Objects of the table's rows, by name."""


@dataclass(frozen=True)
class Row:
    """The results of requests for one route."""

    name: str
    found: str
    make: Callable[[Scene], dict[str, Any]] = lambda _scene: {}
    """The address's parameters."""


GAME = {"slug": "practice", "key": "p0000003-1"}
"""Team 1 moves first, Team 2 second."""

# fmt: off
TABLE = (
    Row("asset", EVERYBODY, lambda _: {"file": "site.css"}),
    Row("asset", "none none none none none none", lambda _: {"file": "app.py"}),
    Row("health", EVERYBODY),

    Row("sign-in", EVERYBODY),
    Row("sign-in.try", "no no no no no no"),  # a wrong password
    Row("sign-out", SIGNED_IN),
    Row("link", EVERYBODY, lambda scene: {"secret": scene["link"]}),
    Row("link", "none none none none none none", lambda _: {"secret": "made-up"}),
    Row("link.use", EVERYBODY, lambda scene: {"secret": scene["link"]}),

    Row("account", SIGNED_IN),
    Row("account.password", SIGNED_IN),
    Row("account.token", SIGNED_IN),
    Row("account.feed", SIGNED_IN),
    Row("account.mail.link", "in in ok none none none", lambda scene: {"secret": scene["confirmation"]}),
    Row("account.mail.confirm", "in in ok none none none", lambda scene: {"secret": scene["confirmation"]}),
    Row("account.mail", SIGNED_IN),  # without an address, which removes the one that waits
    Row("feed", PUBLIC),
    Row("feed.team", EVERYBODY, lambda scene: {"secret": scene["feed"]}),
    Row("feed.team", "none none none none none none", lambda _: {"secret": "feed_made-up"}),
    Row("account.revoke", "in in ok none none none", lambda scene: {"token": scene["token"]}),

    # Pages of visitors and students.
    Row("home", PUBLIC),
    Row("standings", PUBLIC),
    Row("faults", EVERYBODY),
    Row("help", EVERYBODY),
    Row("help.page", EVERYBODY, lambda _: {"page": "rules"}),
    Row("help.page", "none none none none none none", lambda _: {"page": "made-up"}),
    Row("starter", EVERYBODY, lambda _: {"language": "python"}),
    Row("competitions", PUBLIC),
    Row("competition", PUBLIC, lambda _: {"slug": "cup"}),
    Row("competition", "in none none none none none", lambda _: {"slug": "made-up"}),
    Row("games", PUBLIC, lambda _: {"slug": "cup"}),
    Row("game", PUBLIC, lambda _: GAME),
    Row("game", "in none none none none none", lambda _: GAME | {"key": "made-up"}),
    Row("wire", PUBLIC, lambda _: GAME),
    Row("game_json", PUBLIC, lambda _: GAME),
    Row("stderr", "in in ok no ok ok", lambda _: GAME | {"player": 1}),
    Row("stderr", "in in no ok ok ok", lambda _: GAME | {"player": 2}),
    Row("team", PUBLIC, lambda scene: {"team": scene["team"]}),
    Row("bot", PUBLIC, lambda _: {"slug": "cup", "bot": "Team_1_v1"}),
    Row("reference", PUBLIC, lambda _: {"name": "ladder:1"}),
    Row("reference", "in none none none none none", lambda _: {"name": "ladder:made up"}),
    Row("live", PUBLIC, lambda _: GAME),  # which is over, and leads to its page
    Row("live", "in none none none none none", lambda _: GAME | {"slug": "made-up"}),
    Row("live_events", PUBLIC, lambda _: GAME),
    Row("events", PUBLIC),
    *(Row(name, EMBEDDED, lambda _: GAME) for name in ("embed", "embed_game", "embed_events")),
    Row("embed", "no none no no no no", lambda _: {"slug": "made-up"}),
    Row("embed_game", "no none no no no no", lambda _: GAME | {"key": "made-up"}),
    Row("play", PLAY),
    Row("play.start", PLAY),
    *(Row(f"play.{name}", "in in none none none none", lambda _: {"address": "made-up"})
      for name in ("game", "events", "move", "take_back", "resign", "retry", "join")),
    Row("my", STUDENT),
    Row("upload", STUDENT),
    Row("version", "in in ok none ok ok", lambda scene: {"id": scene["version"]}),
    Row("version_events", "in in ok none ok ok", lambda scene: {"id": scene["version"]}),
    Row("source", "in in ok none ok ok", lambda scene: {"id": scene["version"]}),
    *(Row(name, "in in ok none ok ok", lambda scene: {"id": scene["version"], "key": "swapped-south"})
      for name in ("check_game", "check_game_wire", "check_game_json")),
    Row("check_game", "in in none none none none", lambda scene: {"id": scene["version"], "key": "made-up"}),
    Row("check_game_stderr", "in in ok none ok ok",
        lambda scene: {"id": scene["version"], "key": "swapped-south", "player": 1}),
    Row("check_game_stderr", "in in no none ok ok",
        lambda scene: {"id": scene["version"], "key": "swapped-south", "player": 2}),
    Row("withdraw", "in in ok none ok ok", lambda scene: {"id": scene["version"]}),
    Row("challenges", STUDENT),
    Row("challenges.ask", STUDENT),
    Row("challenges.consent", STUDENT),
    Row("challenges.cancel", "in in ok none no no", lambda scene: {"id": scene["challenge"]}),
    Row("recheck", LECTURER, lambda scene: {"id": scene["version"]}),

    # The API.
    Row("api_openapi", EVERYBODY),
    Row("api_me", SIGNED_IN),
    Row("api_submit", STUDENT),
    Row("api_versions", STUDENT),
    Row("api_version", "in in ok none no no", lambda scene: {"id": scene["version"]}),
    Row("api_log", "in in ok none no no", lambda scene: {"id": scene["version"]}),
    Row("api_opponents", STUDENT),
    Row("api_challenge_ask", STUDENT),
    Row("api_challenges", STUDENT),
    Row("api_challenge", "in in ok none no no", lambda scene: {"id": scene["challenge"]}),
    Row("api_challenge_cancel", "in in ok none no no", lambda scene: {"id": scene["challenge"]}),
    Row("api_competitions", PUBLIC),
    Row("api_table", PUBLIC, lambda _: {"slug": "cup"}),
    Row("api_table", "in none none none none none", lambda _: {"slug": "made-up"}),
    Row("api_games", PUBLIC, lambda _: {"slug": "cup"}),
    Row("api_game", PUBLIC, lambda _: GAME),
    Row("api_pairings", LECTURER, lambda _: {"slug": "cup"}),
    Row("api_game", "in none none none none none", lambda _: GAME | {"key": "made-up"}),

    # Pages of lecturers.
    Row("teach", LECTURER),
    Row("teach.mail", LECTURER),
    Row("teach.roster", LECTURER),
    Row("teach.roster.add", LECTURER),
    Row("teach.roster.import", LECTURER),
    Row("teach.roster.import.send", LECTURER),
    Row("teach.student", LECTURER, lambda scene: {"account": scene["student"]}),
    Row("teach.student", "in in no no none none", lambda scene: {"account": scene["admin"]}),
    Row("teach.student.link", LECTURER, lambda scene: {"account": scene["newcomer"]}),
    Row("teach.student.link", "in in no no none none", lambda scene: {"account": scene["admin"]}),
    Row("teach.student.disable", LECTURER, lambda scene: {"account": scene["newcomer"]}),
    Row("teach.student.disable", "in in no no none none", lambda scene: {"account": scene["admin"]}),
    Row("teach.student.change", LECTURER, lambda scene: {"account": scene["newcomer"]}),
    Row("teach.student.change", "in in no no none none", lambda scene: {"account": scene["admin"]}),
    Row("teach.team.rename", LECTURER, lambda scene: {"team": scene["team"]}),
    Row("teach.submissions", LECTURER),
    Row("teach.journal", LECTURER),
    Row("teach.settings", LECTURER),
    Row("teach.settings.save", LECTURER),
    Row("teach.settings.freeze", LECTURER),
    Row("teach.tournaments", LECTURER),
    Row("teach.tournament.new", LECTURER),
    Row("teach.tournament.create", LECTURER),
    Row("teach.tournament", LECTURER, lambda _: {"slug": "cup"}),
    Row("teach.tournament", "in in no no none none", lambda _: {"slug": "practice"}),
    *(Row(f"teach.tournament.{name}", LECTURER, lambda _: {"slug": "cup"})
      for name in ("start", "pause", "resume", "rejudge", "rule", "add")),
    *(Row(f"teach.tournament.{name}", LECTURER, lambda _: {"slug": "cup"})
      for name in ("publish", "cancel", "hide", "show", "delete")),
    Row("teach.marks", LECTURER, lambda _: {"slug": "cup"}),
    Row("teach.marks.make", LECTURER, lambda _: {"slug": "cup"}),
    Row("teach.marks.withdraw", LECTURER, lambda _: {"slug": "cup"}),
    Row("teach.export", LECTURER, lambda _: {"slug": "cup", "file": "games.csv"}),
    Row("teach.report", LECTURER, lambda _: {"slug": "cup"}),
    Row("teach.report.anonymous", LECTURER, lambda _: {"slug": "cup"}),
    Row("teach.accounts", ADMIN),
    Row("teach.accounts.add", ADMIN),
    Row("teach.accounts.link", ADMIN, lambda scene: {"account": scene["lecturer"]}),
    Row("teach.accounts.link", "in in no no no none", lambda scene: {"account": scene["student"]}),
    Row("teach.accounts.role", ADMIN, lambda scene: {"account": scene["lecturer"]}),
    Row("teach.accounts.disable", ADMIN, lambda scene: {"account": scene["lecturer"]}),
)
# fmt: on


def make_scene(world: World) -> Scene:
    """Return the objects of the table's rows."""
    course, now = world.course, world.clock()
    student = world.accounts["student"]
    newcomer = course.accounts.add("newcomer", "Newcomer", student.role, None, now)
    team = world.teams[0]
    own = Side(BotChoice(version_id=course.versions.of_team(team.id)[0].id), "Team 1 v1", team.id)
    other = Side(BotChoice(reference="ladder:1"), "ladder:1", None)
    competition = course.competitions.all()[0]
    challenge = course.challenges.add(
        competition.id, team.id, student.id, own, other, 1, "page", now, course.settings.load()
    )
    course.addresses.begin(student.id, "ada@example.org", "confirm", now)
    return {
        "challenge": challenge.id,
        "confirmation": "confirm",
        **{role: world.accounts[role].id for role in ("student", "lecturer", "admin")},
        "newcomer": newcomer.id,
        "team": team.id,
        "version": course.versions.of_team(team.id)[0].id,
        "link": course.links.make(newcomer.id, LinkPurpose.INVITATION, now),
        "feed": course.tokens.make(student.id, "news feed", now, None, FEED_PREFIX)[0],
        "token": course.tokens.make(student.id, "laptop", now, None)[1].id,
    }


async def found_by(world: World, who: str, route: Route, path: str) -> str:
    """Return a word of the table, or a status that has no word."""
    role = "visitor" if who == "public" else who
    async with world.browser(role) as browser:
        headers = {"origin": ORIGIN} | (world.bearer(role) if route.api else {})
        if route.method == "GET":
            # HEAD takes the same way, and does not wait for the end of a stream.
            return word_of(await browser.head(path, headers=headers))
        csrf = await browser.csrf("/sign-in" if role == "visitor" else "/account")
        return word_of(await browser.post(path, data={"csrf": csrf}, headers=headers))


def word_of(answer: httpx2.Response) -> str:
    if answer.headers.get("location", "").startswith("/sign-in") and "set-cookie" not in answer.headers:
        return "in"  # signing out leads there, too, and sets cookies
    return WORDS.get(answer.status_code, str(answer.status_code))


@pytest.mark.parametrize("who", slow_but(("visitor", "student"), WHO))
async def test_every_route_as_everybody(played: Played, who: str) -> None:
    world = played.world
    if who == "public":
        world.course.settings.change(standings_for="named")
    routes = {route.name: route for route in ROUTES}
    scene, wrong = make_scene(world), []
    for row in TABLE:
        world.site.limits = Limits()  # the test is a busy visitor
        path = path_for(ROUTES, row.name, row.make(scene))
        expected = row.found.split()[WHO.index(who)]
        found = await found_by(world, who, routes[row.name], path)
        if found != expected:
            wrong.append(f"{row.name} {path}: {who} finds {found}, not {expected}")
    assert not wrong, "\n".join(wrong)


def test_every_route_is_in_the_table() -> None:
    missing = {route.name for route in ROUTES} ^ {row.name for row in TABLE}
    assert not missing, f"Which roles may open these routes? Correct the rows: {', '.join(sorted(missing))}"


LEAST = {
    Access.EVERYBODY: "",
    Access.PUBLIC: "visitor",
    Access.PLAY: "visitor public",  # by the default of the setting
    Access.SIGNED_IN: "visitor public",
    Access.STUDENT: "visitor public lecturer admin",
    Access.LECTURER: "visitor public student other",
    Access.ADMIN: "visitor public student other lecturer",
}
"""Roles that a route's access alone refuses."""


def test_the_table_agrees_with_what_routes_say() -> None:
    routes = {route.name: route for route in ROUTES}
    for row in TABLE:
        found = dict(zip(WHO, row.found.split(), strict=True))
        for who in LEAST[routes[row.name].access].split():
            assert found[who] in ("in", "no"), f"{row.name}: {who}"

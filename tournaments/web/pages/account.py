"""Account page: password and API tokens."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Account, CourseError
from tournaments.course.people.credentials import FEED_PREFIX
from tournaments.web.http.errors import BadInput, NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import Site, act, signed_in_user, site_address, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.http.sessions import Cookie

MOST_TOKENS = 20
"""Most API tokens of one account: one for each machine of its owner."""
FEED_NAME = "news feed"
"""Name of the tokens of feeds in the list of tokens."""
LASTS = {"30": 30, "180": 180, "never": None}
"""Form value -> lifetime of a new token in days; None: unlimited."""


async def page(request: Request) -> Response:
    """Show the account page."""
    return await _page(request)


async def _page(request: Request, status: int = 200, **values: str) -> Response:
    site, user = site_of(request), signed_in_user(request)
    team, members = await in_thread(_team, site, user)
    tokens = await in_thread(site.course.tokens.of, user.id)
    given = {
        "server": site_address(request),
        "wrong_password": "",
        "wrong_token": "",
        "new_token": "",
        "new_feed": "",
        "token_name": "",
    } | values
    return render(
        request,
        "account.html",
        status,
        active="account",
        team=team,
        members=members,
        tokens=tokens,
        most_tokens=MOST_TOKENS,
        **given,
    )


def _team(site: Site, user: Account) -> tuple[object, list[Account]]:
    if user.team_id is None:
        return None, []
    return site.course.teams.get(user.team_id), site.course.accounts.of_team(user.team_id)


async def change_password(request: Request) -> Response:
    """Change the password, and end all other sessions of the account, and its tokens if wished."""
    site, user, form = site_of(request), signed_in_user(request), await request.form()
    now = site.now()
    site.check_rate(site.limits.passwords, user.id, "Too many attempts.")
    if text_of(form, "password") != text_of(form, "again"):
        return await _page(request, 400, wrong_password="The two new passwords are not the same.")
    async with site.hashing:
        if await in_thread(site.course.accounts.check_password, user.login, text_of(form, "old")) is None:
            return await _page(request, 400, wrong_password="The old password is wrong.")
        try:
            kept = await in_thread(site.course.accounts.hash_password, text_of(form, "password"))
        except CourseError as error:
            return await _page(request, 400, wrong_password=str(error))
    site.limits.passwords.give_back(user.id, now.timestamp())

    keeps_tokens = "keep_tokens" in form
    revoked = 0 if keeps_tokens else len(await in_thread(site.course.tokens.of, user.id))

    def change() -> str:
        site.course.accounts.keep_password(user.id, kept)  # which ends all sessions
        if not keeps_tokens:
            site.course.tokens.revoke_all(user.id)
        return site.course.sessions.start(user.id, now)[0]

    secret = await act(
        request, lambda _act: change(), "account.password", user.login, tokens_kept=keeps_tokens
    )
    tokens = {0: "", 1: " Your token is revoked, too."}.get(
        revoked, f" Your {revoked} tokens are revoked, too."
    )
    sentence = f"The password is changed; other browsers are signed out.{tokens}"
    response = see_other(request, "/account", sentence)
    site.cookies.write(response, Cookie.SESSION, secret)
    return response


async def make_token(request: Request) -> Response:
    """Make a token, and show its secret this once."""
    site, user, form = site_of(request), signed_in_user(request), await request.form()
    name = text_of(form, "name").strip()
    lasts = text_of(form, "days")
    if lasts not in LASTS:
        raise BadInput("Choose from the list for how long the token is to be valid.")
    if len(await in_thread(site.course.tokens.of, user.id)) >= MOST_TOKENS:
        return await _page(
            request, 400, token_name=name, wrong_token=f"You have {MOST_TOKENS} tokens: revoke one first."
        )
    try:
        secret, _token = await act(
            request,
            lambda _act: site.course.tokens.make(user.id, name, site.now(), LASTS[lasts]),
            "token.make",
            user.login,
            name=name,
            days=LASTS[lasts],
        )
    except CourseError as error:
        return await _page(request, 400, token_name=name, wrong_token=str(error))
    return await _page(request, 201, new_token=secret)


async def make_feed(request: Request) -> Response:
    """Make the address of a feed with a token of its own, and show it this once."""
    site, user = site_of(request), signed_in_user(request)
    try:
        secret, _token = await act(
            request,
            lambda _act: site.course.tokens.make(user.id, FEED_NAME, site.now(), None, FEED_PREFIX),
            "token.make",
            user.login,
            name=FEED_NAME,
            days=None,
        )
    except CourseError as error:
        return await _page(request, 400, wrong_token=str(error))
    return await _page(request, 201, new_feed=secret)


async def revoke_token(request: Request) -> Response:
    """Revoke one of the account's tokens."""
    site, user = site_of(request), signed_in_user(request)
    number = request.path_params["token"]
    tokens = {token.id: token.name for token in await in_thread(site.course.tokens.of, user.id)}
    if number not in tokens:
        raise NotFound("You have no such token.")
    await act(
        request,
        lambda _act: site.course.tokens.revoke(number, user.id),
        "token.revoke",
        user.login,
        name=tokens[number],
    )
    return see_other(request, "/account", "The token is revoked.")


ROUTES = (
    Route("GET", "/account", page, Access.SIGNED_IN, "account"),
    Route("POST", "/account/password", change_password, Access.SIGNED_IN, "account.password"),
    Route("POST", "/account/tokens", make_token, Access.SIGNED_IN, "account.token"),
    Route("POST", "/account/feed", make_feed, Access.SIGNED_IN, "account.feed"),
    Route("POST", "/account/tokens/{token:int}/revoke", revoke_token, Access.SIGNED_IN, "account.revoke"),
)

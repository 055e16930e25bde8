"""Account page: password and API tokens."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Account, CourseError
from tournaments.web.http.cookies import Cookie
from tournaments.web.http.errors import BadInput, NotFound, TooMany
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import Site, account_of, site_of
from tournaments.web.http.routing import Access, Route, in_thread

MOST_TOKENS = 20
"""Most API tokens of one account: one for each machine of its owner."""
LASTS = {"30": 30, "180": 180, "never": None}
"""Form value -> lifetime of a new token in days; None: unlimited."""


async def page(request: Request) -> Response:
    """Show the account page."""
    return await _page(request)


async def _page(request: Request, status: int = 200, **values: str) -> Response:
    site, me = site_of(request), account_of(request)
    team, members = await in_thread(_team, site, me)
    tokens = await in_thread(site.course.tokens.of, me.id)
    server = site.public_url or str(request.base_url).rstrip("/")
    given = {
        "server": server,
        "wrong_password": "",
        "wrong_token": "",
        "new_token": "",
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


def _team(site: Site, me: Account) -> tuple[object, list[Account]]:
    if me.team_id is None:
        return None, []
    return site.course.teams.get(me.team_id), site.course.accounts.of_team(me.team_id)


async def change_password(request: Request) -> Response:
    """Change the password, and end all other sessions of the account."""
    site, me, form = site_of(request), account_of(request), await request.form()
    now = site.now()
    wait = site.limits.sign_in_login.take(me.login.casefold(), now.timestamp())
    if wait:
        raise TooMany("Too many attempts.", wait)
    if text_of(form, "password") != text_of(form, "again"):
        return await _page(request, 400, wrong_password="The two new passwords are not the same.")
    async with site.hashing:
        if await in_thread(site.course.accounts.check_password, me.login, text_of(form, "old")) is None:
            return await _page(request, 400, wrong_password="The old password is wrong.")
        try:
            await in_thread(site.course.accounts.set_password, me.id, text_of(form, "password"))
        except CourseError as error:
            return await _page(request, 400, wrong_password=str(error))
    site.limits.sign_in_login.give_back(me.login.casefold(), now.timestamp())
    await in_thread(site.course.sessions.end_all, me.id)
    secret, _session = await in_thread(site.course.sessions.start, me.id, now)
    response = see_other(request, "/account", "The password is changed; other browsers are signed out.")
    site.cookies.write(response, Cookie.SESSION, secret)
    return response


async def make_token(request: Request) -> Response:
    """Make a token, and show its secret this once."""
    site, me, form = site_of(request), account_of(request), await request.form()
    name = text_of(form, "name").strip()
    lasts = text_of(form, "days")
    if lasts not in LASTS:
        raise BadInput("Choose from the list for how long the token is to be valid.")
    if len(await in_thread(site.course.tokens.of, me.id)) >= MOST_TOKENS:
        return await _page(
            request, 400, token_name=name, wrong_token=f"You have {MOST_TOKENS} tokens: revoke one first."
        )
    try:
        secret, _token = await in_thread(site.course.tokens.make, me.id, name, site.now(), LASTS[lasts])
    except CourseError as error:
        return await _page(request, 400, token_name=name, wrong_token=str(error))
    return await _page(request, 201, new_token=secret)


async def revoke_token(request: Request) -> Response:
    """Revoke one of the account's tokens."""
    site, me = site_of(request), account_of(request)
    number = request.path_params["token"]
    if number not in {token.id for token in await in_thread(site.course.tokens.of, me.id)}:
        raise NotFound("You have no such token.")
    await in_thread(site.course.tokens.revoke, number, me.id)
    return see_other(request, "/account", "The token is revoked.")


ROUTES = (
    Route("GET", "/account", page, Access.SIGNED_IN, "account"),
    Route("POST", "/account/password", change_password, Access.SIGNED_IN, "account.password"),
    Route("POST", "/account/tokens", make_token, Access.SIGNED_IN, "account.token"),
    Route("POST", "/account/tokens/{token:int}/revoke", revoke_token, Access.SIGNED_IN, "account.revoke"),
)

"""Signing in and out, and one-time links for choosing a password."""

from collections.abc import Callable, Hashable
from functools import partial
from secrets import token_hex

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tournaments.course.model import Account, CourseError, LinkPurpose
from tournaments.course.texts import LONGEST_NAME, login_of
from tournaments.database.base import StoreError
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rate_limits import RateLimit, address_key
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import Site, context_of, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.http.security import local_path
from tournaments.web.http.sessions import Cookie

WRONG = "The login or the password is wrong."
"""The same sentence whether or not there is such a login."""
TOO_MANY_ATTEMPTS = "Too many attempts to sign in."
NONCE_BYTES = 16
"""Random bytes by which browsers of the same account differ."""
OLD_LINK = "This link was used already, or is too old. Ask the lecturer for a new one."


async def form(request: Request) -> Response:
    """Show the form; a user who is signed in is redirected."""
    wanted = local_path(request.query_params.get("next"))
    if context_of(request).user is not None:
        return RedirectResponse(wanted, 303)
    return render(request, "sign_in.html", active="sign-in", next=wanted, login="", wrong="")


async def sign_in(request: Request) -> Response:
    """Check login and password, and begin a session."""
    site, given = site_of(request), await request.form()
    login, password, wanted = (
        text_of(given, "login").strip(),
        text_of(given, "password"),
        text_of(given, "next"),
    )
    buckets = _buckets(request, login)
    for limit, key in buckets:
        site.check_rate(limit, key, TOO_MANY_ATTEMPTS)
    try:
        async with site.hashing:
            found = await in_thread(site.course.accounts.check_password, login, password)
        if found is not None:
            account, kept = found
            check = partial(site.course.accounts.check_same_password, account.id, kept)
            response = await _begin_session(request, account, local_path(wanted), before=check)
            for limit, key in buckets:
                if limit is not site.limits.sign_in_address:
                    limit.give_back(key, site.now().timestamp())
            return response
    except CourseError:  # the account was disabled, or has another password by now
        pass
    except StoreError:  # no attempt was decided
        for limit, key in buckets:
            limit.give_back(key, site.now().timestamp())
        raise
    values = {"next": local_path(wanted), "login": login, "wrong": WRONG}
    return render(request, "sign_in.html", 403, active="sign-in", **values)


def _buckets(request: Request, login: str) -> list[tuple[RateLimit, Hashable]]:
    """Return the limits of an attempt to sign in, in their order, each with its key.

    A browser with which the account has signed in before has a bucket of its own alone.
    """
    site, context, name = site_of(request), context_of(request), _bucket(login)
    limits, address = site.limits, address_key(context.address)
    known, _, nonce = (site.cookies.read(request.cookies, Cookie.BROWSER) or "").partition(":")
    if nonce and known == name:
        return [(limits.passwords, nonce)]
    return [
        (limits.sign_in_address, address),
        (limits.passwords, (name, address)),
        (limits.sign_in_login, name),
    ]


def _bucket(login: str) -> str:
    """Return the bucket of a login: one for all the ways to write it, or each would have its own."""
    try:
        return login_of(login)
    except CourseError:  # invalid: shortened, because the limits keep their keys in memory
        return login[:LONGEST_NAME].casefold()


async def sign_out(request: Request) -> Response:
    """End the session, also on the server."""
    site, context = site_of(request), context_of(request)
    if context.session_secret is not None:
        await in_thread(site.course.sessions.end, context.session_secret)
    response = see_other(request, "/sign-in", "You are signed out.")
    site.cookies.clear(response, Cookie.SESSION)
    return response


async def link(request: Request) -> Response:
    """Show the form for a password.  Opening it does not use the link up, as mail programs open links."""
    account, purpose = await _find_link(request)
    return _link_page(request, account, purpose)


async def use_link(request: Request) -> Response:
    """Set the chosen password, and sign in."""
    account, purpose = await _find_link(request)
    site, given = site_of(request), await request.form()
    password = text_of(given, "password")
    if password != text_of(given, "again"):
        return _link_page(request, account, purpose, "The two passwords are not the same.")
    try:
        async with site.hashing:
            kept = await in_thread(site.course.accounts.hash_password, password)
        secret = request.path_params["secret"]
        note = f"Welcome, {account.name or account.login}."
        return await _begin_session(
            request, account, _first_page(account), note, lambda: _use_link(site, secret, kept)
        )
    except CourseError as error:
        return _link_page(request, account, purpose, str(error))


def _use_link(site: Site, secret: str, kept: str) -> None:
    now = site.now()
    found = site.course.links.find(secret, now)
    if found is None:
        raise CourseError(OLD_LINK)
    account, purpose = found
    with site.course.act(now, account.id, "account.password", account.login, link=purpose.value):
        site.course.links.use_hashed(secret, kept, now)


def _first_page(account: Account) -> str:
    """Return the page on which a new user begins."""
    if account.role.teaches:
        return "/teach"
    return "/my" if account.team_id is not None else "/"


def _link_page(request: Request, account: Account, purpose: LinkPurpose, wrong: str = "") -> Response:
    values = {"account": account, "purpose": purpose.value, "wrong": wrong}
    return render(request, "link.html", 400 if wrong else 200, **values)


async def _find_link(request: Request) -> tuple[Account, LinkPurpose]:
    site, context = site_of(request), context_of(request)
    site.check_rate(site.limits.links, address_key(context.address), "Links were tried too often.")
    found = await in_thread(site.course.links.find, request.path_params["secret"], site.now())
    if found is None or found[0].disabled:
        raise NotFound(OLD_LINK)
    return found


async def _begin_session(
    request: Request,
    account: Account,
    path: str,
    note: str | None = None,
    before: Callable[[], None] = lambda: None,
) -> Response:
    """Begin a new session and end the browser's old one, which somebody else may have put there.

    ``before`` is called in the same transaction.
    """
    site, old = site_of(request), context_of(request).session_secret

    def begin() -> str:
        now = site.now()
        with site.course.act(now, account.id, "account.sign_in", account.login):
            before()
            if old is not None:
                site.course.sessions.end(old)
            return site.course.sessions.start(account.id, now)[0]

    secret = await in_thread(begin)
    response = see_other(request, path, note)
    site.cookies.write(response, Cookie.SESSION, secret)
    site.cookies.write(response, Cookie.BROWSER, f"{_bucket(account.login)}:{token_hex(NONCE_BYTES)}")
    site.cookies.clear(response, Cookie.FORM)
    return response


ROUTES = (
    Route("GET", "/sign-in", form, Access.EVERYBODY, "sign-in"),
    Route("POST", "/sign-in", sign_in, Access.EVERYBODY, "sign-in.try"),
    Route("POST", "/sign-out", sign_out, Access.SIGNED_IN, "sign-out"),
    Route("GET", "/links/{secret}", link, Access.EVERYBODY, "link"),
    Route("POST", "/links/{secret}", use_link, Access.EVERYBODY, "link.use"),
)

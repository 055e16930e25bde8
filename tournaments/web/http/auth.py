"""Authentication and access control: sessions, tokens, roles, and the CSRF check of forms."""

from urllib.parse import quote

from starlette.requests import HTTPConnection, Request

from tournaments.course.model import Role
from tournaments.course.people.credentials import digest_of
from tournaments.web.http.errors import BadInput, Forbidden, NotSignedIn, StaleForm, WebError
from tournaments.web.http.rate_limits import address_key
from tournaments.web.http.request_body import form_of
from tournaments.web.http.request_context import RequestContext
from tournaments.web.http.routing import Access, in_thread
from tournaments.web.http.security import local_path, may_post, same_text
from tournaments.web.http.sessions import Cookie

FORM_FIELD = "csrf"
FORM_HEADER = "x-csrf"
"""Header in place of the field, for scripts that send something other than a form."""
API_TOO_OFTEN = "The API was asked too often."
BEARER = "bearer "
BEARER_ASKED = {"WWW-Authenticate": "Bearer"}


async def authenticate(request: HTTPConnection, context: RequestContext, *, is_counted: bool = True) -> None:
    """Identify the account of a request by its session or API token.

    Args:
        request: The request.
        context: The context, which gets the account.
        is_counted: False for a check during a connection, which is no request for the rate limit of the API.

    Raises:
        NotSignedIn: An API token is not valid (any more).
        TooMany: The rate limit of the API was exceeded.

    """
    if context.route.embedded:
        return
    if context.route.api:
        await _recognize_token(request, context, is_counted=is_counted)
        return
    cookies = context.site.cookies
    context.note = cookies.read(request.cookies, Cookie.NOTE)
    context.form_text = cookies.read(request.cookies, Cookie.FORM)
    secret = cookies.read(request.cookies, Cookie.SESSION)
    if secret is None:
        return
    found = await context.site.sessions.get(secret)
    if found is not None:
        context.session, context.user = found
        context.session_secret = secret


async def _recognize_token(request: HTTPConnection, context: RequestContext, *, is_counted: bool) -> None:
    given = request.headers.get("authorization", "")
    secret = given[len(BEARER) :].strip() if given.lower().startswith(BEARER) else None
    # Each request is counted before the database is read: for the account of a token that was valid before,
    # else for the address, so that guesses do not get a bucket each.
    site = context.site
    limits, by_address = site.limits, address_key(context.address)
    digest = None if secret is None else digest_of(secret)
    account_id = limits.token_accounts.get(digest)
    if is_counted:
        site.check_rate(limits.api, by_address if account_id is None else account_id, API_TOO_OFTEN)
    if secret is not None:
        context.user = await in_thread(site.course.tokens.find, secret, site.now())
        if context.user is None:
            limits.token_accounts.forget(digest)
        elif account_id is None and is_counted:
            limits.token_accounts.keep(digest, context.user.id)
            limits.api.give_back(by_address, site.now().timestamp())
            site.check_rate(limits.api, context.user.id, API_TOO_OFTEN)
    if given and (context.user is None or context.user.disabled):
        raise NotSignedIn(
            "This token is not valid (any more): make one on your account's page.", BEARER_ASKED
        )


def check_access(request: HTTPConnection, context: RequestContext) -> None:
    """Check that the route admits this account.

    Raises:
        NotSignedIn: The route does not admit visitors.
        Forbidden: The route does not admit this account.

    """
    access = context.route.access
    user = context.user
    if access is Access.EVERYBODY:
        return
    play_for = context.settings.play_for
    if access is Access.PLAY and play_for == "nobody":
        raise Forbidden("Nobody plays here: the lecturer has switched it off.")
    if user is None:
        if access is Access.PLAY and play_for == "everybody":
            return
        if access is Access.PUBLIC and context.settings.standings_for != "nobody":
            return
        if context.route.embedded:
            raise Forbidden("Visitors see no games of this course, so other sites cannot show them.")
        raise NotSignedIn(
            "This needs a token of your account's page, sent as 'Authorization: Bearer kal_...'."
            if context.route.api
            else "Sign in to see this page.",
            BEARER_ASKED if context.route.api else None,
        )
    if access is Access.STUDENT and (user.role is not Role.STUDENT or user.team_id is None):
        raise Forbidden(
            "You are in no team yet: ask the lecturer."
            if user.role is Role.STUDENT
            else "This page is for students who have a team."
        )
    if access is Access.LECTURER and not user.role.teaches:
        raise Forbidden("This page is for lecturers.")
    if access is Access.ADMIN and user.role is not Role.ADMIN:
        raise Forbidden("This page is for admins.")


async def admit_again(request: HTTPConnection, context: RequestContext) -> RequestContext:
    """Return the context that a new request of this client would get.

    It is for requests and connections that last, whose account and permissions may change meanwhile.

    Raises:
        NotSignedIn: The account, the session or the token is not valid any more.
        Forbidden: The route does not admit this account any more.
        StoreError: The database cannot be used.

    """
    again = RequestContext(context.site, await context.site.settings(), context.route, context.address)
    await authenticate(request, again, is_counted=False)
    check_access(request, again)
    return again


async def admitted_again(request: HTTPConnection, context: RequestContext) -> RequestContext | None:
    """Return the result of ``admit_again``; None if a new request is not admitted.  Raises StoreError."""
    try:
        return await admit_again(request, context)
    except WebError:
        return None


async def check_form(request: Request, context: RequestContext) -> None:
    """Check that a form was sent from a page of this site, by the user for whom that page was made.

    Raises:
        Forbidden: The form was sent from another site.
        StaleForm: The CSRF text is missing or wrong, or the page is too old.
        BadInput: A field has a NUL character.
        Unavailable: A file of the form cannot be written to the disk.

    """
    if context.route.api:
        return
    if not may_post(request.headers, context.site.public_url):
        raise Forbidden(
            "This form was sent from another site. If it was not, the server's public_url is wrong."
        )
    expected = context.session.csrf if context.session is not None else context.form_text
    given = request.headers.get(FORM_HEADER)
    if given is None:
        form = await form_of(request)
        for name, value in form.multi_items():
            if isinstance(value, str) and "\0" in name + value:
                raise BadInput(f"The field {name.replace(chr(0), '')!r} has a NUL character: leave it out.")
        field = form.get(FORM_FIELD)
        given = field if isinstance(field, str) else None
    if expected is None or not same_text(given, expected):
        raise StaleForm("This page was open for too long, or your browser keeps no cookies: load it again.")


def sign_in_path(request: Request) -> str:
    """Return the path of the sign-in form, which leads back to the requested page."""
    if request.method not in ("GET", "HEAD"):
        return "/sign-in"
    query = request.url.query
    wanted = local_path(request.url.path + (f"?{query}" if query else ""))
    return "/sign-in" if wanted == "/" else f"/sign-in?next={quote(wanted, safe='/')}"

"""Authentication and access control: sessions, tokens, roles, and the CSRF check of forms."""

from urllib.parse import quote

from starlette.requests import Request

from tournaments.course.model import Role
from tournaments.web.http.cookies import Cookie
from tournaments.web.http.errors import BadInput, Forbidden, NotSignedIn, StaleForm, TooMany, not_kept
from tournaments.web.http.rate_limits import address_key
from tournaments.web.http.request_context import RequestContext
from tournaments.web.http.routing import Access, in_thread
from tournaments.web.http.security import local_path, may_post, same_text

MOST_FILES = 2_000
"""Most files of one form: a folder's, dropped into a page.  Submissions have a lower limit of their own."""
MOST_FIELDS = 2_000
"""Most fields of one form: the settings have some dozens."""
FORM_FIELD = "csrf"
FORM_HEADER = "x-csrf"
"""Header in place of the field, for scripts that send something other than a form."""
BEARER = "bearer "
BEARER_ASKED = {"WWW-Authenticate": "Bearer"}


async def authenticate(request: Request, visit: RequestContext) -> None:
    """Identify the account of a request by its session or API token.

    Raises:
        NotSignedIn: An API token is not valid (any more).
        TooMany: The rate limit of the API was exceeded.

    """
    if visit.route.api:
        await _recognize_token(request, visit)
        return
    cookies = visit.site.cookies
    visit.note = cookies.read(request.cookies, Cookie.NOTE)
    visit.form_text = cookies.read(request.cookies, Cookie.FORM)
    secret = cookies.read(request.cookies, Cookie.SESSION)
    if secret is None:
        return
    found = await visit.site.recognized.find(secret)
    if found is not None:
        visit.session, visit.me = found
        visit.session_secret = secret


async def _recognize_token(request: Request, visit: RequestContext) -> None:
    given = request.headers.get("authorization", "")
    secret = given[len(BEARER) :].strip() if given.lower().startswith(BEARER) else None
    # The key is the address until the token proves valid: guesses do not get a bucket each.
    key = address_key(visit.address)
    if secret is not None:
        visit.me = await in_thread(visit.site.course.tokens.find, secret, visit.site.now())
        if visit.me is not None and not visit.me.disabled:
            key = f"account {visit.me.id}"
    wait = visit.site.limits.api.take(key, visit.site.now().timestamp())
    if wait:
        raise TooMany("The API was asked too often.", wait)
    if given and (visit.me is None or visit.me.disabled):
        raise NotSignedIn(
            "This token is not valid (any more): make one on your account's page.", BEARER_ASKED
        )


def check_access(request: Request, visit: RequestContext) -> None:
    """Check that the route admits this account.

    Raises:
        NotSignedIn: The route does not admit visitors.
        Forbidden: The route does not admit this account.

    """
    access = visit.route.access
    me = visit.me
    if access is Access.EVERYBODY:
        return
    if me is None:
        if access is Access.PUBLIC and visit.settings.standings_for != "nobody":
            return
        raise NotSignedIn(
            "This needs a token of your account's page, sent as 'Authorization: Bearer kal_...'."
            if visit.route.api
            else "Sign in to see this page.",
            BEARER_ASKED if visit.route.api else None,
        )
    if access is Access.STUDENT and (me.role is not Role.STUDENT or me.team_id is None):
        raise Forbidden(
            "You are in no team yet: ask the lecturer."
            if me.role is Role.STUDENT
            else "This page is for students who have a team."
        )
    if access is Access.LECTURER and not me.role.teaches:
        raise Forbidden("This page is for lecturers.")
    if access is Access.ADMIN and me.role is not Role.ADMIN:
        raise Forbidden("This page is for admins.")


async def check_form(request: Request, visit: RequestContext) -> None:
    """Check that a form was sent from a page of this site, by the user for whom that page was made.

    Raises:
        Forbidden: The form was sent from another site.
        StaleForm: The CSRF text is missing or wrong, or the page is too old.
        BadInput: A field has a NUL character.
        Unavailable: A file of the form cannot be written to the disk.

    """
    if visit.route.api:
        return
    if not may_post(request.headers, visit.site.public_url):
        raise Forbidden(
            "This form was sent from another site. If it was not, the server's public_url is wrong."
        )
    expected = visit.session.csrf if visit.session is not None else visit.form_text
    given = request.headers.get(FORM_HEADER)
    if given is None:
        try:
            form = await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
        except OSError as error:  # from the temporary files of large parts
            raise not_kept(error) from error
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

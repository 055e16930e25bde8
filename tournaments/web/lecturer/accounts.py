"""Page for admins: the accounts of lecturers and admins."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.audit import Act
from tournaments.course.model import Account, CourseError, Role
from tournaments.web.http.errors import BadInput, NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import is_yes, text_of
from tournaments.web.http.request_context import act, signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.new_links import NewLink, make_link, replace_link, show_links
from tournaments.web.lecturer.people import set_disabled, state_of

HERE = "/teach/accounts"
ROLES = tuple(role for role in Role if role.teaches)


async def page(request: Request, status: int = 200, wrong: str = "", **values: str) -> Response:
    """List all lecturers and admins; ``wrong`` is the problem of a form with these values."""
    site = site_of(request)
    accounts = [account for account in await in_thread(site.course.accounts.all) if account.role.teaches]
    return render(
        request,
        "teach/accounts.html",
        status,
        active="teach",
        accounts=[(account, state_of(account)) for account in accounts],
        roles=[(role.value, role.value) for role in ROLES],
        wrong=wrong,
        given={"login": "", "name": "", "role": Role.LECTURER.value} | values,
    )


async def add(request: Request) -> Response:
    """Add an account, and show its link."""
    form = await request.form()
    given = {name: text_of(form, name).strip() for name in ("login", "name", "role")}
    role = _role(given["role"])
    try:
        made = await act(
            request, lambda act: _add(request, act, given["login"], given["name"], role), "account.add"
        )
    except CourseError as error:
        return await page(request, 400, str(error), **given)
    return show_links(
        request, [made], f"A new {role.value}", f"{made.name} can sign in with this link.", (HERE, "Back")
    )


def _add(request: Request, act: Act, login: str, name: str, role: Role) -> NewLink:
    site = site_of(request)
    account = site.course.accounts.add(login, name or login, role, None, site.now())
    act.subject, act.detail = account.login, {"role": role.value}
    return make_link(request, account)


async def link(request: Request) -> Response:
    """Make a new link for choosing a password."""
    account = await _account_in_path(request)
    try:
        return await replace_link(request, account, (HERE, "Back"))
    except CourseError as error:
        return await page(request, 400, str(error))


async def role(request: Request) -> Response:
    """Change the role of an account."""
    site, account, form = site_of(request), await _account_in_path(request), await request.form()
    wanted = _role(text_of(form, "role"))
    await act(
        request,
        lambda _act: site.course.accounts.set_role(account.id, wanted),
        "account.role",
        account.login,
        role=wanted.value,
    )
    return see_other(request, HERE, f"{account.login} is {wanted.value} now.")


async def disable(request: Request) -> Response:
    """Disable an account, or enable it again."""
    account = await _account_in_path(request)
    disabled = is_yes(await request.form(), "disabled")
    if disabled and account.id == signed_in_user(request).id:
        raise BadInput("You cannot disable your own account: another admin can.")
    return await set_disabled(request, account, disabled, HERE)


def _role(text: str) -> Role:
    found = next((role for role in ROLES if role.value == text), None)
    if found is None:
        raise BadInput("Choose a role from the list.")
    return found


async def _account_in_path(request: Request) -> Account:
    account = await in_thread(site_of(request).course.accounts.get, request.path_params["account"])
    if account is None or not account.role.teaches:
        raise NotFound("There is no such lecturer.")
    return account


ROUTES = (
    Route("GET", HERE, page, Access.ADMIN, "teach.accounts"),
    Route("POST", f"{HERE}/add", add, Access.ADMIN, "teach.accounts.add"),
    Route("POST", f"{HERE}/{{account:int}}/link", link, Access.ADMIN, "teach.accounts.link"),
    Route("POST", f"{HERE}/{{account:int}}/role", role, Access.ADMIN, "teach.accounts.role"),
    Route("POST", f"{HERE}/{{account:int}}/disable", disable, Access.ADMIN, "teach.accounts.disable"),
)

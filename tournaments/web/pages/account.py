"""Account page: password, API tokens, news feed and e-mail."""

from collections.abc import Collection, Mapping

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.audit import Act
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, MailKind
from tournaments.course.people.credentials import FEED_PREFIX
from tournaments.course.texts import email_of
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
MAIL_KINDS = {
    MailKind.CHECKS: "results of your team's checks",
    MailKind.CHALLENGES: "challenges of your team that are over",
    MailKind.TOURNAMENTS: "finished tournaments",
}
"""Kinds of mails -> their words."""
MAIL = "/account#mail"
OLD_MAIL_LINK = "This link was used already, or is too old, or is for another account."
LASTS = {"30": 30, "180": 180, "never": None}
"""Form value -> lifetime of a new token in days; None: unlimited."""


async def page(request: Request) -> Response:
    """Show the account page."""
    return await account_page(request)


async def account_page(request: Request, status: int = 200, **values: str) -> Response:
    """Return the account page with the problems of a form, or a new secret."""
    site, user = site_of(request), signed_in_user(request)
    team, members = await in_thread(_team, site, user)
    tokens = await in_thread(site.course.tokens.of, user.id)
    mail = await in_thread(site.course.addresses.of, user.id)
    given = {
        "server": site_address(request),
        "wrong_password": "",
        "wrong_token": "",
        "new_token": "",
        "new_feed": "",
        "token_name": "",
        "token_days": "180",
        "wrong_mail": "",
        "mail_given": mail.pending or mail.address or "",
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
        mail=mail,
        sends_mail=site.course.outbox.is_on,
        kinds=kinds_for(user).items(),
        **given,
    )


def kinds_for(user: Account) -> Mapping[MailKind, str]:
    """Return the kinds of mails that a user can choose, with their words; lecturers have no team."""
    only = MailKind.TOURNAMENTS
    return {only: MAIL_KINDS[only]} if user.role.teaches else MAIL_KINDS


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
        return await account_page(request, 400, wrong_password="The two new passwords are not the same.")
    async with site.hashing:
        found = await in_thread(site.course.accounts.check_password, user.login, text_of(form, "old"))
        if found is None:
            return await account_page(request, 400, wrong_password="The old password is wrong.")
        try:
            kept = await in_thread(site.course.accounts.hash_password, text_of(form, "password"))
        except CourseError as error:
            return await account_page(request, 400, wrong_password=str(error))
    site.limits.passwords.give_back(user.id, now.timestamp())

    keeps_tokens = "keep_tokens" in form
    revoked = 0 if keeps_tokens else len(await in_thread(site.course.tokens.of, user.id))

    def change() -> str:
        site.course.accounts.check_same_password(user.id, found[1])
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
    given = {"token_name": name, "token_days": lasts}
    if len(await in_thread(site.course.tokens.of, user.id)) >= MOST_TOKENS:
        return await account_page(
            request, 400, wrong_token=f"You have {MOST_TOKENS} tokens: revoke one first.", **given
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
        return await account_page(request, 400, wrong_token=str(error), **given)
    return await account_page(request, 201, new_token=secret)


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
        return await account_page(request, 400, wrong_token=str(error))
    return await account_page(request, 201, new_feed=secret)


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


async def change_mail(request: Request) -> Response:
    """Save the address and the chosen kinds; a new address is used once it is confirmed."""
    site, user, form = site_of(request), signed_in_user(request), await request.form()
    given, course = text_of(form, "address").strip(), site.course
    shown = kinds_for(user)
    try:
        address = email_of(given) if given else ""
    except CourseError as error:
        return await account_page(request, 400, wrong_mail=str(error), mail_given=given)
    before = await in_thread(course.addresses.of, user.id)
    kinds = (before.kinds - set(shown)) | {kind for kind in shown if kind.value in form}
    is_new = address not in ("", before.address)
    if is_new:
        if not course.outbox.is_on:
            raise BadInput("This server sends no mail.")
        site.check_rate(site.limits.confirmations, user.id, "Too many mails to new addresses.")

    def do(entry: Act) -> str:
        what = _save(course, user.id, address, kinds, entry)
        if is_new:
            course.outbox.ask_to_confirm(user.id, address, site.now())
        return what

    sentence = await act(request, do, "account.mail", user.login)
    if is_new:
        sentence = f"A mail to {address} has a link that confirms it."
    return see_other(request, MAIL, sentence)


def _save(course: Course, account_id: int, address: str, kinds: Collection[MailKind], entry: Act) -> str:
    """Save what needs no confirmation; return a sentence on it.  The journal does not have the address."""
    before = course.addresses.of(account_id)
    is_removed = not address and course.addresses.remove(account_id)
    is_chosen = course.addresses.choose(account_id, kinds)
    is_new = address not in ("", before.address)
    entry.detail["change"] = "removed" if is_removed else "new" if is_new else "kinds"
    entry.is_recorded = is_removed or is_chosen or is_new
    return "No mail is sent to you any more." if is_removed else "Saved."


async def mail_link(request: Request) -> Response:
    """Show the address that is to be confirmed.  Opening the page does nothing: mail programs open links."""
    return render(request, "mail_link.html", active="account", address=await _pending_address(request))


async def confirm_mail(request: Request) -> Response:
    """Confirm the address of the signed-in account."""
    site, user = site_of(request), signed_in_user(request)
    secret: str = request.path_params["secret"]
    await _pending_address(request)

    def do(entry: Act) -> str:
        entry.detail["change"] = "confirmed"
        return site.course.addresses.confirm(user.id, secret, site.now())

    try:
        address = await act(request, do, "account.mail", user.login)
    except CourseError as error:
        raise NotFound(OLD_MAIL_LINK) from error
    return see_other(request, MAIL, f"Mails go to {address} now.")


async def _pending_address(request: Request) -> str:
    site, user = site_of(request), signed_in_user(request)
    site.check_rate(site.limits.links, user.id, "Links were tried too often.")
    secret: str = request.path_params["secret"]
    address = await in_thread(site.course.addresses.pending, user.id, secret, site.now())
    if address is None:
        raise NotFound(OLD_MAIL_LINK)
    return address


ROUTES = (
    Route("GET", "/account", page, Access.SIGNED_IN, "account"),
    Route("POST", "/account/password", change_password, Access.SIGNED_IN, "account.password"),
    Route("POST", "/account/tokens", make_token, Access.SIGNED_IN, "account.token"),
    Route("POST", "/account/feed", make_feed, Access.SIGNED_IN, "account.feed"),
    Route("POST", "/account/mail", change_mail, Access.SIGNED_IN, "account.mail"),
    Route("GET", "/account/mail/{secret}", mail_link, Access.SIGNED_IN, "account.mail.link"),
    Route("POST", "/account/mail/{secret}", confirm_mail, Access.SIGNED_IN, "account.mail.confirm"),
    Route("POST", "/account/tokens/{token:int}/revoke", revoke_token, Access.SIGNED_IN, "account.revoke"),
)

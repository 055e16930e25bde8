"""API operations on submissions: uploads, versions and the logs of their checks."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Account, Version
from tournaments.web.api.openapi import Operation, Parameter
from tournaments.web.api.responses import NUMBER, TEXT, answer, number_in_query, text_in_query
from tournaments.web.api.schemas import (
    AccountAnswer,
    AccountView,
    LogAnswer,
    SubmissionAnswer,
    VersionAnswer,
    VersionsAnswer,
    VersionView,
)
from tournaments.web.http.errors import BadInput, NotFound
from tournaments.web.http.request_context import Site, settings_of, signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.http.uploads import (
    LARGEST_BODY,
    receive_upload,
    submit_upload,
    unpack_upload,
    upload_limits,
)
from tournaments.web.pages.submissions_page import team_of

ORIGIN = "api"
LINES = 500
"""Most lines of a log in one response."""


async def me(request: Request) -> Response:
    """Return the account of the token."""
    site, account = site_of(request), signed_in_user(request)
    team = None if account.team_id is None else await in_thread(site.course.teams.get, account.team_id)
    name = None if team is None else team.name
    return answer(AccountAnswer(account=AccountView.of(account, team=name)))


async def submit(request: Request) -> Response:
    """Submit an upload; its check runs in the background."""
    site = site_of(request)
    name = text_in_query(request, "name", "")
    if not name:
        raise BadInput("The query needs name=, the file's name, such as ?name=bot.zip.")
    limits = upload_limits(settings_of(request))
    with await receive_upload(request, limits) as file:
        at = site.now()  # before unpacking, for which uploads queue
        with site.course.versions.arriving(team_of(signed_in_user(request)), at):
            upload = await unpack_upload(name, file, limits)
            version, is_new = await submit_upload(request, upload, ORIGIN, at)
    view = await _own_view(site, version)
    shape = SubmissionAnswer(version=view, new=is_new, passed_over=list(upload.passed_over))
    return answer(shape, 201 if is_new else 200)


async def versions(request: Request) -> Response:
    """Return all versions of the user's team."""
    site, account = site_of(request), signed_in_user(request)
    found, current = await in_thread(_of_team, site, account)
    return answer(VersionsAnswer(versions=[_view(version, current) for version in found]))


def _of_team(site: Site, account: Account) -> tuple[list[Version], Version | None]:
    assert account.team_id is not None
    return site.course.versions.of_team(account.team_id), site.course.versions.current().get(account.team_id)


async def version(request: Request) -> Response:
    """Return a version of the user's team, and the report of its check."""
    site, found = site_of(request), await _own(request)
    checked = await in_thread(site.course.versions.checked, found.id)
    report = None if checked is None or checked.report is None else dict(checked.report)
    return answer(VersionAnswer(version=await _own_view(site, found), report=report))


async def log(request: Request) -> Response:
    """Return the lines of the log so far, from a number on."""
    site, found = site_of(request), await _own(request)
    after = number_in_query(request, "after", 0)
    kept = await site.service.check_log(found.id)
    lines = kept.lines[after : after + LINES]
    reached = min(after, len(kept.lines)) + len(lines)
    is_over = kept.over and reached == len(kept.lines)
    return answer(LogAnswer(lines=list(lines), next=reached, is_over=is_over))


async def _own(request: Request) -> Version:
    """Return the version in the path.

    Raises:
        NotFound: The user's team has no such version.

    """
    site, account = site_of(request), signed_in_user(request)
    found = await in_thread(site.course.versions.get, request.path_params["id"])
    if found is None or found.team_id != account.team_id:
        raise NotFound("Your team has no such version.")
    return found


async def _own_view(site: Site, version: Version) -> VersionView:
    current = await in_thread(site.course.versions.current)
    return _view(version, current.get(version.team_id))


def _view(version: Version, current: Version | None) -> VersionView:
    """Return the model of a version; ``current`` is the version of its team that plays."""
    return VersionView.of(
        version,
        is_over=version.state.is_decided,
        current=current is not None and current.id == version.id,
        page=f"/my/versions/{version.id}",
    )


NO_TOKEN = {401: "No valid token.", 429: "Asked too often; Retry-After says how long to wait."}
NO_STUDENT = {**NO_TOKEN, 403: "The token's account is in no team."}
NO_VERSION = {**NO_STUDENT, 404: "The team has no such version."}
ID = Parameter("id", "path", NUMBER, "The version's id, not its number.")

OPERATIONS = (
    Operation(
        Route("GET", "/api/v1/me", me, Access.SIGNED_IN, "api_me", api=True),
        "Whose token this is",
        {200: AccountAnswer},
        NO_TOKEN,
    ),
    Operation(
        Route(
            "POST",
            "/api/v1/submissions",
            submit,
            Access.STUDENT,
            "api_submit",
            api=True,
            body_limit=LARGEST_BODY,
            is_upload=True,
        ),
        "Submit a version of the team's bot",
        {201: SubmissionAnswer, 200: SubmissionAnswer},
        {
            **NO_STUDENT,
            403: "The token's account is in no team, or in another one since the upload began.",
            400: "No name, or not now: the deadline, the limits of uploads.",
            408: "The body took too long to arrive.",
            413: "Too large.",
            422: "What it holds is refused; the sentence says what and why.",
            503: "This server could not keep it, as of a full disk: try again later.",
        },
        (
            Parameter(
                "name",
                "query",
                {**TEXT, "minLength": 1},
                "The file's name: of a zip archive of the bot's folder, or of the bot's only file.",
                required=True,
            ),
        ),
        "The file itself.",
    ),
    Operation(
        Route("GET", "/api/v1/submissions", versions, Access.STUDENT, "api_versions", api=True),
        "All versions of the team",
        {200: VersionsAnswer},
        NO_STUDENT,
    ),
    Operation(
        Route("GET", "/api/v1/submissions/{id:int}", version, Access.STUDENT, "api_version", api=True),
        "One version, and what its check found",
        {200: VersionAnswer},
        NO_VERSION,
        (ID,),
    ),
    Operation(
        Route("GET", "/api/v1/submissions/{id:int}/log", log, Access.STUDENT, "api_log", api=True),
        "The log of a version's check, also while it goes on",
        {200: LogAnswer},
        {**NO_VERSION, 400: "after is no number of lines."},
        (
            ID,
            Parameter("after", "query", NUMBER, "So many lines are there already."),
        ),
    ),
)

"""Creation of a tournament: a form for each format, a preview, and the creation itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.tournament_file import WITHOUT_ROUNDS, RandomOpenings, RatingTable, TimeTable
from tournaments.course.model import CompetitionKind, Version, VersionState
from tournaments.course.settings import Settings, frozen_moment
from tournaments.results.game_summary import GameSummary
from tournaments.server.competitions.entrants import candidates, names_without_result
from tournaments.server.competitions.tournament_spec import (
    CURRENT,
    FixedSpec,
    TournamentSpec,
    TournamentSpecError,
)
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import number_in, text_of
from tournaments.web.http.request_context import Site, settings_of, signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.choices import PLAYERS, from_choices, with_choices
from tournaments.web.lecturer.forms import Section, form_fields, form_value, labelled
from tournaments.web.lecturer.preview import Preview, preview_of
from tournaments.web.pages.home import practice_of
from tournaments.web.views.visibility import is_visible

HERE = "/teach/tournaments/new"
FORMATS = {kind: table.ABOUT for kind, table in FORMAT_TABLES.items()}
"""Name of a format -> its description."""
DEFAULT_FORMAT = "round-robin"
CHOSEN = "chosen"
"""Form value for the ticked versions, in place of ``current`` and ``frozen``."""
MOST_VERSIONS = 2000
"""Most versions that the form offers, the newest first: a course has some hundred."""


REFERENCES = tuple(
    replace(field, label="Reference players") for field in form_fields(TournamentSpec, ["references"])
)
"""Input for the reference players of a tournament."""
ENTRANTS = tuple(replace(field, name="bots", label="Entrants") for field in REFERENCES)
"""The same input as problems of the whole list of bots name it."""


@dataclass(frozen=True)
class Choice:
    """A version that the form offers."""

    version: Version
    team: str
    current: bool


def sections(kind: str) -> tuple[Section, ...]:
    """Return the form's sections for a format, without the choice of entrants."""
    table = FORMAT_TABLES[kind]
    rounds = [] if kind in WITHOUT_ROUNDS else ["rounds"]
    return (
        Section("Tournament", form_fields(TournamentSpec, ["title"])),
        Section(
            "Format",
            (
                *form_fields(TournamentSpec, rounds),
                *form_fields(table, [name for name in table.model_fields if name != "kind"], "format"),
            ),
        ),
        Section(
            "Game and time",
            (
                *form_fields(TournamentSpec, ["game"]),
                *form_fields(TimeTable, ["move_s", "game_s", "increment_s"], "time"),
                *form_fields(RandomOpenings, ["plies"], "openings"),
            ),
        ),
        Section(
            "Table and more",
            (
                *form_fields(TournamentSpec, ["ranking"]),
                *form_fields(RatingTable, ["anchor"], "rating"),
                *form_fields(TournamentSpec, ["seed", "concurrency"]),
            ),
        ),
    )


def default_values(kind: str, settings: Settings) -> dict[str, str]:
    """Return the initial values of the form."""
    table = FORMAT_TABLES[kind]
    values = {
        f"format.{name}": form_value(field.default)
        for name, field in table.model_fields.items()
        if name != "kind" and not field.is_required()
    }
    return values | {
        "title": "",
        "format": kind,
        "game": settings.game,
        "time.move_s": form_value(settings.move_s),
        "time.game_s": form_value(settings.total_s),
        "time.increment_s": form_value(settings.increment_s),
        "seed": "0",
        "bots": CURRENT,
        "references": "",
    }


def values_of_copy(spec: TournamentSpec) -> dict[str, str]:
    """Return the form's values for another tournament like an earlier one, with the bots of today."""
    kind = spec.format.kind
    found = {"format": kind, "references": " ".join(spec.references)}
    found["bots"] = spec.bots if isinstance(spec.bots, str) else CURRENT
    for section in sections(kind):
        for field in section.fields:
            value: Any = spec
            for name in field.name.split("."):
                value = None if value is None else getattr(value, name)
            words = isinstance(value, list | tuple)
            found[field.name] = ", ".join(map(str, value)) if words else form_value(value)
    return found | {"title": f"{spec.title} (copy)"[:200]}


def spec_of_form(form: Mapping[str, str], versions: Sequence[str]) -> dict[str, Any]:
    """Return the input for ``TournamentSpec.read``; an invalid number stays a text, which is then refused.

    ``versions`` are the ids of the ticked versions.
    """
    kind = form.get("format", "")
    spec: dict[str, Any] = {"title": form.get("title", "").strip(), "format": {"kind": kind}}
    fields = [field for section in sections(kind) for field in section.fields] if kind in FORMATS else []
    for field in fields:
        text = form.get(field.name, "").strip()
        outer, _, inner = field.name.rpartition(".")
        table = spec.setdefault(outer, {}) if outer else spec
        if field.kind == "checkbox":
            table[inner] = text != ""
        elif field.kind == "words":
            table[inner] = [name.strip() for name in text.split(",") if name.strip()]
        elif text:
            table[inner] = number_of(text) if field.kind == "number" else text
    if "openings" in spec:
        if spec["openings"]:
            spec["openings"]["seed"] = spec.get("seed", 0)
        else:
            del spec["openings"]
    chosen = form.get("bots", CURRENT)
    spec["bots"] = [number_in(text, 0) for text in versions] if chosen == CHOSEN else chosen
    spec["references"] = [text for text in re.split(r"[\s,]+", form.get("references", "")) if text]
    return spec


def number_of(text: str) -> int | float | str:
    """Return the number in a text, or the text itself if it is not a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def errors_by_field(problems: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the problems with single fields of the form, by field name."""
    return {
        name: problem.removeprefix(f"{name}: ")
        for problem in problems
        for name in names
        if problem.startswith(f"{name}: ")
    }


async def page(request: Request) -> Response:
    """Show the form of one format, or with the choices of an earlier tournament."""
    copied = request.query_params.get("copy")
    if copied is not None:
        known = await in_thread(site_of(request).course.competitions.by_slug, copied)
        if known is None or known.kind is not CompetitionKind.TOURNAMENT or not is_visible(request, known):
            raise NotFound("There is no such tournament to copy.")
        return await _page(request, values_of_copy(FixedSpec.read(known.spec).chosen))
    kind = request.query_params.get("format", DEFAULT_FORMAT)
    if kind not in FORMATS:
        kind = DEFAULT_FORMAT
    return await _page(request, default_values(kind, settings_of(request)))


async def _page(
    request: Request,
    values: Mapping[str, str],
    ticked: Sequence[str] = (),
    problems: Sequence[str] = (),
    preview: Preview | None = None,
) -> Response:
    kind = values["format"]
    parts = sections(kind)
    fields = [field for section in parts for field in section.fields]
    names = [field.name for field in fields]
    return render(
        request,
        "teach/new_tournament.html",
        400 if problems else 200,
        active="teach",
        kind=kind,
        formats=FORMATS,
        sections=with_choices(parts, values),
        players=PLAYERS,
        values=dict.fromkeys([*names, "references"], "") | {"bots": CURRENT} | dict(values),
        ticked=ticked,
        problems=[labelled(problem, (*fields, *REFERENCES, *ENTRANTS)) for problem in problems],
        field_errors=errors_by_field(problems, names),
        preview=preview,
        choices=await in_thread(_choices, site_of(request)),
        frozen=frozen_moment(settings_of(request), site_of(request).now()),
    )


def _choices(site: Site) -> list[Choice]:
    """Return all versions that can play, ordered by team, the newest first."""
    teams = {team.id: team.name for team in site.course.teams.all()}
    current = {version.id for version in site.course.versions.current().values()}
    found = [
        Choice(version, teams[version.team_id], version.id in current)
        for version in site.course.versions.all(MOST_VERSIONS)
        if version.state is VersionState.QUALIFIED and not version.withdrawn and version.team_id in teams
    ]
    return sorted(found, key=lambda one: (one.team.casefold(), -one.version.number))


async def create(request: Request) -> Response:
    """Create the tournament if ``do`` is ``create``; else show its preview."""
    site, form = site_of(request), await request.form()
    values = {name: text_of(form, name) for name in form if name not in ("csrf", "version", "do")}
    values = from_choices(values)
    if values.get("format") not in FORMATS:
        values["format"] = DEFAULT_FORMAT
    ticked = _ticked(form)
    try:
        spec = TournamentSpec.read(spec_of_form(values, ticked))
        preview = await _preview(request, spec)
        if text_of(form, "do") not in ("create", "draft"):
            return await _page(request, values, ticked, preview=preview)
        is_draft = text_of(form, "do") == "draft"
        by = signed_in_user(request)
        made = await site.service.tournaments.create_tournament(spec, by, draft=is_draft)
    except TournamentSpecError as error:
        return await _page(request, values, ticked, error.problems)
    sentence = (
        "The draft was saved. Publish it when students may see it."
        if is_draft
        else "The tournament was created. You can start it now."
    )
    return see_other(request, f"/teach/tournaments/{made.slug}", sentence)


def _ticked(form: FormData) -> list[str]:
    return [value for value in form.getlist("version") if isinstance(value, str)]


async def _preview(request: Request, spec: TournamentSpec) -> Preview:
    """Return the preview of a tournament.  Raises TournamentSpecError."""
    site = site_of(request)
    now = site.now()
    chosen = await in_thread(
        candidates,
        spec,
        site.course.versions,
        site.course.teams,
        frozen_moment(settings_of(request), now),
        now,
    )
    practice = await practice_games(site)
    preview = await in_thread(preview_of, spec, chosen, practice, site.service.tournament_slots)
    if spec.bots != CURRENT:
        return preview
    course = site.course
    found = await in_thread(names_without_result, chosen, course.versions, course.teams)
    return replace(preview, without_result=found)


async def practice_games(site: Site) -> Sequence[GameSummary]:
    """Return the games of the practice ladder, from which durations are estimated."""
    known = await in_thread(site.course.competitions.all)
    practice = practice_of(known)
    return [] if practice is None else (await site.service.tournaments.summary(practice.id)).games


ROUTES = (
    Route("GET", HERE, page, Access.LECTURER, "teach.tournament.new"),
    Route("POST", HERE, create, Access.LECTURER, "teach.tournament.create", body_limit=1 << 20),
)

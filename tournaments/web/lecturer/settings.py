"""Page of the course's settings."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.audit import Act
from tournaments.course.model import CourseError
from tournaments.course.settings import Settings, SettingsError, moment_text, settings_of_form
from tournaments.web.http.errors import Conflict
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import choice_of, text_of
from tournaments.web.http.request_context import Site, act, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.choices import PLAYER, from_choices, with_choices
from tournaments.web.lecturer.forms import Section, form_fields, form_value, labelled

HERE = "/teach/settings"
SECTIONS = tuple(
    Section(title, form_fields(Settings, names.split()))
    for title, names in (
        ("The course", "title game time_zone"),
        ("Time control", "move_s total_s increment_s"),
        (
            "Submissions",
            "uploads_open deadline frozen_at uploads_per_day uploads_total upload_mb "
            "team_storage_mb course_storage_mb",
        ),
        ("Visibility", "standings_for students_see_names embed_origins"),
        ("Practice ladder", "practice_on practice_places quiet_from quiet_to references"),
        ("Challenges", "challenges_with challenge_pairs_per_day"),
        ("Casual games", "play_for play_games"),
        ("Sandbox and limits", "sandbox_mode memory_mb processes check_total_s"),
    )
)
SHOWN = "shown_settings"
"""Hidden input with the settings that the page shows."""
FIELDS = tuple(field for section in SECTIONS for field in section.fields)


def values_of(settings: Settings) -> dict[str, str]:
    """Return the value of each input of the form."""
    return {name: form_value(value, settings.zone) for name, value in settings.model_dump().items()}


def changes(before: Settings, after: Settings) -> dict[str, Any]:
    """Return the changed settings for the journal: name -> [before, after]."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: [old[name], new[name]] for name in new if old[name] != new[name]}


async def page(request: Request) -> Response:
    """Show all settings."""
    settings = await in_thread(site_of(request).course.settings.load)
    return await _page(request, values_of(settings), settings.model_dump_json())


async def _page(
    request: Request,
    values: Mapping[str, str],
    shown_settings: str,
    problems: Mapping[str, str] | None = None,
) -> Response:
    settings = await in_thread(site_of(request).course.settings.load)
    shown = {field.name: "" for field in FIELDS} | dict(values)
    return await in_thread(
        render,
        request,
        "teach/settings.html",
        400 if problems else 200,
        active="teach",
        sections=with_choices(SECTIONS, shown),
        values=shown,
        shown_settings=shown_settings,
        problems={name: labelled(text, FIELDS) for name, text in (problems or {}).items()},
        field_errors={name: text.removeprefix(f"{name}: ") for name, text in (problems or {}).items()},
        saved=settings,
    )


async def save(request: Request) -> Response:
    """Save the settings that the user changed on the page, or none if any of them is invalid."""
    site, form = site_of(request), await request.form()
    sent = from_choices({name: text_of(form, name) for name in form})
    given = {field.name: sent[field.name] for field in FIELDS if field.name in sent}
    try:
        settings = settings_of_form(given)
    except SettingsError as error:
        return await _page(request, given, text_of(form, SHOWN), error.problems)
    chosen = _changed_by_user(text_of(form, SHOWN), settings)
    changed = await act(request, lambda act: _save(site, act, chosen), "settings.change")
    site.service.settings_changed()
    return see_other(request, HERE, "The settings are saved." if changed else "Nothing was changed.")


def _changed_by_user(shown: str, settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from those with which the page was shown; all if that is unknown.

    Others may have changed the rest in the meantime.  An input may show less than a setting has, as a moment
    without its microseconds, and the reference players with a box come first: the comparison is with the form
    as a browser would send it unchanged, in which boxes that are not ticked are missing.
    """
    values = settings.model_dump()
    try:
        before = Settings.model_validate_json(shown)
        sent = {name: text for name, text in values_of(before).items() if getattr(before, name) is not False}
        ticked = {f"{PLAYER}{player}": "true" for player in before.references}
        unchanged = settings_of_form(from_choices(sent | ticked)).model_dump()
    except (ValueError, CourseError):
        return values
    return {name: value for name, value in values.items() if value != unchanged[name]}


def _save(site: Site, act: Act, chosen: Mapping[str, Any]) -> dict[str, object]:
    before = site.course.settings.load()
    changed = changes(before, site.course.settings.change(**chosen))
    act.subject, act.detail, act.is_recorded = ", ".join(changed), {"changes": changed}, bool(changed)
    return changed


async def freeze(request: Request) -> Response:
    """Freeze the versions as they are at this moment, or unfreeze them."""
    site = site_of(request)
    frozen = choice_of(await request.form(), "freeze", ("now", "no")) == "now"
    action = "settings.freeze" if frozen else "settings.unfreeze"
    await act(request, lambda _act: _freeze(site, frozen), action, "versions")
    site.service.settings_changed()
    sentence = "Versions are frozen as they are now." if frozen else "Versions are not frozen any more."
    return see_other(request, HERE, sentence)


def _freeze(site: Site, frozen: bool) -> None:
    """Freeze the versions as they are now, or unfreeze them.

    Raises Conflict if they are frozen already: a later moment would add versions to the frozen ones.
    """
    now, settings = site.now(), site.course.settings.load()
    if frozen and settings.frozen_at is not None and settings.frozen_at <= now:
        raise Conflict(
            f"Versions were frozen at {moment_text(settings, settings.frozen_at)}, and stay as they were. "
            "To freeze those of now, unfreeze them first."
        )
    site.course.settings.change(frozen_at=now if frozen else None)


ROUTES = (
    Route("GET", HERE, page, Access.LECTURER, "teach.settings"),
    Route("POST", HERE, save, Access.LECTURER, "teach.settings.save"),
    Route("POST", f"{HERE}/freeze", freeze, Access.LECTURER, "teach.settings.freeze"),
)

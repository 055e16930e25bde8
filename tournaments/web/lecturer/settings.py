"""Page of the course's settings."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.settings import Settings, SettingsError, settings_of_form
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import Site, note, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.setting_fields import FIELDS, GROUPS, changes, given_values, values_of

HERE = "/teach/settings"


async def page(request: Request) -> Response:
    """Show all settings."""
    settings = await in_thread(site_of(request).course.settings.load)
    return await _page(request, values_of(settings))


async def _page(
    request: Request, values: Mapping[str, str], problems: Mapping[str, str] | None = None
) -> Response:
    settings = await in_thread(site_of(request).course.settings.load)
    return render(
        request,
        "teach/settings.html",
        400 if problems else 200,
        active="teach",
        groups=GROUPS,
        values={field.name: "" for field in FIELDS} | dict(values),
        problems=problems or {},
        at_fields={name: text.removeprefix(f"{name}: ") for name, text in (problems or {}).items()},
        saved=settings,
    )


async def save(request: Request) -> Response:
    """Save all settings, or none if any of them is invalid."""
    site, form = site_of(request), await request.form()
    given = given_values({name: text_of(form, name) for name in form})
    try:
        settings = settings_of_form(given)
    except SettingsError as error:
        return await _page(request, given, error.problems)
    changed = await in_thread(_save, site, settings)
    _changed(site)
    if changed:
        await note(request, "settings.change", ", ".join(changed), changes=changed)
    return see_other(request, HERE, "The settings are saved." if changed else "Nothing was changed.")


def _save(site: Site, settings: Settings) -> dict[str, object]:
    with site.course.transaction():
        before = site.course.settings.load()
        site.course.settings.save(settings)
    return changes(before, settings)


def _changed(site: Site) -> None:
    site.forget_settings()
    site.service.settings_changed()


async def freeze(request: Request) -> Response:
    """Freeze the versions as they are at this moment, or unfreeze them."""
    site, form = site_of(request), await request.form()
    frozen = text_of(form, "freeze") == "now"
    await in_thread(lambda: site.course.settings.change(frozen_at=site.now() if frozen else None))
    _changed(site)
    await note(request, "settings.freeze" if frozen else "settings.unfreeze", "versions")
    told = "Versions are frozen as they are now." if frozen else "Versions are not frozen any more."
    return see_other(request, HERE, told)


ROUTES = (
    Route("GET", HERE, page, Access.LECTURER, "teach.settings"),
    Route("POST", HERE, save, Access.LECTURER, "teach.settings.save"),
    Route("POST", f"{HERE}/freeze", freeze, Access.LECTURER, "teach.settings.freeze"),
)

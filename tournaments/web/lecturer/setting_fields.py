"""The settings as a form: a title, an input and an explanation for each.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from referee.games.catalog import DEFAULT_GAME
from referee.sandbox.detection import MODES
from tournaments.course.settings import Settings


@dataclass(frozen=True)
class SettingField:
    """Form input of one setting."""

    name: str
    label: str
    hint: str = ""
    kind: str = "text"
    """An input's type, or ``choice`` or ``words``."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values with their labels."""
    step: str | None = None
    """Step of a number input."""

    @property
    def attributes(self) -> dict[str, str]:
        """HTML attributes of the input, beside name and type."""
        return {} if self.step is None else {"step": self.step}


@dataclass(frozen=True)
class Group:
    """Settings that belong together."""

    title: str
    fields: tuple[SettingField, ...]


def _number(name: str, label: str, hint: str = "", step: str = "1") -> SettingField:
    return SettingField(name, label, hint, "number", step=step)


def _box(name: str, label: str, hint: str = "") -> SettingField:
    return SettingField(name, label, hint, "checkbox")


GROUPS = (
    Group(
        "The course",
        (
            SettingField("title", "Title", "Above every page."),
            SettingField(
                "game",
                "Game",
                f"What is played on the practice ladder and in checks: a preset such as {DEFAULT_GAME}, or a "
                "spec text; kalarena games lists them.",
            ),
            SettingField(
                "time_zone",
                "Time zone",
                "Of the deadline, of days and of quiet hours, as in Europe/Berlin.",
            ),
        ),
    ),
    Group(
        "Time control",
        (
            _number("move_s", "Seconds per move", "Empty: no limit per move.", "any"),
            _number("total_s", "Seconds for all moves of a game", "Empty: no such limit.", "any"),
            _number("increment_s", "Seconds added after each move", "To the limit for all moves.", "any"),
        ),
    ),
    Group(
        "Submissions",
        (
            _box("uploads_open", "Uploads are open"),
            SettingField(
                "deadline",
                "Deadline",
                "An upload at this moment still counts, a later one is refused. Empty: none.",
                "datetime-local",
            ),
            SettingField(
                "frozen_at",
                "Frozen since",
                "Tournaments of frozen versions take what was submitted until then; it refuses no upload. "
                "Empty: the deadline, once it is over.",
                "datetime-local",
            ),
            _number("uploads_per_day", "Uploads of a team per day", "Empty: as many as they like."),
            _number("uploads_total", "Uploads of a team in all", "Empty: as many as they like."),
            _number("upload_mb", "Largest upload in MiB", step="any"),
        ),
    ),
    Group(
        "Who sees what",
        (
            SettingField(
                "standings_for",
                "Visitors, who are not signed in, see",
                kind="choice",
                choices=(
                    ("nobody", "nothing but the sign-in page"),
                    ("anonymous", "standings and games with pseudonyms"),
                    ("named", "standings and games with the teams' names"),
                ),
            ),
            _box("students_see_names", "Students see the names of other teams", "Else pseudonyms."),
        ),
    ),
    Group(
        "Practice ladder",
        (
            _box("practice_on", "Practice games are played"),
            _number(
                "practice_places",
                "Practice games at a time",
                "At most; checks and tournaments always go first. Empty: as many as the server has places.",
            ),
            SettingField("quiet_from", "No practice from", "Both times, or neither.", "time"),
            SettingField("quiet_to", "No practice until", "", "time"),
            SettingField(
                "references",
                "Reference players",
                "Who plays along, such as ladder:3 ladder:7, with spaces between them.",
                "words",
            ),
        ),
    ),
    Group(
        "Sandbox and limits",
        (
            SettingField(
                "sandbox_mode",
                "Sandbox",
                "required: no bot runs unless it is held by the sandbox. The others are for trying out on "
                "your own machine alone.",
                "choice",
                tuple((mode, mode) for mode in sorted(MODES)),
            ),
            _number("memory_mb", "Memory of a bot in MiB"),
            _number("processes", "Processes and threads of a bot"),
            _number(
                "check_total_s",
                "Seconds for a whole check",
                "The build before it may take as long, and two minutes at most.",
                "any",
            ),
        ),
    ),
)
"""All settings; a test compares them with Settings."""

FIELDS = tuple(field for group in GROUPS for field in group.fields)


def values_of(settings: Settings) -> dict[str, str]:
    """Return the value of each input of the form; a ticked box has ``true``."""
    return {name: _shown(value, settings) for name, value in settings.model_dump().items()}


def _shown(value: Any, settings: Settings) -> str:
    match value:
        case None | False:
            return ""
        case True:
            return "true"
        case float():
            return f"{value:g}"
        case datetime():
            return f"{value.astimezone(settings.zone):%Y-%m-%dT%H:%M:%S}".removesuffix(":00")
        case list():
            return " ".join(value)
    return str(value)


def changes(before: Settings, after: Settings) -> dict[str, Any]:
    """Return the changed settings for the journal: name -> [before, after]."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return {name: [old[name], new[name]] for name in new if old[name] != new[name]}


def given_values(form: Mapping[str, str]) -> dict[str, str]:
    """Return the submitted values of this form's inputs."""
    return {field.name: form[field.name] for field in FIELDS if field.name in form}

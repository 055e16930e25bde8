"""The lecturer's settings: their validation, their storage, and the deadlines that follow from them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import TimeControl
from tests.support.courses import FAST_PASSWORDS, NOW, after
from tournaments.course.course import Course
from tournaments.course.settings import (
    Settings,
    SettingsError,
    day_of,
    frozen_moment,
    is_quiet,
    moment_text,
    settings_of,
    settings_of_form,
)
from tournaments.course.upload_limits import may_upload
from tournaments.database.base import Connections, Location, StoreError

BERLIN = "Europe/Berlin"


# Validation


def test_the_defaults_are_settings() -> None:
    settings = Settings()
    assert settings_of({}) == settings
    assert settings_of(json.loads(settings.model_dump_json())) == settings
    assert settings.control() == TimeControl(move_s=10.0)
    assert settings.references == ["ladder:1", "ladder:3", "ladder:5", "ladder:7"]
    assert settings.sandbox_mode == "required"


FORM = {
    "title": " Games  2026 ",
    "game": "manchester",
    "move_s": "",
    "total_s": "60",
    "increment_s": "0.5",
    "uploads_open": "on",
    "deadline": "2026-07-01T18:00",
    "frozen_at": "",
    "uploads_per_day": "5",
    "uploads_total": " ",
    "upload_mb": "7.5",
    "standings_for": "anonymous",
    "practice_places": "",
    "quiet_from": "22:00",
    "quiet_to": "06:30",
    "time_zone": BERLIN,
    "references": "ladder:1, ladder:10\r\nrandom:7",
    "sandbox_mode": "auto",
    "memory_mb": "256",
    "processes": "32",
    "check_total_s": "90",
}


def test_a_form_becomes_settings() -> None:
    assert settings_of_form(FORM) == Settings(
        title="Games 2026",
        move_s=None,
        total_s=60,
        increment_s=0.5,
        uploads_open=True,
        deadline=datetime(2026, 7, 1, 16, 0, tzinfo=UTC),
        uploads_per_day=5,
        upload_mb=7.5,
        standings_for="anonymous",
        students_see_names=False,  # boxes that are not ticked send nothing
        practice_on=False,
        quiet_from="22:00",
        quiet_to="06:30",
        time_zone=BERLIN,
        references=["ladder:1", "ladder:10", "random:7"],
        sandbox_mode="auto",
        memory_mb=256,
        processes=32,
        check_total_s=90,
    )


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("title", "", "title: the course's title is missing"),
        ("title", "a\0b", "title: the course's title 'a\\x00b' has characters that do not show"),
        ("title", 7, "title: must be a text, not 7"),
        ("game", "chess", "game: no game 'chess'"),
        ("move_s", "soon", "move_s: must be a number, not 'soon'"),
        ("move_s", 0, "move_s: must be greater than 0, not 0"),
        ("move_s", "nan", "move_s: must be a finite number"),
        ("total_s", 1e9, "total_s: must be less than or equal to 86400"),
        ("increment_s", 1, "an increment needs a limit per game"),
        ("deadline", "soon", "deadline: must be a day and a time, as 2026-01-31T18:00, not 'soon'"),
        ("deadline", "1750000000", "deadline: must be a day and a time"),
        ("deadline", "0001-01-01T00:00", "deadline: must be in the years from 2000 to 2200, not in 1"),
        ("frozen_at", "9999-12-31T23:59:59-12:00", "frozen_at: must be in the years from 2000 to 2200"),
        ("uploads_per_day", 0, "uploads_per_day: must be greater than or equal to 1"),
        ("uploads_total", 2.5, "uploads_total: must be a whole number, not 2.5"),
        ("upload_mb", 0, "upload_mb: must be greater than 0"),
        ("upload_mb", "inf", "upload_mb: must be "),
        ("standings_for", "all", "standings_for: must be 'nobody', 'anonymous' or 'named', not 'all'"),
        ("practice_places", 1000, "practice_places: must be less than or equal to 256"),
        ("quiet_from", "22:00", "quiet_from and quiet_to: give two different times, or neither"),
        ("quiet_to", "24:00", "quiet_to: must be a time from 00:00 to 23:59, not '24:00'"),
        ("time_zone", "Berlin", "time_zone: there is no time zone 'Berlin'"),
        ("time_zone", "../../etc/passwd", "time_zone: there is no time zone"),
        ("time_zone", "Europe", "time_zone: there is no time zone 'Europe'"),
        ("time_zone", "", "time_zone: there is no time zone ''"),
        (
            "references",
            ["laddr:5"],
            "references: there is no reference player 'laddr:5'; did you mean 'ladder'?",
        ),
        ("references", ["ladder"], "references: 'ladder'"),
        ("references", ["ladder:99"], "references: 'ladder:99'"),
        ("references", ["python3 bot.py"], "references: there is no reference player 'python3 bot.py'"),
        ("references", "ladder:1 ladder:1", "references: 'ladder:1' is there twice"),
        ("references", [f"random:{n}" for n in range(21)], "references: at most 20 references, not 21"),
        ("sandbox_mode", "of", "sandbox_mode: must be one of required, auto, off, not 'of'"),
        (
            "embed_origins",
            "www.example.org",
            "embed_origins: 'www.example.org' is no origin: write it as https://",
        ),
        ("embed_origins", "https://a.example/page", "embed_origins: 'https://a.example/page' is no origin"),
        ("embed_origins", "https://a.example;", "embed_origins: 'https://a.example;' is no origin"),
        ("embed_origins", "https://*", "embed_origins: 'https://*' is no origin"),
        ("embed_origins", "'self'", "embed_origins: \"'self'\" is no origin"),
        ("embed_origins", [f"https://a{n}.example" for n in range(21)], "embed_origins: at most 20 "),
        ("memory_mb", 1, "memory_mb: must be greater than or equal to 16"),
        ("processes", "x", "processes: must be a whole number, not 'x'"),
        ("check_total_s", -1, "check_total_s: must be greater than 0"),
        ("practice_on", "perhaps", "practice_on: must be true or false, not 'perhaps'"),
        ("uploads_per_day", "9" * 5000, "uploads_per_day: must be a whole number"),
        ("uploads_opne", True, "uploads_opne: unknown key; did you mean 'uploads_open'?"),
    ],
)
def test_invalid_settings(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(SettingsError) as error:
        settings_of({name: value})
    (where,) = error.value.problems
    assert where in (name, "")
    assert str(error.value).startswith(sentence)
    assert str(error.value).isprintable()


def test_origins_are_written_as_browsers_compare_them() -> None:
    text = "https://WWW.Example.org/ http://127.0.0.1:8080, https://www.example.org"
    assert settings_of({"embed_origins": text}).embed_origins == [
        "https://www.example.org",
        "http://127.0.0.1:8080",
    ]


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as error:
        settings_of_form({**FORM, "title": "", "memory_mb": "much", "time_zone": "Mars", "deadline": "x"})
    assert list(error.value.problems) == ["title", "time_zone", "deadline", "memory_mb"]
    assert len(str(error.value).splitlines()) == 4


JSON: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()) | st.just({})
)


@given(st.dictionaries(st.sampled_from(list(Settings.model_fields)), JSON, min_size=1))
def test_any_values_are_settings_or_an_error(values: dict[str, Any]) -> None:
    try:
        settings = settings_of(values)
    except SettingsError:
        return
    assert settings_of(json.loads(settings.model_dump_json())) == settings
    settings.control()


# Storage


def test_settings_are_stored(place: Location, course: Course) -> None:
    assert course.settings.load() == Settings()
    for settings in (settings_of_form(FORM), Settings()):
        course.settings.save(settings)
        assert course.settings.load() == settings
    with Course(place, FAST_PASSWORDS) as other:
        other.settings.save(settings_of_form(FORM))
    assert course.settings.load() == settings_of_form(FORM)


def test_some_settings_are_changed(course: Course) -> None:
    course.settings.change(deadline=after(days=3), title="Games")
    changed = course.settings.change(uploads_open=False)
    assert changed == Settings(deadline=after(days=3), title="Games", uploads_open=False)
    with pytest.raises(SettingsError, match="upload_mb"):
        course.settings.change(upload_mb=-1, uploads_open=True)
    assert course.settings.load() == changed


def test_stored_settings_that_are_invalid(place: Location, course: Course) -> None:
    course.settings.save(Settings())
    with Connections(place) as connections, connections.writing() as connection:
        connection.exec_driver_sql("""UPDATE setting SET content = '{"title": ""}'""")
    with pytest.raises(StoreError, match="settings cannot be used: title") as error:
        course.settings.load()
    assert error.value.is_ours


# Deadlines

USED_UP = "and yours are used up: the next day begins 2026-03-03 00:00 (Europe/Berlin)."


@pytest.mark.parametrize(
    ("rules", "now", "today", "before", "sentence"),
    [
        ({}, NOW, 99, 99, None),
        ({"uploads_open": False}, NOW, 0, 0, "Uploads are closed."),
        ({"deadline": NOW}, NOW, 0, 0, None),
        ({"deadline": NOW}, after(microseconds=1), 0, 0, "The deadline was 2026-03-02 12:00 (UTC)."),
        (
            {"deadline": NOW, "time_zone": BERLIN},
            after(days=1),
            *(0, 0, "The deadline was 2026-03-02 13:00 (Europe/Berlin)."),
        ),
        ({"frozen_at": NOW}, after(days=1), 0, 0, None),
        ({"uploads_total": 3}, NOW, 0, 2, None),
        ({"uploads_total": 3}, NOW, 0, 3, "A team has 3 uploads in all, and yours are used up."),
        ({"uploads_per_day": 2}, NOW, 1, 99, None),
        ({"uploads_per_day": 1, "time_zone": BERLIN}, NOW, 1, 1, f"A team has 1 upload a day, {USED_UP}"),
        ({"uploads_per_day": 2, "time_zone": BERLIN}, NOW, 2, 2, f"A team has 2 uploads a day, {USED_UP}"),
    ],
)
def test_reasons_why_a_team_may_not_upload(
    rules: dict[str, Any], now: datetime, today: int, before: int, sentence: str | None
) -> None:
    assert may_upload(Settings(**rules), now, today, before) == sentence


MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
ZONES = st.sampled_from(["UTC", BERLIN, "Asia/Kolkata", "America/New_York", "Pacific/Kiritimati"])


@given(MOMENTS, ZONES)
def test_each_moment_has_one_day(moment: datetime, zone: str) -> None:
    settings = Settings(time_zone=zone)
    begins, ends = day_of(settings, moment)
    assert begins <= moment < ends
    assert timedelta(hours=22) < ends - begins < timedelta(hours=26)
    assert day_of(settings, begins) == day_of(settings, ends - timedelta(microseconds=1)) == (begins, ends)
    assert day_of(settings, ends)[0] == ends
    assert moment_text(settings, begins).endswith(f" 00:00 ({zone})")


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 23), (10, 25, 25)])
def test_days_on_which_the_clocks_change(month: int, day: int, hours: int) -> None:
    begins, ends = day_of(Settings(time_zone=BERLIN), datetime(2026, month, day, 12, tzinfo=UTC))
    assert ends - begins == timedelta(hours=hours)


def test_the_moment_at_which_versions_are_frozen() -> None:
    assert frozen_moment(Settings(), NOW) is None
    assert frozen_moment(Settings(deadline=after(hours=1)), NOW) is None
    assert frozen_moment(Settings(deadline=NOW), NOW) == NOW
    both = Settings(deadline=NOW, frozen_at=after(days=1))
    assert frozen_moment(both, after(hours=1)) is None
    assert frozen_moment(both, after(days=2)) == after(days=1)
    assert frozen_moment(Settings(deadline=NOW, frozen_at=after(days=-1)), NOW) == after(days=-1)


@pytest.mark.parametrize(
    ("begins", "ends", "quiet", "loud"),
    [
        ("08:00", "12:30", ["08:00", "12:29"], ["07:59", "12:30", "00:00"]),
        ("22:00", "06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "21:59", "12:00"]),
        ("00:00", "00:01", ["00:00"], ["00:01", "23:59"]),
        ("23:59", "00:00", ["23:59"], ["00:00", "23:58"]),
    ],
)
def test_quiet_hours(begins: str, ends: str, quiet: list[str], loud: list[str]) -> None:
    settings = Settings(quiet_from=begins, quiet_to=ends, time_zone=BERLIN)
    for clock in quiet + loud:
        moment = datetime.fromisoformat(f"2026-02-02T{clock}+01:00")
        assert is_quiet(settings, moment) is (clock in quiet), clock
    assert not is_quiet(Settings(), NOW)


def test_a_time_that_the_clocks_leave_out_is_refused() -> None:
    with pytest.raises(SettingsError) as error:
        settings_of_form({**FORM, "deadline": "2026-03-29T02:30"})
    assert error.value.problems == {
        "deadline": "deadline: 2026-03-29 02:30 is left out in Europe/Berlin, where clocks are put forward: "
        "choose another time"
    }
    for text, utc_hour in (("2026-03-29T01:59", 0), ("2026-03-29T03:00", 1), ("2026-10-25T02:30", 0)):
        deadline = settings_of_form({**FORM, "deadline": text}).deadline
        assert deadline is not None
        assert deadline.hour == utc_hour
    assert Settings(time_zone=BERLIN, deadline="2026-03-29T02:30+01:00").deadline is not None

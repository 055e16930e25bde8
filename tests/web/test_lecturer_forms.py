"""The forms of settings and tournaments: complete, and with their values unchanged (pure)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import make_summary
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.tournament_file import WITHOUT_ROUNDS
from tournaments.course.settings import Settings, SettingsError, settings_of_form
from tournaments.server.competitions.entrants import Candidate
from tournaments.server.competitions.tournament_spec import TournamentSpec
from tournaments.web.lecturer.forms import labelled
from tournaments.web.lecturer.new_tournament import (
    ENTRANTS,
    default_values,
    errors_by_field,
    number_of,
    sections,
    spec_of_form,
)
from tournaments.web.lecturer.preview import in_words, mean_game_s, preview_of
from tournaments.web.lecturer.settings import FIELDS, changes, values_of

BOTS = [Candidate(f"bot {number}") for number in range(1, 5)]


def test_the_form_has_every_setting_once() -> None:
    names = [field.name for field in FIELDS]
    assert sorted(names) == sorted(Settings.model_fields)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "title": st.sampled_from(["A course", "Ünïcode"]),
            "move_s": st.sampled_from([0.5, 10.0, 3600.0]),
            "uploads_open": st.booleans(),
            "deadline": st.sampled_from([None, "2026-03-29T01:30:15+00:00", "2026-10-25T00:30:00+00:00"]),
            "time_zone": st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
            "uploads_total": st.sampled_from([None, 1, 99]),
            "references": st.sampled_from([[], ["ladder:1"], ["ladder:2", "greedy"]]),
            "quiet_from": st.just("22:00"),
            "quiet_to": st.just("06:00"),
        },
    ).filter(lambda values: ("quiet_from" in values) == ("quiet_to" in values))
)
def test_what_the_form_shows_is_what_it_saves(values: dict[str, object]) -> None:
    settings = Settings.model_validate(values)
    shown = {name: text for name, text in values_of(settings).items() if text or name not in BOXES}
    assert changes(settings, settings_of_form(shown)) == {}


BOXES = {field.name for field in FIELDS if field.kind == "checkbox"}
"""A box that is not ticked sends nothing."""


def test_the_form_has_every_parameter_of_each_format() -> None:
    for kind, table in FORMAT_TABLES.items():
        assert table.ABOUT
        fields = [field for section in sections(kind) for field in section.fields]
        names = {field.name.removeprefix("format.") for field in fields if field.name.startswith("format.")}
        assert names == set(table.model_fields) - {"kind"}, kind
        assert [field.name for field in fields].count("rounds") == (kind not in WITHOUT_ROUNDS)


def test_every_field_has_a_label() -> None:
    fields = [field for kind in FORMAT_TABLES for section in sections(kind) for field in section.fields]
    assert [field.name for field in (*FIELDS, *fields) if field.label == field.name] == []


@pytest.mark.parametrize("kind", FORMAT_TABLES)
def test_the_form_with_its_defaults_is_a_tournament(kind: str) -> None:
    values = default_values(kind, Settings()) | {"title": "Cup", "format.challengers": "bot 1"}
    spec = TournamentSpec.read(spec_of_form(values, []))
    assert spec.format.kind == kind
    assert spec.time.control() == Settings().control()
    defaults = {name: field.default for name, field in FORMAT_TABLES[kind].model_fields.items()}
    for name, value in defaults.items():
        if name != "challengers":
            assert getattr(spec.format, name) == value
    bots = BOTS[:2] if kind == "sprt" else BOTS
    found = preview_of(spec, bots, [], 2)
    assert list(found.names) == [bot.name for bot in bots]
    assert found.games > 0
    assert found.seconds is None
    assert "unknown" in found.lasts


def test_openings_take_the_tournament_s_seed() -> None:
    values = default_values("round-robin", Settings()) | {"title": "Cup", "openings.plies": "2", "seed": "5"}
    spec = TournamentSpec.read(spec_of_form(values, []))
    assert spec.openings is not None
    assert (spec.openings.plies, spec.openings.seed) == (2, 5)


@pytest.mark.parametrize("forged", ["9" * 5000, "x", "-1", ""])
def test_a_forged_version_is_the_number_of_none(forged: str) -> None:
    values = default_values("round-robin", Settings()) | {"title": "Cup", "bots": "chosen"}
    assert TournamentSpec.read(spec_of_form(values, [forged])).bots == [0]


@given(st.text(max_size=8))
def test_a_text_becomes_a_number_or_stays(text: str) -> None:
    found = number_of(text)
    assert found == text or isinstance(found, int | float)


def test_problems_are_shown_at_their_fields() -> None:
    problems = ["format.pairs: must be more", "title: too short", "bots: 1 would play"]
    assert errors_by_field(problems, ["title", "format.pairs"]) == {
        "format.pairs": "must be more",
        "title": "too short",
    }


@pytest.mark.parametrize(
    ("problem", "shown"),
    [
        ("seed: must be less", "Seed: must be less"),
        ("time.move_s: must be more", "Seconds per move: must be more"),
        ("seed and rounds: choose one", "Seed and Rounds: choose one"),
        ("format: groups = 9 with 8 bots: groups of 2", "Groups = 9 with 8 bots: groups of 2"),
        ("format: extra_pairs must be less", "More pairs if a match is level must be less"),
        ("bots: 1 would play", "Entrants: 1 would play"),
        ("no time control: choose one", "no time control: choose one"),
    ],
)
def test_problems_have_labels_of_fields(problem: str, shown: str) -> None:
    fields = [field for section in sections("groups") for field in section.fields]
    assert labelled(problem, (*fields, *ENTRANTS)) == shown


def test_a_label_within_a_sentence_is_in_quotation_marks() -> None:
    fields = [field for section in sections("sprt") for field in section.fields]
    labels = {field.name: field.label for field in fields}
    assert labelled("format: elo1 must be more than elo0, not 3 and 9", fields) == (
        f"{labels['format.elo1']} must be more than “{labels['format.elo0']}”, not 3 and 9"
    )


def test_the_times_of_quiet_are_named_as_in_the_form() -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of_form({**values_of(Settings()), "quiet_from": "22:00"})
    (problem,) = caught.value.problems.values()
    assert labelled(problem, FIELDS) == (
        "No practice from and No practice until: give two different times, or neither"
    )


def test_the_duration_is_estimated_from_practice_games_and_slots() -> None:
    values = default_values("round-robin", Settings()) | {"title": "Cup"}
    spec = TournamentSpec.read(spec_of_form(values, []))
    games = [make_summary("a", "b", 0, wall_us=(1_500_000, 400_000)) for _ in range(3)]
    assert mean_game_s(games) == pytest.approx(2.0)
    found = preview_of(spec, BOTS, games, 3)
    assert (found.games, found.slots, found.measured) == (12, 3, 3)
    assert found.seconds == pytest.approx(12 * 2.0 / 3)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59.4, "59 s"), (61, "1 min"), (3600, "1 h"), (7800, "2 h 10 min"), (3 * 86400, "3 days")],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words

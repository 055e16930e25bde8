"""Form of a new tournament: the fields of each format, and their conversion to a specification.  Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tournaments.analysis.rankings import PRESETS
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.tournament_file import WITHOUT_ROUNDS
from tournaments.course.settings import Settings
from tournaments.server.competitions.tournament_spec import CURRENT
from tournaments.web.lecturer.setting_fields import SettingField

CHOSEN = "chosen"
"""Form value for the ticked versions, in place of ``current`` and ``frozen``."""

FORMATS_TOLD: dict[str, str] = {
    "round-robin": "Everybody meets everybody. The fairest: n bots play n (n - 1) games a round.",
    "gauntlet": "Some bots, the challengers, meet all others, and not one another.",
    "swiss": "In each round everybody meets somebody with as many points. For many bots.",
    "knockout": "Who loses a match is out. For a show.",
    "groups": "Round robins in groups, then a final of the best.",
    "ladder": "Neighbours on a ladder meet, and the better one goes up.",
    "sprt": "Two bots play until it is decided whether the first is stronger.",
    "placement": "One bot finds its place among the others, who are in order of strength, the weakest first.",
}
"""Description of every format; a test compares them with the catalog."""

_PAIRS = SettingField(
    "format.pairs", "Pairs of games in a match", "A pair: each moves first once.", "number", step="1"
)
_EXTRA_PAIRS = SettingField(
    "format.extra_pairs", "More pairs if a match is level", "At most.", "number", step="1"
)
_THIRD_PLACE = SettingField("format.third_place", "A match for the third place", kind="checkbox")

FORMAT_FIELDS: dict[str, tuple[SettingField, ...]] = {
    "round-robin": (),
    "gauntlet": (
        SettingField(
            "format.challengers",
            "Challengers",
            "Names of teams or reference players, with commas between them.",
        ),
    ),
    "placement": (
        SettingField("format.challengers", "Challenger", "The name of a team or a reference player."),
        _PAIRS,
    ),
    "swiss": (
        _PAIRS,
        SettingField(
            "format.scoring",
            "Points are given for",
            "Who meets whom follows from these points.",
            kind="choice",
            choices=(
                ("games", "games"),
                ("match", "matches: 2 for one that is won, 1 for one that is drawn"),
            ),
        ),
    ),
    "ladder": (_PAIRS,),
    "knockout": (
        _PAIRS,
        _EXTRA_PAIRS,
        _THIRD_PLACE,
        SettingField(
            "format.seeding",
            "Seeding",
            kind="choice",
            choices=(("order", "in the order of the bots"), ("random", "by lot")),
        ),
    ),
    "groups": (
        SettingField("format.groups", "Groups", kind="number", step="1"),
        SettingField("format.advance", "Bots of each group in the final", kind="number", step="1"),
        SettingField(
            "format.final",
            "Final",
            kind="choice",
            choices=(("knockout", "knockout"), ("round-robin", "round robin")),
        ),
        _PAIRS,
        _EXTRA_PAIRS,
        _THIRD_PLACE,
    ),
    "sprt": (
        SettingField("format.elo0", "Not stronger means at most, in Elo", kind="number", step="any"),
        SettingField("format.elo1", "Stronger means at least, in Elo", kind="number", step="any"),
        SettingField("format.alpha", "Error of saying stronger though it is not", kind="number", step="any"),
        SettingField("format.beta", "Error of saying not stronger though it is", kind="number", step="any"),
        SettingField("format.max_games", "Games at most", kind="number", step="2"),
        SettingField("format.batch", "Games in a batch", kind="number", step="2"),
    ),
}
"""Parameters of each format; a test compares them with the format's table."""


@dataclass(frozen=True)
class Section:
    """Fields that belong together."""

    title: str
    fields: tuple[SettingField, ...]


def sections(kind: str) -> tuple[Section, ...]:
    """Return the form's sections for a format, without the choice of entrants."""
    rounds = (
        SettingField("rounds", "Rounds", "Empty: as many as the format needs.", "number", step="1"),
    ) * (kind not in WITHOUT_ROUNDS)
    return (
        Section("Tournament", (SettingField("title", "Title", "Its name, also in its address."),)),
        Section("Format", (*rounds, *FORMAT_FIELDS[kind])),
        Section(
            "Game and time",
            (
                SettingField("game", "Game", "A preset, or a spec text; kalarena games lists them."),
                SettingField(
                    "time.move_s", "Seconds per move", "Empty: no limit per move.", "number", step="any"
                ),
                SettingField(
                    "time.game_s",
                    "Seconds for all moves of a game",
                    "Empty: no such limit.",
                    "number",
                    step="any",
                ),
                SettingField("time.increment_s", "Seconds added after each move", kind="number", step="any"),
                SettingField(
                    "openings.plies",
                    "Random opening moves",
                    "Each round begins from another position, which a pair plays from both sides. Without, "
                    "bots without chance play the same game again and again. Every bot must be able to take "
                    "openings. Empty: none.",
                    "number",
                    step="1",
                ),
            ),
        ),
        Section(
            "Table and more",
            (
                SettingField(
                    "ranking",
                    "The table is ordered by",
                    kind="choice",
                    choices=(
                        ("", "what fits the format"),
                        *((name, ", then ".join(criteria)) for name, criteria in PRESETS.items()),
                    ),
                ),
                SettingField(
                    "rating.anchor",
                    "Ratings are told from",
                    "The name of a team or a reference player: its rating is 0. Empty: the average is 0.",
                ),
                SettingField(
                    "seed",
                    "Seed",
                    "Decides what is drawn by lot: the same seed gives the same tournament.",
                    "number",
                    step="1",
                ),
                SettingField(
                    "concurrency",
                    "Games at a time",
                    "Empty: as many as the server has places.",
                    "number",
                    step="1",
                ),
            ),
        ),
    )


def default_values(kind: str, settings: Settings) -> dict[str, str]:
    """Return the initial values of the form."""
    table = FORMAT_TABLES[kind]
    values = {
        f"format.{name}": _shown(field.default)
        for name, field in table.model_fields.items()
        if name != "kind" and not field.is_required()
    }
    return values | {
        "title": "",
        "format": kind,
        "game": settings.game,
        "time.move_s": _shown(settings.move_s),
        "time.game_s": _shown(settings.total_s),
        "time.increment_s": _shown(settings.increment_s),
        "seed": "0",
        "bots": CURRENT,
        "references": "",
    }


def _shown(value: Any) -> str:
    match value:
        case None | False:
            return ""
        case True:
            return "true"
        case float():
            return f"{value:g}"
    return str(value)


def spec_of_form(form: Mapping[str, str], versions: Sequence[str]) -> dict[str, Any]:
    """Return the input for ``TournamentSpec.read``; an invalid number stays a text, which is then refused.

    ``versions`` are the ids of the ticked versions.
    """
    kind = form.get("format", "")
    spec: dict[str, Any] = {"title": form.get("title", "").strip(), "format": {"kind": kind}}
    asked = [field for section in sections(kind) for field in section.fields] if kind in FORMAT_FIELDS else []
    for field in asked:
        text = form.get(field.name, "").strip()
        outer, _, inner = field.name.rpartition(".")
        place = spec.setdefault(outer, {}) if outer else spec
        if field.kind == "checkbox":
            place[inner] = text != ""
        elif inner == "challengers":
            place[inner] = [name.strip() for name in text.split(",") if name.strip()]
        elif text:
            place[inner] = number_of(text) if field.kind == "number" else text
    if "openings" in spec:
        if spec["openings"]:
            spec["openings"]["seed"] = spec.get("seed", 0)
        else:
            del spec["openings"]
    chosen = form.get("bots", CURRENT)
    spec["bots"] = [int(text) for text in versions if text.isdecimal()] if chosen == CHOSEN else chosen
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


def by_field(problems: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the problems with single fields of the form, by field name."""
    told = {name: problem for problem in problems for name in names if problem.startswith(f"{name}: ")}
    return {name: problem.partition(": ")[2] for name, problem in told.items()}

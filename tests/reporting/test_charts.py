"""Charts of the report: from plain values to SVG."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tournaments.analysis.standing import Estimate
from tournaments.reporting.site import svg
from tournaments.reporting.site.charts import (
    LABEL_GAP,
    Race,
    RatingRow,
    TimeRow,
    bins,
    race_chart,
    rating_chart,
    spread,
    time_chart,
    time_histogram,
)
from tournaments.reporting.site.svg import duration, log_scale_for, scale_for, short
from tournaments.reporting.site.times import BotTimes, quantile

SVG = "{http://www.w3.org/2000/svg}"
NUMBERS = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")
NAMES = st.text(st.characters().filter(str.isprintable), min_size=1, max_size=40)


def parsed(chart: str) -> ET.Element:
    """A chart of which every number is one, and lies in the drawing."""
    root = ET.fromstring(chart)
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    for element in root.iter():
        for name in NUMBERS:
            if name in element.attrib:
                value = float(element.attrib[name])
                assert math.isfinite(value)
                assert -0.5 <= value <= max(width, height) + 0.5, ET.tostring(element)
        for point in element.attrib.get("points", "").split():
            assert all(math.isfinite(float(number)) for number in point.split(","))
    assert "nan" not in re.sub(r">[^<]*<|=\"[^\"]*\"", "", chart).lower()
    return root


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def times(*charged_us: int) -> BotTimes:
    return BotTimes(sorted(charged_us), None, None)


def test_ratings() -> None:
    rows = [
        RatingRow("one", Estimate(120.4, 20, 240), "bots/one.html"),
        RatingRow("two", Estimate(-120.4, -240, -20)),
    ]
    root = parsed(rating_chart(rows, ", average = 0"))
    dots = [float(dot.attrib["cx"]) for dot in root.iter(f"{SVG}circle")]
    assert dots[0] > dots[1]
    assert [element.attrib["href"] for element in root.iter(f"{SVG}a")] == ["bots/one.html"]
    assert {"one", "two", "120", "20 to 240", "Elo, average = 0"} <= set(texts(root))
    assert "\N{MINUS SIGN}120" in texts(root)


def test_without_data_there_is_no_chart() -> None:
    assert rating_chart([]) == race_chart(Race([], {})) == time_chart([]) == time_histogram([]) == ""
    assert race_chart(Race([1], {"one": [1.0], "two": [0.0]})) == ""
    assert time_chart([TimeRow("never moved", times())]) == ""


@settings(max_examples=30)
@example([("anchor", 1500.0, 0.0, 0.0)])
@given(st.lists(st.tuples(NAMES, st.floats(-4000, 4000), st.floats(0, 4000), st.floats(0, 4000)), min_size=1))
def test_any_ratings(rows: list[tuple[str, float, float, float]]) -> None:
    rated = [RatingRow(name, Estimate(value, value - low, value + high)) for name, value, low, high in rows]
    root = parsed(rating_chart(rated))
    assert len(list(root.iter(f"{SVG}circle"))) == len(rows)


@given(
    st.integers(2, 8).flatmap(
        lambda rounds: st.lists(
            st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=rounds, max_size=rounds),
            min_size=1,
            max_size=9,
        )
    )
)
def test_any_race(gained: list[list[float]]) -> None:
    points = {
        f"bot {number}": [sum(row[: end + 1]) for end in range(len(row))] for number, row in enumerate(gained)
    }
    race = Race(list(range(1, len(gained[0]) + 1)), points)
    behind = race.behind()
    assert all(value >= 0 for values in behind.values() for value in values)
    assert all(min(values[step] for values in behind.values()) == 0 for step in range(len(race.rounds) + 1))
    root = parsed(race_chart(race))
    lines = [line.attrib["class"] for line in root.iter(f"{SVG}polyline")]
    assert len(lines) == len(gained)
    assert sum("rest" not in look for look in lines) == min(len(gained), 5)


def test_a_bar_and_the_points_behind_the_leader() -> None:
    root = parsed(rating_chart([RatingRow("one", Estimate(0, -400, 800))]))
    bar = next(line for line in root.iter(f"{SVG}line") if line.attrib["class"] == "bar")
    dot = next(root.iter(f"{SVG}circle"))
    left, right, middle = (float(x) for x in (bar.attrib["x1"], bar.attrib["x2"], dot.attrib["cx"]))
    assert (middle - left) / (right - left) == pytest.approx(1 / 3, abs=0.01)
    race = Race([1, 2], {"one": [2.0, 2.0], "two": [1.0, 4.0]})
    assert race.behind() == {"one": [0.0, 0.0, 2.0], "two": [0.0, 1.0, 0.0]}
    assert {"one \N{MINUS SIGN}2", "two 0"} <= set(texts(parsed(race_chart(race))))
    assert [short(text, 3) for text in ("abc", "abcd")] == ["abc", "ab…"]


@given(st.lists(st.just(0.0) | st.floats(1e-9, 1e9), max_size=8))
@example([1e9, 999999999.9999999])  # neighbours among floats
def test_scales_have_all_values_and_round_ticks(values: list[float]) -> None:
    linear, logarithmic = scale_for(values, 100, 500), log_scale_for(values, 0, 100)
    assert all(100 - 1e-6 <= linear(value) <= 500 + 1e-6 for value in values)
    assert 2 <= len(linear.ticks()) <= 20
    assert linear.ticks() == sorted(set(linear.ticks()))
    assert logarithmic.ticks()[0] == logarithmic.low
    assert logarithmic.ticks()[-1] == pytest.approx(logarithmic.high)
    assert all(0 <= logarithmic(max(value, logarithmic.low)) <= 100 for value in values)


@given(st.lists(st.floats(0, 300), max_size=12))
def test_labels_do_not_lie_on_each_other(wanted: list[float]) -> None:
    assert spread([10, 200, 100], 0, 300) == [10, 200, 100]  # labels with room stay where they are
    places = spread(wanted, 0, 300)
    ordered = sorted(places)
    assert all(b - a >= LABEL_GAP - 1e-6 for a, b in pairwise(ordered))
    assert all(-1e-6 <= place <= 300 + 1e-6 for place in places)
    assert sorted(range(len(wanted)), key=lambda i: (wanted[i], i)) == sorted(
        range(len(wanted)), key=lambda i: places[i]
    )


def test_times() -> None:
    rows = [
        TimeRow("quick", times(10, 10, 20, 1000)),
        TimeRow("slow", times(2_000_000)),
        TimeRow("none", times()),
    ]
    root = parsed(time_chart(rows, limit_us=5_000_000))
    assert "none" not in texts(root)
    dots = [dot for dot in root.iter(f"{SVG}circle") if dot.attrib["class"] == "dot"]
    assert float(dots[0].attrib["cx"]) < float(dots[1].attrib["cx"])
    assert "limit of a move: 5 s" in [element.text for element in root.iter(f"{SVG}title")]
    # A limit far from all moves is left out.
    assert "limit" not in time_chart([TimeRow("quick", times(10))], limit_us=10_000_000)


@given(st.lists(st.integers(0, 10**8), min_size=1), st.none() | st.integers(1, 10**8))
def test_any_times(charged_us: list[int], limit_us: int | None) -> None:
    parsed(time_chart([TimeRow("bot", times(*charged_us))], limit_us))
    root = parsed(time_histogram(sorted(charged_us), limit_us))
    assert sum(bins(charged_us).values()) == len(charged_us)
    assert len([bar for bar in root.iter(f"{SVG}rect") if bar.attrib["class"] == "column"]) == len(
        bins(charged_us)
    )


@pytest.mark.parametrize(
    ("make", "hostile"),
    [
        (lambda name: rating_chart([RatingRow(name, Estimate(0, -1, 1))]), "<script>alert('1')</script>"),
        (lambda name: race_chart(Race([1, 2], {name: [1.0, 2.0]})), '"><b>&amp;'),
        (lambda name: time_chart([TimeRow(name, times(5))]), "]]><!--"),
    ],
)
def test_names_are_text(make: Callable[[str], str], hostile: str) -> None:
    root = parsed(make(hostile))
    assert any(hostile in (title.text or "") for title in root.iter(f"{SVG}title"))
    assert not list(root.iter(f"{SVG}script"))


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        *((None, "–"), (0, "0 µs"), (1, "1 µs"), (999, "999 µs"), (999.6, "1 ms"), (1500, "1.5 ms")),  # noqa: RUF001
        *((12_345, "12 ms"), (999_600, "1 s"), (2_500_000, "2.5 s"), (1e9, "1000 s")),
    ],
)
def test_durations(time_us: float | None, text: str) -> None:
    assert duration(time_us) == text


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.95, 10), (0.9, 9), (1.0, 10), (0.01, 1)])
def test_quantiles_are_values_that_occur(share: float, value: int) -> None:
    assert quantile(range(1, 11), share) == value
    assert quantile([], share) is None


def test_a_number_that_no_drawing_can_show_is_refused() -> None:
    with pytest.raises(ValueError, match="no chart can show nan"):
        svg.element("circle", cx=math.nan)

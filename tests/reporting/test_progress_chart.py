"""Chart of the ratings of a team's versions."""

from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.test_charts import NAMES, SVG, parsed, texts
from tournaments.analysis.standing import Estimate
from tournaments.reporting.site.progress_chart import Level, VersionRating, progress_chart


def test_a_version_that_is_stronger_is_higher_and_every_version_has_its_interval() -> None:
    versions = [
        VersionRating(1, Estimate(-50.0, -120.0, 10.0)),
        VersionRating(3, Estimate(80.4, 20.0, 150.0), "/my/versions/3"),
    ]
    root = parsed(progress_chart(versions, [Level("ladder:3", 30.0)]))
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.iter(f"{SVG}circle")]
    assert dots[0][0] < dots[1][0]
    assert dots[0][1] > dots[1][1]
    bars = [one for one in root.iter(f"{SVG}line") if one.attrib["class"] == "bar"]
    ends = [
        (float(one.attrib["y1"]), float(one.attrib["y2"]))
        for one in bars
        if one.attrib["x1"] == one.attrib["x2"]
    ]
    assert [low > dot[1] > high for (low, high), dot in zip(ends, dots, strict=True)] == [True, True]
    assert {"v1", "v3", "ladder:3 30"} <= set(texts(root))
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert "version 3: 80 Elo, 95 % interval 20 to 150" in titles
    assert [link.attrib["href"] for link in root.iter(f"{SVG}a")] == ["/my/versions/3"]


def test_without_versions_there_is_no_chart() -> None:
    assert progress_chart([], [Level("ladder:1", 0.0)]) == ""


def test_of_many_versions_the_newest_has_a_label() -> None:
    root = parsed(progress_chart([VersionRating(n, Estimate(n, n - 9, n + 9)) for n in range(1, 101)]))
    labels = [text for text in texts(root) if text.startswith("v") and text != "version"]
    assert labels[-1] == "v100"
    assert len(labels) <= 16


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(-4000, 4000), st.floats(0, 4000) | st.just(inf)), min_size=1, max_size=40),
    st.lists(st.tuples(NAMES, st.floats(-4000, 4000)), max_size=5),
)
def test_any_ratings_lie_in_the_drawing(
    ratings: list[tuple[float, float]], levels: list[tuple[str, float]]
) -> None:
    versions = [
        VersionRating(number, Estimate(value, value - width, value + width))
        for number, (value, width) in enumerate(ratings, 1)
    ]
    parsed(progress_chart(versions, [Level(*level) for level in levels]))

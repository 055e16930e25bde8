"""The report of a check as JSON, JUnit XML and text."""

import json
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest

from referee.games.plugins import GAMES_VARIABLE
from tests.support.paths import REPOSITORY_ROOT
from tournaments.checking.report import (
    WIDTH,
    Game,
    Item,
    Report,
    ReportError,
    Status,
    item_lines,
    junit_xml,
    shown_settings,
    summary_lines,
)

ITEMS = (
    Item("found", "", "Found", Status.PASSED, "as its bot.toml says"),
    Item("starts", "manchester", "Starts", Status.PASSED, "it took START after 20 ms", "", ("a detail",)),
    Item(
        "plays-first",
        "manchester",
        "Plays as South",
        Status.FAILED,
        "in the game as South against first_legal, it sent 'MOVE;\x1b[2J<&>': no",
        "print debug text to standard error",
        ("<- START;South", "-> MOVE;\x00"),
        ("first_legal-south",),
    ),
    Item("time", "manchester", "Time per move", Status.WARNING, "95% of the limit", "leave more"),
    Item("swap", "kalamala", "Swap", Status.SKIPPED, "kalamala has no swap"),
)
LOST = Game("first_legal-south", "as South", "plays-first", "lost", "debug", 12.5, "first_legal")
REPORT = Report(
    bot="a <bot>",
    command=("/usr/bin/python3", "bot.py"),
    digest="d1",
    games=("manchester", "kalamala"),
    control="10 s per move",
    sandbox="bubblewrap",
    items=ITEMS,
    played=(LOST,),
    started_at="2026-01-02T03:04:05+00:00",
    duration_s=1.25,
    numbers={"moves": 20.0},
    versions={"kalarena": "0.1.0"},
)


def test_json_is_read_back() -> None:
    view = json.loads(json.dumps(REPORT.to_json()))
    assert Report.from_json(view) == REPORT
    assert [view[key] for key in ("ok", "passed", "failed", "warning", "skipped")] == [False, 2, 1, 1, 1]
    assert view["items"][2]["status"] == "failed"
    old = json.loads(json.dumps(view))
    del old["items"][2]["games"]  # as in reports of earlier versions
    assert Report.from_json(old).items[2].games == ()
    view["items"][0]["status"] = "perhaps"
    with pytest.raises(ReportError, match="perhaps"):
        Report.from_json(view)


@pytest.mark.parametrize("view", [None, [], {}, {"schema": 99}, {"schema": 1}, {"schema": 1, "command": 3}])
def test_other_json_is_refused(view: object) -> None:
    with pytest.raises(ReportError):
        Report.from_json(view)


def test_a_report_without_a_failure_is_passed() -> None:
    assert not REPORT.passed
    assert [item.id for item in REPORT.failures] == ["plays-first"]
    assert replace(REPORT, items=(ITEMS[0], ITEMS[3], ITEMS[4])).passed


def test_a_check_that_our_host_did_not_complete_is_not_ok() -> None:
    whole = replace(REPORT, items=ITEMS[:2])
    broken = replace(whole, host_fault="no memory left")
    assert (whole.to_json()["ok"], broken.to_json()["ok"]) == (True, False)
    assert list(summary_lines(broken, "bot"))[1] == "NOT CHECKED: 2 passed; 1 game in 1.2 s"


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("/usr/bin/java", "Bot"), {"JAVA_TOOL_OPTIONS"}),
        (("./bot",), {"JAVA_TOOL_OPTIONS", "GOMAXPROCS"}),
    ],
)
def test_settings_are_those_of_the_runtime_if_the_command_names_it(
    command: tuple[str, ...], names: set[str]
) -> None:
    settings = {"JAVA_TOOL_OPTIONS": "-Xmx1m", "GOMAXPROCS": "2"}
    assert set(shown_settings(replace(REPORT, command=command, runtime_settings=settings))) == names


def test_junit_parses_and_counts() -> None:
    root = Xml.fromstring(junit_xml(REPORT))
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["manchester", "kalamala"]
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "0", "1"]
    assert [suite.get("tests") for suite in root] == ["4", "1"]
    failure = root.find(".//failure")
    assert failure is not None
    expected = r"in the game as South against first_legal, it sent 'MOVE;\x1b[2J<&>': no"
    assert failure.get("message") == expected
    assert failure.text == "To do: print debug text to standard error\n<- START;South\n-> MOVE;\\x00"
    assert {case.get("classname") for case in root.iter("testcase")} == {
        f"kalarena.check.{item.id}" for item in ITEMS
    }
    outputs = [each.text for each in root.iter("system-out")]
    assert "it took START after 20 ms\na detail" in outputs
    assert "warning: 95% of the limit\nTo do: leave more" in outputs


def test_a_fault_of_the_host_is_an_error_in_junit_and_no_failure() -> None:
    root = Xml.fromstring(junit_xml(replace(REPORT, host_fault="no memory left")))
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["6", "1", "1"]
    error = root.find(".//error")
    assert error is not None
    assert error.get("message") == "no memory left"


@pytest.mark.parametrize(
    ("marks", "begins"), [(True, "\u2713\u2717!\u2013"), (False, ("pass", "FAIL", "warn", "skip"))]
)
def test_text_fits_a_terminal_and_is_printable(marks: bool, begins: tuple[str, ...]) -> None:
    order = [Status.PASSED, Status.FAILED, Status.WARNING, Status.SKIPPED]
    for item in ITEMS:
        lines = list(item_lines(item, marks=marks))
        assert all(len(line) <= WIDTH and line.isprintable() for line in lines)
        assert lines[0].startswith(begins[order.index(item.status)])
    # Details of items that passed are for -v.
    assert not any("a detail" in line for line in item_lines(ITEMS[1]))
    assert any("a detail" in line for line in item_lines(ITEMS[1], verbose=True))
    assert any("<- START;South" in line for line in item_lines(ITEMS[2]))


def test_the_summary_ends_with_the_next_command() -> None:
    lines = list(summary_lines(REPORT, "my bot"))
    assert lines[1] == "FAILED: 2 passed, 1 failed, 1 warning, 1 skipped; 1 game in 1.2 s"
    assert lines[-1] == "Next: kalarena play 'my bot' first_legal -v"
    passed = replace(REPORT, items=ITEMS[:2])
    assert list(summary_lines(passed, "bot"))[-1] == "Next: kalarena gauntlet bot"
    second = replace(REPORT.played[0], item="plays-second", opponent="random:7")
    other = replace(REPORT, played=(second,), games=("bga",), items=(replace(ITEMS[2], game="bga"),))
    assert list(summary_lines(other, "bot"))[-1] == "Next: kalarena play random:7 bot --game bga -v"
    lines = list(summary_lines(REPORT, "bot", options=" --move-time 0.5 --sandbox off"))
    assert lines[-1] == "Next: kalarena play bot first_legal --move-time 0.5 --sandbox off -v"
    broken = list(summary_lines(replace(REPORT, host_fault="no memory left"), "bot"))
    assert "no memory left" in broken[-1]


@pytest.mark.usefixtures("game_catalog")
def test_no_gauntlet_is_named_for_a_game_without_reference_players(monkeypatch: pytest.MonkeyPatch) -> None:
    games = REPOSITORY_ROOT / "tournaments" / "examples" / "games"
    monkeypatch.setenv(GAMES_VARIABLE, str(games / "oware.py"))
    passed = replace(REPORT, items=ITEMS[:2], games=("oware",))
    assert list(summary_lines(passed, "bot"))[-1].startswith("PASSED: ")


def test_the_next_command_has_the_game_and_the_protocol() -> None:
    passed = replace(REPORT, items=ITEMS[:1], games=("bga", "manchester"), played=())
    failed = replace(ITEMS[2], game="kalamala")
    not_found = replace(ITEMS[0], status=Status.FAILED)
    options = "--game kalamala --protocol kgp"
    for report, expected in (
        (passed, "gauntlet bot --game bga --protocol kgp"),
        (replace(REPORT, items=(ITEMS[0], failed)), f"play bot first_legal {options} -v"),
        # An item can fail without a lost game.
        (replace(REPORT, items=(ITEMS[0], failed), played=()), f"play bot first_legal {options} -v"),
        (replace(REPORT, items=(not_found,)), "play bot first_legal --protocol kgp -v"),
    ):
        assert list(summary_lines(report, "bot", "kgp"))[-1] == f"Next: kalarena {expected}"
    assert list(summary_lines(passed, "bot", "manchester"))[-1] == "Next: kalarena gauntlet bot --game bga"

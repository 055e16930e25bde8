"""The picture of a knockout's bracket, at each moment of the tournament."""

import re
from xml.etree import ElementTree as Xml

import pytest

from tests.support.schedules import better_wins, bots
from tournaments.reporting.site.bracket_chart import OPEN, bracket_chart, bracket_of
from tournaments.schedule.formats.groups import Groups
from tournaments.schedule.formats.knockout import Knockout
from tournaments.schedule.formats.round_robin import RoundRobin
from tournaments.schedule.pairing import History, Result

NAMES = [f"Bot <{number}>" for number in range(9)]


def drawn(schedule: Knockout, results: dict[str, Result]) -> str:
    history = History(results)
    bracket = bracket_of(schedule, history)
    assert bracket is not None
    return bracket_chart(bracket, history, NAMES, lambda name: f"bots/{len(name)}.html")


def texts(markup: str) -> list[str]:
    return [found.text or "" for found in Xml.fromstring(markup).iter() if found.tag.endswith("}text")]


@pytest.mark.parametrize("count", [2, 5, 8])
def test_it_is_drawn_at_every_moment(count: int) -> None:
    schedule = Knockout(bots(count))
    results: dict[str, Result] = {}
    while due := schedule.due(History(results)):
        words = texts(drawn(schedule, results))
        assert words.count("Final") == 1
        assert set(NAMES[:count]) <= set(words)
        results[due[0].key] = better_wins(due[0])
    end = drawn(schedule, results)
    assert OPEN not in texts(end)
    assert re.findall(r"<title>([^<]*), goes on</title>", end)
    assert ("Third place" in texts(end)) is (count > 3)


def test_winners_of_open_rounds_are_in_the_next_one() -> None:
    schedule = Knockout(bots(4))
    first, back = (game for game in schedule.pairings(History()) if {game.first, game.second} == {0, 3})
    results = {game.key: better_wins(game) for game in (first, back)}
    markup = drawn(schedule, results)
    assert texts(markup).count("Bot <0>") == 2  # of the semi-final, and of the final
    assert "Bot &lt;0&gt;, 2 points, goes on" in markup
    assert "Bot &lt;3&gt;, 0 points, is out" in markup
    assert texts(markup).count(OPEN) == 1


def test_other_formats_have_none() -> None:
    assert bracket_of(RoundRobin(bots(4), 1), History()) is None
    assert bracket_of(Groups(bots(4), rounds=1), History()) is None  # until the groups are decided
    assert bracket_chart(Knockout(bots(1)).bracket, History(), NAMES, str) == ""

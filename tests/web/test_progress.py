"""Progress of a team's bot: ratings of all its versions, and who sees them."""

import re
from pathlib import Path

import pytest

from tests.support.courses import add_qualified
from tests.web.played_course import REFERENCE, Played, open_played, played_game
from tournaments.course.model import Version
from tournaments.reporting.site.words import TO
from tournaments.web.views.progress import MOST_LEVELS

OLD = "Team 1 v1"
NEW = "Team 1 v2"


def replace_version(played: Played, games: int = 4) -> Version:
    """Let version 2 of Team 1 take the place of version 1 on the ladder, and play."""
    version = played.qualify(played.add_version())
    played.world.course.competitions.enter(played.practice.id, NEW, version.id, None)
    names = played.service.tournaments.practice[played.practice.id]
    names[names.index(OLD)] = NEW
    store = played.service.tournaments.stores[played.practice.id]
    for number in range(games):
        both = (NEW, "Team 2 v1") if number % 2 else (REFERENCE, NEW)
        store.add(played_game(f"p{900 + number:07d}-1", *both, number), 1, f"p{900 + number:07d}")
    return version


def progress_in(page: str) -> str:
    found = re.search(r'<section id="progress".*?</section>', page, re.DOTALL)
    assert found, "the page has no part about progress"
    return found[0]


@pytest.mark.parametrize("role", ["student", "other", "lecturer", "visitor"])
async def test_every_version_that_has_played_has_a_rating_with_its_interval(
    played: Played, role: str
) -> None:
    played.show("named")
    replace_version(played)
    shown = progress_in(await played.world.page(role, "/bots/1"))
    chart, _, tables = shown.partition("</svg>")
    for number in (1, 2):
        words = re.search(rf"version {number}: (\S+) Elo, 95 % interval ([^< ]+ to [^< ]+)<", chart)
        assert words
        row = re.search(rf'<tr><th scope="row">version {number}\b.*?</tr>', tables)
        assert row
        assert f">{words[1]}</td>" in row[0]
        assert f">{words[2]}</td>" in row[0]
    assert "plays" in tables.partition("version 1")[0]
    difference = r'data-label="relative to version 2"[^>]*>\S+ <small class="soft">\S+ to \S+</small>'
    assert len(re.findall(difference, tables)) == 1


async def test_the_results_against_an_opponent_are_those_of_each_version(played: Played) -> None:
    replace_version(played)
    history = await played.service.tournaments.history(played.practice.id)
    shown = progress_in(await played.world.page("student", "/bots/1"))
    row = re.search(r'<tr><th scope="row"><a href="[^"]*Team_2_v1">.*?</tr>', shown)
    assert row
    cells = re.findall(r'<td class="nowrap">([^<]*)</td>', row[0])
    lines = {line.name: line for line in history.table}
    versus = [lines[name].versus["Team 2 v1"] for name in (NEW, OLD)]
    assert cells[1:] == [f"{one.wins}{TO}{one.draws}{TO}{one.losses}" for one in versus]
    totals = [sum(getattr(one, name) for one in versus) for name in ("wins", "draws", "losses")]
    assert cells[0] == TO.join(map(str, totals))
    assert sum(totals) > versus[0].games > 0


async def test_a_version_without_games_is_not_in_the_chart(played: Played) -> None:
    replace_version(played, games=0)
    shown = progress_in(await played.world.page("student", "/bots/1"))
    assert "version 1:" in shown
    assert "version 2" not in shown


async def test_a_team_that_never_played_has_no_progress(played: Played) -> None:
    team = played.world.course.teams.add("Team 3", played.world.clock())
    assert 'id="progress"' not in await played.world.page("lecturer", f"/bots/{team.id}")
    add_qualified(played.world.course, "Team 3", "content", "d" * 64)
    page = await played.world.page("lecturer", f"/bots/{team.id}")
    assert "Team 3" in page
    assert 'id="progress"' not in page


async def test_the_chart_has_a_selection_of_many_reference_players(played: Played) -> None:
    names = played.service.tournaments.practice[played.practice.id]
    store = played.service.tournaments.stores[played.practice.id]
    for level in range(2, 9):
        name = f"ladder:{level}"
        played.world.course.competitions.enter(played.practice.id, name, None, name)
        names.append(name)
        for number in (10 * level, 10 * level + 1):
            both = (name, "Team 2 v1") if number % 2 else (REFERENCE, name)
            store.add(played_game(f"p{number:07d}-1", *both, number), 1, f"p{number:07d}")
    chart = progress_in(await played.world.page("student", "/bots/1")).partition("</svg>")[0]
    shown = set(re.findall(r"ladder:\d", chart))
    ladder = (await played.service.tournaments.summary(played.practice.id)).table
    order = [line.name for line in ladder if line.name.startswith("ladder:")]
    assert (len(order), len(shown)) == (8, MOST_LEVELS)
    assert {order[0], order[-1]} <= shown


async def test_with_pseudonyms_only_the_own_team_sees_its_progress_and_no_other_name(played: Played) -> None:
    played.show("anonymous", students_see_names=False)
    replace_version(played)
    shown = progress_in(await played.world.page("student", "/bots/1"))
    assert "version 1:" in shown
    assert not re.search(r"Team[ _+]?(%20)?2", shown)
    for role in ("other", "visitor"):
        await played.world.page(role, "/bots/1", 404)


async def test_a_list_of_games_shows_tags_and_is_filtered_by_them(played: Played) -> None:
    played.show("named")
    path = "/competitions/practice/games"
    games = (await played.service.tournaments.summary(played.practice.id)).games
    faults = [game.key for game in games if game.fault is not None]
    assert 0 < len(faults) < len(games)
    page = await played.world.page("visitor", f"{path}?tag=by+fault")
    assert sorted(re.findall(r'class="key" href="[^"]*/games/([^"]+)"', page)) == faults
    assert "<option selected>by fault</option>" in page
    page = await played.world.page("visitor", f"{path}?tag=made-up")
    assert len(re.findall('class="key"', page)) == len(games)


async def test_the_longest_game_has_its_tag_under_pseudonyms_too(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=20) as played:
        played.show("anonymous")
        page = await played.world.page("visitor", "/competitions/practice/games?tag=longest")
        games = (await played.service.tournaments.summary(played.practice.id)).games
    most = max(sum(game.moves) for game in games if game.fault is None)
    shown = re.findall(r'<td class="number">(\d+)</td><td>score <span class="tag">longest</span>', page)
    assert set(shown) == {str(most)}
    assert not re.search(r"Team[ _+]?(%20)?[12]", page)

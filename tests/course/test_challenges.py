"""Challenges in the course's database: the quota, the consent of teams, and the states."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.courses import NOW, add_qualified, add_student, after
from tournaments.course.challenges import (
    MOST_OPEN,
    MOST_PAIRS,
    Side,
    Usage,
    may_be_opponent,
    may_challenge,
)
from tournaments.course.course import Course
from tournaments.course.model import (
    BotChoice,
    Challenge,
    ChallengeState,
    CompetitionKind,
    CourseError,
)
from tournaments.course.settings import Settings

LADDER = BotChoice(reference="ladder:3")


@pytest.mark.parametrize(
    ("settings", "used", "pairs", "refusal"),
    [
        ({}, Usage(0, 0), 1, None),
        ({}, Usage(10, 0), 10, None),
        ({"challenge_pairs_per_day": None}, Usage(5000, 9), 10, None),
        ({"challenges_with": "references"}, Usage(0, 0), 1, None),
        ({"challenges_with": "nobody"}, Usage(0, 0), 1, "There are no challenges in this course."),
        ({}, Usage(0, 0), 0, f"from 1 to {MOST_PAIRS} pairs of games, not 0"),
        ({}, Usage(0, 0), MOST_PAIRS + 1, f"from 1 to {MOST_PAIRS} pairs of games, not {MOST_PAIRS + 1}"),
        ({}, Usage(0, MOST_OPEN), 1, "10 challenges of your team are not over yet"),
        (
            {},
            Usage(20, 0),
            1,
            "20 pairs of games a day, and yours are used up: the next day begins 2026-03-03",
        ),
        ({}, Usage(18, 0), 3, "20 pairs of games a day, and 2 of yours are left"),
        ({"challenge_pairs_per_day": 1}, Usage(1, 0), 1, "A team has 1 pair of games a day"),
        ({"challenge_pairs_per_day": 5}, Usage(9, 0), 1, "and yours are used up"),  # the limit was lowered
    ],
)
def test_the_quota_of_a_team(settings: dict[str, Any], used: Usage, pairs: int, refusal: str | None) -> None:
    found = may_challenge(Settings(**settings), NOW, used, pairs)
    assert found is None if refusal is None else found is not None and refusal in found


VERSION, REMOTE = BotChoice(version_id=7), BotChoice(remote="mybot")


@pytest.mark.parametrize(
    ("settings", "opponent", "opponent_team", "accepts", "refusal"),
    [
        ({}, LADDER, None, True, None),
        ({"challenges_with": "references"}, LADDER, None, True, None),
        ({"references": ["ladder:1"]}, LADDER, None, True, "ladder:3 is no reference player of this course."),
        ({}, VERSION, 2, True, None),
        ({}, VERSION, 2, False, "This team does not accept challenges."),
        ({"challenges_with": "references"}, VERSION, 2, True, "only reference players can be challenged"),
        ({}, VERSION, 1, True, "That is your own bot: choose another one."),
        ({}, REMOTE, 1, False, None),
        ({"challenges_with": "references"}, REMOTE, 1, True, None),
        ({}, REMOTE, 2, True, "A remote bot plays with its own team alone."),
    ],
)
def test_the_bots_that_a_team_may_challenge(
    settings: dict[str, Any],
    opponent: BotChoice,
    opponent_team: int | None,
    accepts: bool,
    refusal: str | None,
) -> None:
    found = may_be_opponent(Settings(**settings), 1, opponent, opponent_team, accepts)
    assert found is None if refusal is None else found is not None and refusal in found


@dataclass
class Asker:
    """A team that challenges."""

    course: Course

    def __post_init__(self) -> None:
        version = add_qualified(self.course, "Team 1", "one", "d")
        self.team_id = version.team_id
        self.account = self.course.accounts.of_team(self.team_id)[0]
        self.bot = Side(BotChoice(version_id=version.id), "Team 1 v1", self.team_id)
        made = self.course.competitions.add(
            "challenges", "Challenges", CompetitionKind.CHALLENGE, {"game": "kalah(3,2)"}, None, NOW
        )
        self.competition_id = made.id

    def ask(self, opponent: Side, pairs: int = 1, hours: float = 0, **rules: Any) -> Challenge:
        return self.course.challenges.add(
            self.competition_id,
            self.team_id,
            self.account.id,
            self.bot,
            opponent,
            pairs,
            "page",
            after(hours=hours),
            Settings(**rules),
        )


@pytest.fixture
def asker(course: Course) -> Asker:
    return Asker(course)


REFERENCE = Side(LADDER, "ladder:3", None)


def test_a_challenge_is_kept_as_it_was_asked_for(course: Course, asker: Asker) -> None:
    made = asker.ask(REFERENCE, 2)
    assert course.challenges.get(made.id) == made
    assert (made.state, made.games, made.played) == (ChallengeState.WAITING, 4, 0)
    assert (made.bot, made.opponent, made.opponent_team_id) == (asker.bot.choice, LADDER, None)
    assert course.challenges.unfinished() == course.challenges.of_team(asker.team_id, 9) == [made]
    assert course.challenges.of_team(asker.team_id, 9, before=made.id) == []
    assert course.challenges.get(made.id + 1) is None


def test_challenges_go_from_state_to_state_and_end_once(course: Course, asker: Asker) -> None:
    challenges = course.challenges
    made = asker.ask(REFERENCE)
    assert challenges.begin(made.id).state is ChallengeState.PLAYING
    assert challenges.begin(made.id).state is ChallengeState.PLAYING, "also after a restart"
    counted = challenges.count(made.id, 1, 0, 1)
    assert (counted.wins, counted.draws, counted.losses, counted.played) == (1, 0, 1, 2)
    over = challenges.end(made.id, ChallengeState.FINISHED, after(hours=1))
    assert (over.state, over.ended_at) == (ChallengeState.FINISHED, after(hours=1))
    assert challenges.unfinished() == []
    with pytest.raises(CourseError, match="over already"):
        challenges.begin(made.id)
    with pytest.raises(CourseError, match="over already"):
        challenges.count(made.id, 0, 0, 0)
    with pytest.raises(CourseError, match="over already"):
        challenges.end(made.id, ChallengeState.CANCELLED, NOW)
    with pytest.raises(ValueError, match="no end"):
        challenges.end(made.id, ChallengeState.WAITING, NOW)
    assert challenges.get(made.id) == over


@pytest.mark.parametrize(("games", "counted"), [(0, 0), (1, 1), (2, 1), (3, 2), (5, 3)])
def test_the_pairs_that_a_failed_challenge_played_count(
    course: Course, asker: Asker, games: int, counted: int
) -> None:
    failed = asker.ask(REFERENCE, 3)
    course.challenges.count(failed.id, games // 2, games - games // 2, 0)
    course.challenges.end(failed.id, ChallengeState.FAILED, NOW, "the remote bot is not connected any more")
    assert course.challenges.usage(asker.team_id, Settings(), NOW) == Usage(counted, 0)


def test_unplayed_challenges_and_those_of_other_days_do_not_count(course: Course, asker: Asker) -> None:
    limit = {"challenge_pairs_per_day": 3}
    first = asker.ask(REFERENCE, 2, **limit)
    with pytest.raises(CourseError, match="1 of yours are left"):
        asker.ask(REFERENCE, 2, **limit)
    course.challenges.end(first.id, ChallengeState.FAILED, NOW, "the server could not play")
    second = asker.ask(REFERENCE, 3, **limit)
    course.challenges.end(second.id, ChallengeState.CANCELLED, NOW)
    with pytest.raises(CourseError, match="yours are used up"):
        asker.ask(REFERENCE, 1, **limit)
    asker.ask(REFERENCE, 3, hours=24, **limit)
    assert course.challenges.usage(asker.team_id, Settings(**limit), after(hours=24)) == Usage(3, 1)


def test_a_team_accepts_challenges_until_it_refuses(course: Course, asker: Asker) -> None:
    other = add_qualified(course, "Team 2", "two", "d")
    opponent = Side(BotChoice(version_id=other.id), "Team 2 v1", other.team_id)
    asker.ask(opponent)
    assert not course.challenges.set_consent(other.team_id, True), "that is so anyway"
    assert course.challenges.set_consent(other.team_id, False)
    assert not course.challenges.set_consent(other.team_id, False)
    with pytest.raises(CourseError, match="does not accept"):
        asker.ask(opponent)
    assert course.challenges.set_consent(other.team_id, True)
    assert course.challenges.consents() == {other.team_id: True}
    asker.ask(opponent)


def test_queries_for_any_team(course: Course) -> None:
    add_student(course)
    for number in (0, -1, 2**31, 10**30):
        assert course.challenges.get(number) is None
        assert course.challenges.of_team(number, 5, before=number) == []
        assert course.challenges.accepts(number)

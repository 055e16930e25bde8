"""Addresses and the outbox: who gets which mail, and that a mail is stored with its cause, or neither."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.headerregistry import Address
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from tests.support.courses import (
    FAST_PASSWORDS,
    NOW,
    PASSWORD,
    add_account,
    add_student,
    add_version,
    after,
    decide,
    use_link,
)
from tests.support.statement_faults import InjectedError, fault_before
from tournaments.course.challenges import Side
from tournaments.course.course import Course
from tournaments.course.mail.addresses import CONFIRM_WITHIN
from tournaments.course.mail.outbox import HIDDEN_BOT, KEPT, MailHome
from tournaments.course.model import (
    FINISH,
    Account,
    BotChoice,
    ChallengeState,
    CompetitionKind,
    CompetitionState,
    CourseError,
    LinkPurpose,
    Mail,
    MailAddress,
    MailKind,
    Role,
    Team,
    VersionState,
)
from tournaments.course.people.roster import RosterError, enrol, parse_roster
from tournaments.course.schema import mail
from tournaments.course.texts import email_of
from tournaments.database.base import Connections, Location

HOME = MailHome("home-1", b"key")
ADA, BOB = "ada@example.org", "bob@example.org"
FINISHED = CompetitionState.FINISHED


@dataclass
class Scene:
    """A course that sends mail: Ada and Bob in Team 1, another student in Team 2, a lecturer."""

    course: Course
    teams: list[Team]
    ada: Account
    bob: Account
    other: Account
    lecturer: Account

    def waiting(self) -> list[Mail]:
        return self.course.outbox.due(after(days=1000), 100)

    def subjects(self) -> list[tuple[str, str]]:
        """Return the address and the subject of each mail, without the course's title."""
        return sorted((one.address, one.subject.partition("] ")[2]) for one in self.waiting())

    def competition(self, title: str = "Cup") -> int:
        """Return a tournament that is played, with a version of Team 1."""
        kind, competitions = CompetitionKind.TOURNAMENT, self.course.competitions
        slug = f"cup-{len(competitions.all())}"
        made = competitions.add(slug, title, kind, {}, self.lecturer.id, NOW)
        version = add_version(self.course, self.teams[0], self.ada, f"of {slug}")
        competitions.enter(made.id, f"Team 1 v{version.number}", version.id, None)
        competitions.set_state(made.id, CompetitionState.RUNNING, "", NOW)
        return made.id

    def challenge(self, opponent: Side) -> int:
        """Return a challenge of Team 1 that is not over."""
        version = add_version(self.course, self.teams[0], self.ada, f"for {opponent.name}")
        store = self.course.competitions.add(
            f"c-{version.id}", "Challenges", CompetitionKind.CHALLENGE, {}, None, NOW
        )
        own = Side(BotChoice(version_id=version.id), f"Team 1 v{version.number}", self.teams[0].id)
        rules = self.course.settings.change(references=["ladder:1"])
        return self.course.challenges.add(
            store.id, self.teams[0].id, self.ada.id, own, opponent, 1, "page", NOW, rules
        ).id


@pytest.fixture
def scene(place: Location) -> Iterator[Scene]:
    with Course(place, FAST_PASSWORDS, HOME) as course:
        teams = [course.teams.add(f"Team {number}", NOW) for number in (1, 2)]
        ada, bob = (add_student(course, teams[0], login) for login in ("ada", "bob"))
        other = add_student(course, teams[1], "other")
        lecturer = add_account(course, Role.LECTURER, "lecturer")
        for account, address in ((ada, ADA), (bob, BOB)):
            assert course.addresses.enrol(account.id, address)
        yield Scene(course, teams, ada, bob, other, lecturer)


REFERENCE = Side(BotChoice(reference="ladder:1"), "ladder:1", None)


def test_the_members_of_a_team_get_the_results_of_its_checks(scene: Scene) -> None:
    course, version = scene.course, add_version(scene.course, scene.teams[0], scene.ada, "c")
    assert scene.waiting() == []
    decide(course, version, VersionState.FAILED)
    assert scene.subjects() == [(ADA, "Version 1 did not qualify"), (BOB, "Version 1 did not qualify")]
    assert {one.path for one in scene.waiting()} == {f"/my/versions/{version.id}"}
    course.addresses.choose(scene.bob.id, [MailKind.CHALLENGES])
    course.accounts.set_disabled(scene.ada.id, True)
    course.versions.requeue(version.id)
    decide(course, version, VersionState.QUALIFIED)
    course.accounts.set_disabled(scene.ada.id, False)
    assert len(scene.waiting()) == 2


def test_mails_of_a_disabled_account_wait_until_it_is_enabled(scene: Scene) -> None:
    course, outbox = scene.course, scene.course.outbox
    decide(course, add_version(course, scene.teams[0], scene.ada, "c"), VersionState.FAILED)
    first, second = scene.waiting()
    assert [first.address, second.address] == [ADA, BOB]
    outbox.failed(second.id, "550 nobody", NOW)
    for account in (scene.ada, scene.bob):
        course.accounts.set_disabled(account.id, True)
    assert scene.waiting() == []
    assert outbox.retry(NOW) == 0
    status = outbox.status()
    assert (status.waiting, status.held, status.failed, status.oldest) == (0, 0, 1, None)
    course.accounts.set_disabled(scene.ada.id, False)
    assert scene.waiting() == [first]
    assert outbox.status().waiting == 1


def test_the_team_that_asked_gets_the_end_of_its_challenge(scene: Scene) -> None:
    course = scene.course
    course.addresses.enrol(scene.other.id, "other@example.org")
    number = scene.challenge(REFERENCE)
    course.challenges.count(number, 1, 0, 1)
    course.challenges.end(number, ChallengeState.FINISHED, NOW)
    assert {one.body for one in scene.waiting()} == {
        "The challenge against ladder:1 is over. Your bot: 1 won, 0 drawn, 1 lost."
    }
    assert scene.subjects() == [(address, "The challenge against ladder:1 is over") for address in (ADA, BOB)]


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_mail_has_no_name_that_is_hidden_from_students(scene: Scene, is_shown: bool) -> None:
    course = scene.course
    course.settings.change(students_see_names=is_shown, challenges_with="teams")
    course.addresses.enrol(scene.lecturer.id, "lecturer@example.org")
    version = decide(course, add_version(course, scene.teams[1], scene.other, "x"), VersionState.QUALIFIED)
    opponent = Side(BotChoice(version_id=version.id), "Team 2 v1", scene.teams[1].id)
    course.challenges.end(scene.challenge(opponent), ChallengeState.FINISHED, NOW)
    course.competitions.set_state(scene.competition("Farewell to team 2"), FINISHED, "", NOW)
    found = dict(scene.subjects()), [one.subject for one in scene.waiting() if one.address == ADA]
    assert found[0]["lecturer@example.org"] == "Farewell to team 2 is finished"
    challenge, tournament = [subject.partition("] ")[2] for subject in found[1]]
    assert challenge == f"The challenge against {'Team 2 v1' if is_shown else HIDDEN_BOT} is over"
    assert tournament == ("Farewell to team 2 is finished" if is_shown else "A tournament is finished")


def test_players_and_lecturers_get_the_end_of_a_tournament_once(scene: Scene) -> None:
    course = scene.course
    for account in (scene.other, scene.lecturer):
        course.addresses.enrol(account.id, f"{account.login}@example.org")
    number = scene.competition()
    course.competitions.set_state(number, FINISHED, "", NOW)
    everybody = [(one, "Cup is finished") for one in (ADA, BOB, "lecturer@example.org")]
    assert scene.subjects() == everybody
    course.competitions.set_state(number, CompetitionState.RUNNING, "", NOW)
    course.competitions.set_state(number, FINISHED, "", NOW)
    assert scene.subjects() == everybody


def test_a_ruling_on_an_old_tournament_sends_no_second_mail(scene: Scene) -> None:
    course, number = scene.course, scene.competition()

    def finish(now: datetime) -> None:
        """Finish the tournament as the server does."""
        with course.act(now, None, FINISH, "cup-0"):
            pass
        course.competitions.set_state(number, FINISHED, "", now)

    finish(NOW)
    for one in scene.waiting():
        course.outbox.sent(one.id, "250 ok", NOW)
    for now in (NOW + KEPT - timedelta(1), NOW + KEPT, NOW + 3 * KEPT):
        course.outbox.purge(now)
        course.competitions.set_state(number, CompetitionState.RUNNING, "", now)
        finish(now)
        assert scene.subjects() == []
    course.competitions.set_state(scene.competition("Other"), FINISHED, "", NOW + 3 * KEPT)
    assert scene.subjects() == [(one, "Other is finished") for one in (ADA, BOB)]


def test_only_lecturers_get_the_end_of_a_hidden_tournament(scene: Scene) -> None:
    scene.course.addresses.enrol(scene.lecturer.id, "lecturer@example.org")
    number = scene.competition()
    scene.course.competitions.set_hidden(number, True)
    scene.course.competitions.set_state(number, FINISHED, "", NOW)
    assert scene.subjects() == [("lecturer@example.org", "Cup is finished")]


def test_a_link_goes_out_by_mail_and_is_in_no_row(scene: Scene, place: Location) -> None:
    course = scene.course
    course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    secret = course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    [found] = scene.waiting()  # the first link is void
    assert (found.address, found.path) == (ADA, f"/links/{secret}")
    assert course.links.find(secret, NOW) is not None
    with Connections(place, read_only=True) as connections, connections.reading() as connection:
        assert secret not in repr(connection.execute(select(mail)).all())
    assert len(secret) == len(course.links.make(scene.other.id, LinkPurpose.RESET, NOW))  # without address
    assert len(scene.waiting()) == 1


def test_a_failed_link_that_a_new_one_replaced_is_not_sent_again(scene: Scene) -> None:
    course = scene.course
    course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    [void] = scene.waiting()
    course.outbox.failed(void.id, "550 nobody", NOW)
    course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    course.outbox.retry(NOW)
    assert void.id not in {one.id for one in scene.waiting()}
    assert len(scene.waiting()) == 1


@pytest.mark.parametrize("how", ["disabled", "used"])
def test_a_link_that_is_void_is_not_sent(scene: Scene, how: str) -> None:
    course = scene.course
    for failed in (False, True):
        secret = course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
        if failed:
            course.outbox.failed(scene.waiting()[0].id, "550 nobody", NOW)
        if how == "used":
            use_link(course, secret, PASSWORD, NOW)
        else:
            course.accounts.set_disabled(scene.ada.id, True)
            course.accounts.set_disabled(scene.ada.id, False)
        assert course.outbox.retry(NOW) == 0
        assert scene.waiting() == []


def test_the_unsent_mail_of_an_expired_link_is_deleted_with_it(scene: Scene) -> None:
    course = scene.course
    course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    course.links.purge(NOW)
    assert len(scene.waiting()) == 1
    course.links.purge(after(days=365))
    assert scene.waiting() == []


def test_links_are_sent_before_news(scene: Scene) -> None:
    for number in range(3):
        decide(
            scene.course,
            add_version(scene.course, scene.teams[0], scene.ada, str(number)),
            VersionState.FAILED,
        )
    scene.course.links.make(scene.ada.id, LinkPurpose.RESET, after(minutes=1))
    assert [one.kind for one in scene.course.outbox.due(after(hours=1), 2)] == [
        MailKind.LINK,
        MailKind.CHECKS,
    ]


CAUSES: dict[str, Callable[[Scene], Callable[[], object]]] = {}
"""Name -> a function that prepares a cause of mails, and returns the function that does it."""


def cause(prepare: Callable[[Scene], Callable[[], object]]) -> None:
    CAUSES[prepare.__name__] = prepare


@cause
def check(scene: Scene) -> Callable[[], object]:
    version = add_version(scene.course, scene.teams[0], scene.ada, "c")
    return lambda: decide(scene.course, version, VersionState.FAILED)


@cause
def challenge(scene: Scene) -> Callable[[], object]:
    number = scene.challenge(REFERENCE)
    return lambda: scene.course.challenges.end(number, ChallengeState.FINISHED, NOW)


@cause
def tournament(scene: Scene) -> Callable[[], object]:
    number = scene.competition()
    return lambda: scene.course.competitions.set_state(number, FINISHED, "", NOW)


@cause
def link(scene: Scene) -> Callable[[], object]:
    return lambda: scene.course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)


@cause
def address(scene: Scene) -> Callable[[], object]:
    return lambda: scene.course.outbox.ask_to_confirm(scene.ada.id, "new@example.org", NOW)


def causes_stored(scene: Scene) -> list[object]:
    """Return the parts of the course that the causes change."""
    course = scene.course
    return [
        [one.state for one in course.versions.all(10) if one.state is VersionState.FAILED],
        [one.id for one in course.challenges.unfinished()],
        [one.state for one in course.competitions.all()],
        course.addresses.of(scene.ada.id).pending,
    ]


@pytest.mark.parametrize("name", CAUSES)
def test_a_mail_is_stored_with_its_cause_or_neither(scene: Scene, name: str) -> None:
    do = CAUSES[name](scene)
    before = causes_stored(scene)
    for number in count(1):
        with fault_before(number) as fault:
            try:
                do()
            except InjectedError:
                assert fault.happened
        if not fault.happened:
            break
        if name != "check":  # whose beginning is a transaction of its own
            assert causes_stored(scene) == before
        assert scene.waiting() == []
    assert scene.waiting() != []
    assert number > 2


def test_without_a_home_no_mail_is_written(scene: Scene, place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as silent:
        version = add_version(silent, scene.teams[0], scene.ada, "c")
        decide(silent, version, VersionState.FAILED)
        silent.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
        with pytest.raises(CourseError, match="sends no mail"):
            silent.outbox.ask_to_confirm(scene.ada.id, ADA, NOW)
    assert scene.waiting() == []


# Addresses


def test_a_new_address_is_used_when_it_is_confirmed(scene: Scene) -> None:
    course, new = scene.course, "ada@new.example.org"
    course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    course.outbox.ask_to_confirm(scene.ada.id, new, NOW)
    course.outbox.ask_to_confirm(scene.ada.id, new, NOW)
    assert course.addresses.of(scene.ada.id) == MailAddress(ADA, new)
    to = {one.kind: one for one in scene.waiting()}
    assert (to[MailKind.LINK].address, to[MailKind.ADDRESS].address) == (ADA, new)
    secret = to[MailKind.ADDRESS].path.removeprefix("/account/mail/")
    for account, at, wrong in (
        (scene.bob, NOW, secret),
        (scene.ada, NOW + CONFIRM_WITHIN, secret),
        (scene.ada, NOW, "made-up"),
    ):
        with pytest.raises(CourseError, match="too old"):
            course.addresses.confirm(account.id, wrong, at)
    assert course.addresses.confirm(scene.ada.id, secret, NOW) == new
    assert course.addresses.of(scene.ada.id) == MailAddress(new, None, is_own=True)
    assert {one.address for one in scene.waiting()} == {new}  # what waits goes there, too
    with pytest.raises(CourseError, match="too old"):
        course.addresses.confirm(scene.ada.id, secret, NOW)


def test_a_removed_address_gets_nothing_and_stays_removed(scene: Scene) -> None:
    course = scene.course
    course.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
    assert course.addresses.remove(scene.ada.id)
    assert scene.waiting() == []
    assert not course.addresses.enrol(scene.ada.id, ADA)
    assert course.addresses.of(scene.ada.id) == MailAddress(is_own=True)


def test_to_have_no_address_and_choose_mails_is_not_to_remove_one(scene: Scene) -> None:
    course = scene.course
    new = add_student(course)
    assert not course.addresses.remove(new.id)
    assert course.addresses.choose(new.id, [])
    assert course.addresses.enrol(new.id, "new@x.org")
    assert course.addresses.of(new.id).address == "new@x.org"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ada",
        "ada@",
        "@example.org",
        "a b@example.org",
        "a@b@example.org",
        "ada@example.org\nBcc: eve@example.org",
        "ada@exam_ple.org",
        "<ada@example.org>",
        "ada@example.org,eve@example.org",
        "\u00e4@example.org",
        "a" * 65 + "@b.org",
        "a..b@example.org",
        ".a@example.org",
        "a.@example.org",
        "a@example..org",
        "a@-example.org",
        "a@" + "b" * 64 + ".org",
    ],
)
def test_what_is_no_address_is_refused(scene: Scene, text: str) -> None:
    with pytest.raises(CourseError, match="is no e-mail address"):
        scene.course.addresses.enrol(scene.other.id, text)


@given(st.emails(domains=st.just("example.org")))
def test_what_is_accepted_can_be_written_into_a_header(text: str) -> None:
    try:
        address = email_of(text)
    except CourseError:
        return
    assert Address(addr_spec=address).addr_spec == address


ROSTER = "login,name,team,E-Mail\nada,Ada,Team 1,ada@x.org\nnew,New,Team 3,new@x.org\nlast,Last,,\n"


def test_a_roster_brings_addresses_and_invitations_go_there(scene: Scene) -> None:
    course = scene.course
    course.addresses.remove(scene.ada.id)
    result = enrol(course, parse_roster(ROSTER), NOW)
    assert [one.login for one in result.readdressed] == ["new"]  # Ada's own decision stays
    assert result.mailed == 1
    [found] = scene.waiting()
    assert (found.address, found.path) == ("new@x.org", f"/links/{result.links['new']}")
    again = enrol(course, parse_roster(ROSTER.replace("new@x", "corrected@x")), NOW)
    assert ([one.login for one in again.readdressed], again.mailed, again.unchanged) == (["new"], 0, 2)
    assert enrol(course, parse_roster(ROSTER.replace("new@x", "corrected@x")), NOW).unchanged == 3


def test_a_wrong_address_in_a_roster_is_a_problem_of_its_line(scene: Scene, place: Location) -> None:
    wrong = ROSTER.replace("new@x.org", "new at x")
    with pytest.raises(RosterError, match="line 3: 'new at x' is no e-mail address"):
        enrol(scene.course, parse_roster(wrong), NOW)
    with Course(place, FAST_PASSWORDS) as silent:  # passes the column over, as ever
        assert enrol(silent, parse_roster(wrong), NOW).readdressed == ()
        assert silent.addresses.known() == {scene.ada.id, scene.bob.id}


# States of mails


def test_attempts_are_recorded(scene: Scene) -> None:
    course, outbox = scene.course, scene.course.outbox
    decide(course, add_version(course, scene.teams[0], scene.ada, "c"), VersionState.FAILED)
    first, second = scene.waiting()
    outbox.postponed(first.id, "450 later", after(minutes=1), after(minutes=3))
    outbox.failed(second.id, "550 nobody", after(minutes=2))
    assert outbox.due(after(minutes=2), 9) == []
    [again] = outbox.due(after(minutes=3), 9)
    assert (again.id, again.attempts) == (first.id, 1)
    assert outbox.tried_between(NOW, after(minutes=2)) == [after(minutes=1), after(minutes=2)]
    status = outbox.status()
    assert (status.waiting, status.held, status.failed, status.oldest) == (1, 0, 1, NOW)
    [failure] = status.failures
    assert (failure.login, failure.address, failure.answer) == ("bob", BOB, "550 nobody")
    outbox.sent(first.id, "250 ok", after(minutes=3))
    assert outbox.retry(after(minutes=4)) == 1
    assert [one.attempts for one in outbox.due(after(minutes=4), 9)] == [0]
    outbox.purge(NOW + KEPT + timedelta(1))
    assert [one.id for one in scene.waiting()] == [second.id]  # what waits is never deleted


def test_no_mail_waits_for_the_time_of_a_clock_that_was_ahead(scene: Scene) -> None:
    course, outbox, ahead = scene.course, scene.course.outbox, after(days=1)
    decide(course, add_version(course, scene.teams[0], scene.ada, "c"), VersionState.FAILED, ahead)
    first, second = outbox.due(NOW, 9)
    outbox.postponed(first.id, "450 later", ahead, ahead + timedelta(minutes=1))
    outbox.sent(second.id, "250 ok", ahead)
    assert outbox.tried_between(NOW - timedelta(minutes=1), NOW) == []
    assert [one.id for one in outbox.due(NOW, 9)] == [first.id]
    outbox.postponed(first.id, "450 later", NOW, after(minutes=2))
    assert outbox.due(after(minutes=1), 9) == []


def test_failed_mails_are_sent_again_to_the_present_addresses(scene: Scene) -> None:
    course, outbox = scene.course, scene.course.outbox
    decide(course, add_version(course, scene.teams[0], scene.ada, "c"), VersionState.FAILED)
    outbox.ask_to_confirm(scene.ada.id, "typo@example.org", NOW)
    for one in scene.waiting():
        outbox.failed(one.id, "550 nobody", NOW)
    course.addresses.enrol(scene.ada.id, "corrected@example.org")
    course.addresses.remove(scene.bob.id)
    assert outbox.retry(after(hours=1)) == 1
    assert scene.subjects() == [("corrected@example.org", "Version 1 did not qualify")]
    assert outbox.status().failed == 2


def test_a_restored_directory_holds_the_mails_of_the_other(scene: Scene, place: Location) -> None:
    decide(scene.course, add_version(scene.course, scene.teams[0], scene.ada, "c"), VersionState.FAILED)
    with Course(place, FAST_PASSWORDS, MailHome("home-2", b"key")) as restored:
        assert restored.outbox.due(after(days=1), 9) == []
        assert (restored.outbox.status().waiting, restored.outbox.status().held) == (0, 2)
        restored.links.make(scene.ada.id, LinkPurpose.RESET, NOW)
        assert len(restored.outbox.due(NOW, 9)) == 1  # its own are sent
        assert restored.outbox.release(NOW) == 2
        assert len(restored.outbox.due(NOW, 9)) == 3
        assert scene.waiting() == []
    assert scene.course.outbox.discard() == 3
    assert scene.course.outbox.status().held == 0

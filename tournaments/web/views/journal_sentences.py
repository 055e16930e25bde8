"""Sentences for the entries of a course's journal.  Pure."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from referee.judge.verdict_text import counted
from tournaments.course.model import Event
from tournaments.course.settings import Settings

Detail = Mapping[str, Any]

GROUPS = {
    "account": "accounts",
    "roster": "roster",
    "team": "teams",
    "version": "versions",
    "tournament": "tournaments",
    "marks": "marks",
    "mail": "mails",
    "challenge": "challenges",
    "settings": "settings",
    "token": "tokens",
}
"""Beginning of an action, up to its dot -> its words in the filter of the journal."""


def _added(subject: str, detail: Detail) -> str:
    team = detail.get("team")
    role = str(detail.get("role") or "student")
    article = "an" if role[0] in "aeiou" else "a"
    return f"added {subject} as {article} {role}" + (f" in {team}" if team else "")


def _changed_account(subject: str, detail: Detail) -> str:
    team = detail.get("team")
    return f"changed {subject}: name {detail.get('name', '')}, " + (f"team {team}" if team else "no team")


def _imported(subject: str, detail: Detail) -> str:
    counts = [
        counted(len(detail.get("added", ())), "student") + " added",
        f"{len(detail.get('moved', ()))} moved to another team",
        f"{len(detail.get('renamed', ()))} renamed",
    ]
    return f"imported a roster of {subject}: {', '.join(counts)}"


def _changed_settings(_subject: str, detail: Detail) -> str:
    fields = Settings.model_fields
    changes = detail.get("changes", {})
    parts = [
        f"“{fields[name].title if name in fields else name}” from {value_text(old)} to {value_text(new)}"
        for name, (old, new) in changes.items()
    ]
    return "changed the settings: " + "; ".join(parts) if parts else "changed the settings"


def _ruled(words: str) -> Callable[[str, Detail], str]:
    def sentence(subject: str, detail: Detail) -> str:
        what = detail.get("ruled_on") or detail.get("game") or "a game"
        why = f": {detail['why']}" if detail.get("why") else ""
        return f"{words.format(what)} in the tournament {subject}{why}"

    return sentence


def _version(words: str) -> Callable[[str, Detail], str]:
    def sentence(subject: str, detail: Detail) -> str:
        number = subject.removeprefix("version ")
        return words.format(
            f"version {detail['number']} (submission {number})" if "number" in detail else subject
        )

    return sentence


def _exported(subject: str, detail: Detail) -> str:
    return f"exported the marks of {subject} as {str(detail.get('form', 'a file')).upper()}"


def _made_token(subject: str, detail: Detail) -> str:
    days = detail.get("days")
    valid = "without an end" if days is None else f"for {counted(days, 'day')}"
    return f"made the token “{detail.get('name', '')}” of {subject}, valid {valid}"


def _challenged(subject: str, detail: Detail) -> str:
    pairs = f"{counted(detail.get('pairs', 1), 'pair')} of games"
    if "opponent" not in detail:
        return f"asked for {pairs} in {subject}"
    return f"challenged {detail['opponent']} with {detail.get('bot', 'a bot')} to {pairs} ({subject})"


def _about(words: str) -> Callable[[str, Detail], str]:
    return lambda subject, _detail: words.format(subject)


SENTENCES: Mapping[str, Callable[[str, Detail], str]] = {
    "account.add": _added,
    "account.change": _changed_account,
    "account.disable": _about("disabled the account {}"),
    "account.enable": _about("enabled the account {} again"),
    "account.link": _about("made a link for choosing the password of {}"),
    "account.mail": lambda subject, detail: f"changed the mail of {subject}: {detail.get('change', '')}",
    "account.password": _about("set the password of {}"),
    "account.role": lambda subject, detail: f"made {subject} {detail.get('role', 'something else')}",
    "account.sign_in": _about("signed in as {}"),
    "challenge.ask": _challenged,
    "challenge.cancel": _about("cancelled {}"),
    "challenge.consent": lambda subject, detail: (
        f"{'accepted' if detail.get('accepts') else 'stopped accepting'} challenges to {subject}"
    ),
    "mail.discard": lambda _subject, detail: f"deleted {counted(detail.get('mails', 0), 'held mail')}",
    "mail.release": lambda _subject, detail: f"released {counted(detail.get('mails', 0), 'held mail')}",
    "mail.retry": lambda _subject, detail: f"queued {counted(detail.get('mails', 0), 'failed mail')} again",
    "marks.export": _exported,
    "marks.publish": _about("published the marks of {}"),
    "marks.withdraw": _about("withdrew the published marks of {}"),
    "roster.import": _imported,
    "settings.change": _changed_settings,
    "settings.freeze": _about("froze the versions"),
    "settings.unfreeze": _about("unfroze the versions"),
    "team.rename": lambda subject, detail: f"renamed the team {subject} to {detail.get('name', '')}",
    "token.make": _made_token,
    "token.revoke": lambda subject, detail: f"revoked the token “{detail.get('name', '')}” of {subject}",
    "tournament.add": _ruled("added {}"),
    "tournament.bye": _ruled("gave {} a bye"),
    "tournament.cancel": _about("cancelled the tournament {}"),
    "tournament.create": _about("created the tournament {}"),
    "tournament.delete": _about("deleted the tournament {}"),
    "tournament.fail": _about("stopped the tournament {} after a failure"),
    "tournament.finish": _about("finished the tournament {}"),
    "tournament.forbid": _ruled("forbade a pairing of {}"),
    "tournament.hide": _about("hid the tournament {} from students"),
    "tournament.pair": _ruled("fixed a pairing of {}"),
    "tournament.pause": _about("paused the tournament {}"),
    "tournament.publish": _about("published the draft of the tournament {}"),
    "tournament.rejudge": _about("had all games of the tournament {} judged again"),
    "tournament.replay": _ruled("ordered {} to be played again"),
    "tournament.report": _about("downloaded the report of the tournament {}"),
    "tournament.restore": _ruled("took back a ruling on {}"),
    "tournament.resume": _about("resumed the tournament {}"),
    "tournament.show": _about("showed the tournament {} to students again"),
    "tournament.start": _about("started the tournament {}"),
    "tournament.void": _ruled("declared {} void"),
    "tournament.withdraw": _ruled("withdrew {}"),
    "version.recheck": _version("had {} checked again"),
    "version.restore": _version("took the withdrawal of {} back"),
    "version.withdraw": _version("withdrew {}"),
}
"""Action -> the predicate of its sentence, from the subject and the details of the entry."""


def sentence_of(event: Event, author: str) -> str:
    """Return an entry as a sentence whose subject is its author, without a full stop."""
    if author == event.subject and event.action in OWN:
        return f"{author} {OWN[event.action]}"
    make = SENTENCES.get(event.action)
    if make is None:
        return f"{author}: {event.action} {event.subject}".rstrip()
    return f"{author} {make(event.subject, event.detail)}"


OWN = {
    "account.mail": "changed their own e-mail address, or which mails they get",
    "account.password": "set a password",
    "account.sign_in": "signed in",
}
"""Actions of people on their own accounts."""


def value_text(value: object) -> str:
    """Return the value of a detail or a setting as words."""
    match value:
        case None | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(value_text, value)) or "none"
        case str():
            return re.sub(r"T(\d\d:\d\d):00(Z|\+00:00)$", r" \1 UTC", value)
    return json.dumps(value, ensure_ascii=False)


def detail_text(event: Event) -> str:
    """Return all details of an entry as a text."""
    return "; ".join(
        f"{name}: {_raw(value)}"
        for name, value in event.detail.items()
        if value != [] and name not in ("marks", "rules")  # long texts, which the page of the marks has
    )


def _raw(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_raw, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""Small tournaments for tests of reports, and what their pages say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

from referee.judge.results import GameRecord, MatchResult, Reason
from tests.builders import make_player, make_record
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Entry
from tournaments.results.store import Store
from tournaments.schedule.pairing import Entrant, History
from tournaments.schedule.plan import Plan

Outcome = tuple[int | None, str | None]
"""Winner, and the fault if it was one."""
VOID_ELEMENTS = {"meta", "link", "input", "br", "hr", "img"}


def all_won(_number: int) -> Outcome:
    """Whoever moves first wins."""
    return 0, None


def summary_of(names: Sequence[str], name: str = "Cup", rounds: int = 1) -> TournamentResults:
    """A round robin before its first game."""
    plan = Plan(rounds=rounds, width=len(str(len(names))))
    control = str(make_record().control)
    return TournamentResults(
        name=name, game="kalah(1,1)", control=control, file_bots=names, ranking="points", plan=plan
    )


def records_of(
    summary: TournamentResults, outcome: Callable[[int], Outcome] = all_won
) -> list[tuple[int, GameRecord]]:
    """A record for each game of a tournament, with its round; they differ in their moves' times."""
    names = list(summary.file_bots)
    schedule = summary.plan.schedule(names, [Entrant() for _ in names])
    found = []
    for number, pairing in enumerate(schedule.pairings(History())):
        players = names[pairing.first], names[pairing.second]
        winner, fault = outcome(number)
        if fault is not None and winner is not None:
            loser = players[1 - winner]
            what = f"{loser} (South) lost: it sent 'MOVE {number}' as {loser}"
            result = MatchResult(winner, Reason.PROTOCOL, what, None, fault, f"a note for {loser}")
        else:
            what = "draw: 2 to 2" if winner is None else f"{players[winner]} (South) won: 3 to 1"
            score = (2, 2) if winner is None else (3, 1) if winner == 0 else (1, 3)
            result = MatchResult(winner, Reason.SCORE, what, score)
        record = make_record(pairing.key, *players, result=result)
        moves = [move._replace(charged_us=move.charged_us + 37 * number) for move in record.moves]
        found.append((pairing.round, replace(record, moves=moves)))
    return found


def write_store(
    path: Path,
    names: Sequence[str],
    outcome: Callable[[int], Outcome] = all_won,
    *,
    journal: Sequence[Entry] = (),
    changed: Callable[[GameRecord], GameRecord] = lambda record: record,
    name: str = "Cup",
    rounds: int = 1,
) -> Path:
    """A tournament's directory."""
    summary = summary_of(names, name, rounds)
    path.mkdir(parents=True)
    with Store(path / "results.db") as store:
        store.claim(summary.name, summary.config(), {"bots": {bot: make_player(bot).digest for bot in names}})
        for round_number, record in records_of(summary, outcome):
            store.add(changed(record), round_number)
        for entry in journal:
            store.note(entry)
    return path


def loaded(directory: Path) -> TournamentResults:
    """The summary of a directory."""
    with Store(directory / "results.db", read_only=True) as store:
        return TournamentResults.load(store)


@dataclass
class Row:
    """A row of a table."""

    cells: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    identity: str = ""


class Page(HTMLParser):
    """What a test asks of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0
        self.tables: dict[str, list[Row]] = {}
        """By the identity of the section, or of the table: its rows, heads too."""
        self.words: list[str] = []
        self._section = ""
        self._row: Row | None = None
        self._in_cell = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        link = given.get("href") or given.get("src")
        if link:
            self.links.append(link)
            if self._row is not None:
                self._row.links.append(link)
        if tag == "section" or (tag == "table" and "id" in given):
            self._section = given.get("id", "")
        elif tag == "tr":
            self._row = Row(identity=given.get("id", ""))
            self.tables.setdefault(self._section, []).append(self._row)
        elif tag in ("td", "th") and self._row is not None:
            self._row.cells.append("")
            self._in_cell = True
        elif tag == "script":
            self.scripts += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in ("tr", "td", "th", "table"):
            self._in_cell = False
        if tag in ("tr", "table"):
            self._row = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._in_cell and self._row is not None:
            self._row.cells[-1] += data.strip()

    @property
    def text(self) -> str:
        """All words, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def rows(self, section: str) -> list[Row]:
        """The rows of a section's table below its head."""
        return self.tables.get(section, [])[1:]


def pages_in(site: Path) -> dict[Path, Page]:
    """Every page of a report."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def broken_links(pages: Mapping[Path, Page]) -> list[str]:
    """Links that lead to no file, or to no part of a page; the replay's own part names are its script's."""
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, part = urldefrag(link)
            target = (path.parent / unquote(address)).resolve() if address else path.resolve()
            known = {one.resolve(): one for one in pages}
            checked = part and not part.startswith("ply=")
            if not target.is_file() or (checked and unquote(part) not in pages[known[target]].ids):
                broken.append(f"{path}: {link}")
    return broken

"""Small tournaments for tests of reports, and a parser of their pages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

from click.testing import Result

from referee.judge.results import GameRecord, MatchResult, Reason
from tests.support.builders import invoke, make_player, make_record
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Entry
from tournaments.results.store import Store
from tournaments.schedule.pairing import Entrant, History
from tournaments.schedule.plan import Plan

Outcome = tuple[int | None, str | None]
"""Winner, and the fault if there was one."""
VOID_ELEMENTS = {"meta", "link", "input", "br", "hr", "img", "path", "rect", "circle", "polygon"}


def all_won(_number: int) -> Outcome:
    """The first bot wins."""
    return 0, None


def some(number: int) -> Outcome:
    """Wins, draws and faults."""
    return [(0, None), (1, None), (None, None), (0, "crlf"), (1, "timeout")][number % 5]


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


def mixed(tmp_path: Path, **options: object) -> Path:
    """The directory of a tournament with wins, draws and faults."""
    return write_store(tmp_path / "cup", ("ada", "bob", "cleo"), some, **options)  # type: ignore[arg-type]


def loaded(directory: Path) -> TournamentResults:
    """The summary of a directory."""
    with Store(directory / "results.db", read_only=True) as store:
        return TournamentResults.load(store)


def report(directory: Path, *options: str | Path) -> Result:
    """Run `kalarena tournament report`."""
    return invoke("tournament", "report", directory, *options)


def made(directory: Path, *options: str | Path) -> Path:
    """The folder of a report that must be made."""
    result = report(directory, *options)
    assert result.exit_code == 0, result.output
    folder = directory / ("report-anonymous" if "--anonymous" in options else "report")
    assert result.stdout.startswith(str(folder / "index.html"))
    return folder


def files_of(site: Path) -> dict[str, bytes]:
    """The contents of each file of a folder."""
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}


@dataclass
class Row:
    """A row of a table."""

    cells: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """The elements, links, tables and words of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        """Elements that have not ended; empty for a page whose elements are nested correctly."""
        self.tables: dict[str, list[Row]] = {}
        """Rows by the identity of the section, or of the table; heads too."""
        self.words: list[str] = []
        self._section = ""
        self._row: Row | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes += given.items()
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        if self._row is not None and "href" in given:
            self._row.links.append(given["href"])
        if tag == "section" or (tag == "table" and "id" in given):
            self._section = given.get("id", "")
        elif tag == "tr":
            self._row = Row()
            self.tables.setdefault(self._section, []).append(self._row)
        elif tag in ("td", "th") and self._row is not None:
            self._row.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        if tag in ("tr", "table"):
            self._row = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._row is not None and {"td", "th"} & set(self.open):
            self._row.cells[-1] += data.strip()

    def values(self, *names: str) -> list[str]:
        """All values of attributes with these names."""
        return [value for name, value in self.attributes if name in names]

    @property
    def text(self) -> str:
        """All words, with single spaces."""
        return " ".join(" ".join(self.words).split())

    @property
    def cells(self) -> list[str]:
        """The cells of all tables."""
        return [cell for rows in self.tables.values() for row in rows for cell in row.cells]

    def rows(self, section: str) -> list[Row]:
        """The rows of a section's table below its head."""
        return self.tables.get(section, [])[1:]


def page_at(path: Path) -> Page:
    """The page in a file."""
    return Page(path.read_text(encoding="utf-8"))


def pages_in(site: Path) -> dict[Path, Page]:
    """Every page of a report."""
    return {path: page_at(path) for path in sorted(site.rglob("*.html"))}


def broken_links(pages: Mapping[Path, Page]) -> list[str]:
    """Links that lead to no file, or to no part of a page; the replay's own part names are its script's."""
    broken = []
    known = {path.resolve(): page for path, page in pages.items()}
    for path, page in pages.items():
        for link in page.values("href", "src"):
            address, part = urldefrag(link)
            target = (path.parent / unquote(address)).resolve() if address else path.resolve()
            checked = part and not part.startswith("ply=")
            if not target.is_file() or (checked and unquote(part) not in known[target].values("id")):
                broken.append(f"{path}: {link}")
    return broken

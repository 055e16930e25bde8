"""Who may import whom.  The table is the rule, docs/design.md says why.

Imports inside functions count like all others.  A module without a line here, its own or its package's,
fails the test: decide where it belongs before it grows.
"""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("protocol", "referee", "sample_bots", "tournaments")

IMPURE = {
    *("asyncio", "datetime", "logging", "multiprocessing", "os", "pathlib", "random", "secrets"),
    *("selectors", "shutil", "socket", "subprocess", "tempfile", "threading", "time"),
}
"""Parts of the standard library that look at the world: clocks, files, processes, chance."""


@dataclass(frozen=True)
class Rule:
    """What one module, or all modules of one package, may import."""

    who: str
    may: tuple[str, ...] = ()
    """Modules, and packages with all that is in them, beside those of the standard library."""
    pure: bool = False
    """Nothing of IMPURE."""
    stdlib: bool = True


# fmt: off
RULE_BOOK = ("protocol", "referee.games")
JUDGE = (*RULE_BOOK, "referee.clock", "referee.crash_hints", "referee.diagnosis", "referee.errors",
         "referee.events", "referee.facts", "referee.limits", "referee.match", "referee.rejudge",
         "referee.results", "referee.sentences", "referee.stderr")
CONFINING = ("referee.cgroup", "referee.errors", "referee.hidden_memory", "referee.host_resources",
             "referee.limits", "referee.needs", "referee.results", "referee.runtime_settings",
             "referee.sandbox", "referee.seccomp", "referee.working_directory")
COUNTING = ("referee.cpu_accounting", "referee.processes", "referee.procfs")
PROCESSES = (*JUDGE, *CONFINING, *COUNTING, "trio", "referee.bot", "referee.driver", "referee.feed",
             "referee.guard", "referee.held_directories", "referee.host_memory", "referee.kept_files",
             "referee.launch", "referee.orphans", "referee.play", "referee.timing", "referee.version",
             "referee.watch")
PLAYING = ("referee.clock", "referee.errors", "referee.games", "referee.host_resources",
           "referee.limits", "referee.play", "referee.probe", "referee.rejudge", "referee.results",
           "referee.sandbox", "referee.sentences", "referee.version")

RULES = (
    # The protocol and the rules of games know nothing of each other, nor of anything else.
    Rule("protocol",                ("protocol",), pure=True),
    Rule("referee",                 (), stdlib=False),
    Rule("referee.games",           ("referee.games",), pure=True),

    # The judge: events in, effects out.
    Rule("referee.clock",           JUDGE, pure=True),
    Rule("referee.crash_hints",     (), pure=True),
    Rule("referee.diagnosis",       ("referee.crash_hints",), pure=True),
    Rule("referee.errors",          JUDGE, pure=True),
    Rule("referee.events",          JUDGE, pure=True),
    Rule("referee.facts",           JUDGE, pure=True),
    Rule("referee.limits",          ("protocol", "referee.stderr"), pure=True),
    Rule("referee.match",           JUDGE, pure=True),
    Rule("referee.rejudge",         JUDGE, pure=True),
    Rule("referee.results",         (*JUDGE, "msgpack"), pure=True),
    Rule("referee.sentences",       JUDGE, pure=True),
    Rule("referee.stderr",          JUDGE, pure=True),

    Rule("referee.cpu_accounting",  (), pure=True),

    # The world outside: processes, pipes, the clock on the wall.
    Rule("referee.bot",             PROCESSES),
    Rule("referee.driver",          PROCESSES),
    Rule("referee.play",            PROCESSES),
    Rule("referee.guard",           ()),
    Rule("referee.version",         (), pure=True),
    Rule("referee.host_memory",     ()),
    Rule("referee.orphans",         ("referee.guard",)),
    Rule("referee.watch",           PROCESSES),
    Rule("referee.feed",            ("msgpack", "referee.match")),
    Rule("referee.launch",          PROCESSES),

    # What the system counts of processes.
    Rule("referee.procfs",          COUNTING),
    Rule("referee.processes",       COUNTING),
    Rule("referee.timing",          ("referee.clock", "referee.events", "referee.host_resources",
                                     *COUNTING)),

    # How a command is confined: from facts about the host to a command line.
    Rule("referee.seccomp",         (), pure=True),
    Rule("referee.needs",           ()),
    Rule("referee.host_resources",  ("referee.limits",)),
    Rule("referee.runtime_settings", ("referee.limits",), pure=True),
    Rule("referee.cgroup",          ("referee.limits",)),
    Rule("referee.working_directory", ("referee.errors", "referee.limits")),
    Rule("referee.sandbox",         CONFINING),
    Rule("referee.kept_files",      ("referee.held_directories", "referee.results")),
    Rule("referee.held_directories", ("referee.errors", "referee.sandbox", "referee.working_directory")),
    Rule("referee.hidden_memory",   ("referee.sandbox",)),
    Rule("referee.probe",           (*CONFINING, "referee.probe")),

    # One bot watched closely, for checks.
    Rule("referee.interview_script", ("referee.games", "referee.results"), pure=True),
    Rule("referee.aftermath",       (*PROCESSES, "referee.interview_script")),
    Rule("referee.interview",       (*PROCESSES, "referee.aftermath", "referee.interview_script")),

    # Building a bot, confined.
    Rule("referee.parcels",         (), pure=True),
    Rule("referee.confined_build",  (*PROCESSES, "referee.parcels")),

    # The bot a student starts from imports nothing of ours; the others may use the rules, not the referee.
    Rule("sample_bots",             (*RULE_BOOK, "sample_bots")),
    Rule("sample_bots.first_legal", ()),
    Rule("sample_bots.starters.python.bot", ()),
    Rule("sample_bots.starters_catalog", ()),
    Rule("sample_bots.strong.compiled", ("numba", "numpy", "sample_bots.options",
                                     "sample_bots.strong.kernels")),

    # Schedules and tables: pure functions of results.
    Rule("tournaments",             (), stdlib=False),
    Rule("tournaments.game_summary", ("referee.games", "referee.results"), pure=True),
    Rule("tournaments.schedule",    (), pure=True),
    Rule("tournaments.formats",     ("networkx", "random", "tournaments.formats", "tournaments.ratings.sprt",
                                     "tournaments.schedule"), pure=True),
    Rule("tournaments.plan",        ("tournaments.formats.catalog", "tournaments.schedule"), pure=True),
    Rule("tournaments.journal",     (), pure=True),
    Rule("tournaments.rulings",     ("tournaments.game_summary", "tournaments.journal",
                                     "tournaments.schedule"), pure=True),
    Rule("tournaments.standing",    (), pure=True),
    Rule("tournaments.rankings",    ("tournaments.standing",), pure=True),
    Rule("tournaments.standings",   ("tournaments.game_summary", "tournaments.rankings",
                                     "tournaments.standing"), pure=True),
    Rule("tournaments.tables",      ("referee.results", "referee.sentences", "rich.cells",
                                     "tournaments.game_summary", "tournaments.rankings",
                                     "tournaments.standing"), pure=True),

    # Statistics: numbers in, numbers out.
    Rule("tournaments.evidence",    ("numpy", "tournaments.game_summary"), pure=True),
    Rule("tournaments.ratings",     ("numpy", "scipy", "tournaments.evidence", "tournaments.game_summary",
                                     "tournaments.ratings"), pure=True),

    Rule("tournaments.comparison",  ("tournaments.evidence", "tournaments.game_summary",
                                     "tournaments.ratings", "tournaments.standing"), pure=True),

    # Mark sheets: from the table and the lecturer's rules.
    Rule("tournaments.marks",       ("pydantic", "referee.games.spec", "tournaments.complaints",
                                     "tournaments.marks", "tournaments.standing"), pure=True),
    Rule("tournaments.spreadsheet", (), pure=True),
    Rule("tournaments.marks.adjustments", ("pydantic", "referee.games.spec", "tournaments.marks"), pure=True),
    Rule("tournaments.marks.people", ("referee.sentences", "tournaments.spreadsheet")),
    Rule("tournaments.marks.sheet", ("tournaments.marks", "tournaments.tables"), pure=True),
    Rule("tournaments.workbook",    ("referee.sentences", "rich.cells", "tournaments.tables", "xlsxwriter"),
         pure=True),
    Rule("tournaments.mark_sheets", ("tournaments.marks", "tournaments.summary", "tournaments.tables",
                                     "tournaments.workbook")),
    Rule("tournaments.marks.file",  ("pydantic", "referee.games.spec", "tournaments.complaints",
                                     "tournaments.marks")),

    # Games for other programs, and the report.
    Rule("tournaments.sgf",         ("referee.games", "referee.results", "referee.sentences"), pure=True),
    Rule("tournaments.pgn",         ("referee.clock", "referee.results", "referee.sentences"), pure=True),
    Rule("tournaments.exports",     ("referee.games", "referee.results", "tournaments.game_summary",
                                     "tournaments.pgn", "tournaments.rulings", "tournaments.tables")),
    Rule("tournaments.report",      ("jinja2", "markupsafe", "referee.events", "referee.host_resources",
                                     "referee.results", "referee.sentences",
                                     "tournaments.config", "tournaments.database",
                                     "tournaments.game_summary", "tournaments.journal", "tournaments.plan",
                                     "tournaments.process_pool",
                                     "tournaments.ratings", "tournaments.report",
                                     "tournaments.standing", "tournaments.standings", "tournaments.store",
                                     "tournaments.summary", "tournaments.tables")),
    Rule("tournaments.report.svg",  (), pure=True),
    Rule("tournaments.report.race_chart", ("tournaments.report.svg",), pure=True),
    Rule("tournaments.report.rating_chart", ("tournaments.ratings.ratings", "tournaments.report.svg",
                                     "tournaments.standing"), pure=True),
    Rule("tournaments.report.time_chart", ("tournaments.report.svg", "tournaments.report.times"), pure=True),
    Rule("tournaments.report.times", ("referee.events", "referee.results"), pure=True),
    Rule("tournaments.report.replay", ("referee.results", "referee.sentences",
                                     "tournaments.report.replay_board"), pure=True),
    Rule("tournaments.report.replay_board", ("referee.games",), pure=True),
    Rule("tournaments.report.live_replay", ("tournaments.report.replay_board",), pure=True),
    Rule("tournaments.report.replay_page", ("tournaments.report.replay",), pure=True),
    Rule("tournaments.pseudonyms",  ()),

    # The store, and what is made from it alone.
    Rule("tournaments.schema",      ("sqlalchemy",)),
    Rule("tournaments.chain",       (), pure=True),
    Rule("tournaments.migrations",  ("alembic", "msgpack", "sqlalchemy", "referee.errors",
                                     "tournaments.chain", "tournaments.database.append_only",
                                     "tournaments.game_summary", "tournaments.packed_game",
                                     "tournaments.schema")),
    Rule("tournaments.database",    ("sqlalchemy", "tournaments.database")),
    Rule("tournaments.database.errors", ()),
    Rule("tournaments.database.read_only", ()),
    Rule("tournaments.database.migrations", ("alembic", "sqlalchemy", "tournaments.database")),
    Rule("tournaments.packed_game", ("referee.errors", "referee.results", "tournaments.game_summary")),
    Rule("tournaments.store",       ("sqlalchemy", "referee.errors", "referee.results",
                                     "tournaments.chain", "tournaments.database", "tournaments.packed_game",
                                     "tournaments.game_summary", "tournaments.journal",
                                     "tournaments.schema")),
    Rule("tournaments.summary",     ("threadpoolctl", "tournaments.chain",
                                     "tournaments.cluster.fairness",
                                     "tournaments.config", "tournaments.evidence",
                                     "tournaments.format_tables", "tournaments.game_summary",
                                     "tournaments.journal", "tournaments.plan", "tournaments.rankings",
                                     "tournaments.ratings", "tournaments.rulings", "tournaments.schedule",
                                     "tournaments.standing", "tournaments.standings", "tournaments.store",
                                     "tournaments.tables")),
    Rule("tournaments.appeals",     ("tournaments.format_tables", "tournaments.formats.swiss_pairing",
                                     "tournaments.journal",
                                     "tournaments.rulings",
                                     "tournaments.schedule", "tournaments.summary")),
    Rule("tournaments.gamefiles",   ("referee.results", "referee.sentences", "tournaments.config")),
    Rule("tournaments.directory",   ("tournaments.summary", "tournaments.tables")),
    Rule("tournaments.process_pool", ()),
    Rule("tournaments.chain_check", ("tournaments.chain", "tournaments.store"), pure=True),
    Rule("tournaments.verification", ("referee.errors", "referee.rejudge", "referee.results",
                                     "referee.sentences", "referee.version",
                                     "tournaments.chain", "tournaments.chain_check",
                                     "tournaments.cluster.fairness", "tournaments.database.place",
                                     "tournaments.directory", "tournaments.game_summary",
                                     "tournaments.gamefiles", "tournaments.journal",
                                     "tournaments.process_pool", "tournaments.rulings",
                                     "tournaments.schedule", "tournaments.store", "tournaments.summary",
                                     "tournaments.tables")),

    Rule("tournaments.ladder_place", ("tournaments.evidence", "tournaments.game_summary",
                                     "tournaments.ratings", "tournaments.standing"), pure=True),
    Rule("tournaments.duel",        ("tournaments.comparison", "tournaments.formats.sprt",
                                     "tournaments.game_summary", "tournaments.schedule"), pure=True),

    # What a tournament file says.
    Rule("tournaments.complaints",  ("referee.games",)),
    Rule("tournaments.manifest",    ("referee.games", "referee.results",
                                     "tournaments.complaints")),
    Rule("tournaments.shims",       ()),
    Rule("tournaments.toolchains",  ("referee.confined_build", "referee.needs", "tournaments.shims")),
    Rule("tournaments.products",    ("referee.parcels",)),
    Rule("tournaments.building",    ("referee.confined_build", "referee.errors", "referee.sandbox",
                                     "referee.sentences", "tournaments.manifest", "tournaments.products",
                                     "tournaments.toolchains")),
    Rule("tournaments.bots",        ("referee.games", "referee.needs", "referee.results", "referee.sandbox",
                                     "referee.sentences", "sample_bots.catalog",
                                     "sample_bots.strong.kernels", "tournaments.building",
                                     "tournaments.manifest", "tournaments.products",
                                     "tournaments.shims")),
    Rule("tournaments.openings",    ("referee.games",)),
    Rule("tournaments.format_tables", ("pydantic", "referee.games", "tournaments.formats.catalog")),
    Rule("tournaments.tournament_file", ("pydantic", "referee.clock", "referee.games", "referee.limits",
                                     "referee.probe", "tournaments.bots",
                                     "tournaments.cluster.settings", "tournaments.format_tables",
                                     "tournaments.manifest", "tournaments.openings",
                                     "tournaments.rankings")),
    Rule("tournaments.config",      ("pydantic", "referee.clock", "referee.games",
                                     "referee.host_resources", "referee.limits",
                                     "referee.needs", "referee.probe", "referee.results",
                                     "referee.sandbox", "tournaments.bots",
                                     "tournaments.cluster.fairness", "tournaments.cluster.settings",
                                     "tournaments.complaints",
                                     "tournaments.format_tables", "tournaments.formats.catalog",
                                     "tournaments.formats.swiss", "tournaments.manifest",
                                     "tournaments.openings", "tournaments.plan", "tournaments.rankings",
                                     "tournaments.schedule", "tournaments.tournament_file")),
    Rule("tournaments.late_bots",   ("referee.probe", "referee.results", "tournaments.bots",
                                     "tournaments.config", "tournaments.journal", "tournaments.manifest")),

    # Running it: an engine plays jobs and knows no tournament; the runner knows engines by their interface.
    Rule("tournaments.giving_way",  ()),
    Rule("tournaments.interpreter", ()),
    Rule("tournaments.engines",     ("trio", "trio_parallel", *PLAYING, "referee.feed", "referee.orphans",
                                     "tournaments.engines", "tournaments.giving_way",
                                     "tournaments.packed_game")),
    Rule("tournaments.engines.slurm", ("trio", "distributed",
                                     "tournaments.cluster.credentials", "tournaments.cluster.errors",
                                     "tournaments.cluster.jobqueue", "tournaments.cluster.settings",
                                     "tournaments.cluster.slurm_queue")),
    Rule("tournaments.keeper",      ("trio", "trio_parallel",
                                     "tournaments.gamefiles", "tournaments.packed_game",
                                     "tournaments.schedule", "tournaments.store")),
    Rule("tournaments.runner",      ("trio", "trio_parallel", *PLAYING, "tournaments.config",
                                     "tournaments.engines.base", "tournaments.keeper",
                                     "tournaments.packed_game",
                                     "tournaments.game_summary", "tournaments.gamefiles",
                                     "tournaments.rulings", "tournaments.schedule", "tournaments.store")),

    Rule("tournaments.rehearsal",   ("trio", *PLAYING, "referee.feed", "tournaments.checking",
                                     "tournaments.config", "tournaments.engines.base",
                                     "tournaments.runner")),

    # A cluster.  What is imported without the extra knows nothing of Dask.
    Rule("tournaments.cluster.errors", (), pure=True),
    Rule("tournaments.cluster",     ()),
    Rule("tournaments.cluster.contents", ("msgpack", "protocol", "referee", "sample_bots",
                                     "tournaments.cluster.errors", "tournaments.manifest",
                                     "tournaments.products", "tournaments.toolchains")),
    Rule("tournaments.cluster.bot_shelf", ("referee.results", "referee.sandbox",
                                     "sample_bots.strong.kernels", "tournaments.building",
                                     "tournaments.cluster.contents", "tournaments.cluster.errors")),
    Rule("tournaments.cluster.game_process", ("referee.errors", "referee.play", "referee.results",
                                     "tournaments.packed_game")),
    Rule("tournaments.cluster.worker_play", ("referee.feed", "referee.host_resources",
                                     "referee.orphans", "referee.play",
                                     "referee.probe", "referee.results", "referee.sandbox",
                                     "tournaments.cluster.bot_shelf", "tournaments.cluster.contents",
                                     "tournaments.cluster.errors", "tournaments.cluster.fairness",
                                     "tournaments.cluster.game_process",
                                     "tournaments.engines.following", "tournaments.engines.local")),
    Rule("tournaments.cluster.worker_plugin", ("distributed", "referee.orphans", "referee.sandbox",
                                     "tournaments.cluster.errors", "tournaments.cluster.game_process",
                                     "tournaments.cluster.host", "tournaments.cluster.worker_play")),
    Rule("tournaments.cluster.scheduler_plugin", ("distributed", "tournaments.cluster.dask_settings",
                                                  "tournaments.cluster.worker_plugin")),
    Rule("tournaments.cluster.waiting", ("trio", "referee.sandbox", "tournaments.cluster.errors",
                                     "tournaments.cluster.host")),
    Rule("tournaments.cluster.asyncio_thread", ("trio", "uvloop")),
    Rule("tournaments.cluster.dask_settings", (), pure=True),
    Rule("tournaments.cluster.pair_hosts", ()),
    Rule("tournaments.cluster.host_workers", (), pure=True),
    Rule("tournaments.cluster.submissions", ("distributed",)),
    Rule("tournaments.cluster.head", ("distributed", "referee.feed", "tournaments.cluster",
                                      "tournaments.engines.base")),
    Rule("tournaments.engines.dask", ("distributed", "trio", *PLAYING, "referee.feed",
                                     "tournaments.cluster", "tournaments.engines.base",
                                     "tournaments.packed_game")),
    Rule("tournaments.cluster.extra", ("tournaments.cluster.errors",)),
    Rule("tournaments.cluster.fairness", ("referee.clock",), pure=True),
    Rule("tournaments.cluster.calibration", ("referee.games",)),
    Rule("tournaments.cluster.settings", ("pydantic", "tournaments.cluster.calibration"), pure=True),
    Rule("tournaments.cluster.host", ("pydantic", "referee.host_resources", "referee.sandbox",
                                     "referee.version", "tournaments.cluster.calibration",
                                     "tournaments.cluster.errors", "tournaments.toolchains")),
    Rule("tournaments.cluster.credentials", ("cryptography", "distributed", "tournaments.cluster.errors")),
    Rule("tournaments.cluster.demanded", ("distributed", "referee.sandbox", "tournaments.cluster.host",
                                     "tournaments.cluster.credentials", "tournaments.cluster.errors",
                                     "tournaments.cluster.waiting")),
    Rule("tournaments.cluster.lifetime", ("distributed", "tournaments.cluster.worker_plugin")),
    Rule("tournaments.cluster.slurm_queue", ()),
    Rule("tournaments.cluster.jobqueue", ("dask_jobqueue",)),
    Rule("tournaments.cluster.lab_worker", ("dask", "distributed", "referee.orphans",
                                     "tournaments.cluster.credentials",
                                     "tournaments.cluster.dask_settings", "tournaments.cluster.errors",
                                     "tournaments.cluster.host", "tournaments.cluster.lifetime",
                                     "tournaments.cluster.worker_plugin")),
    Rule("tournaments.cluster.scheduler", ("trio", "tournaments.cluster.credentials",
                                     "tournaments.cluster.errors")),
    Rule("tournaments.cluster.scheduler_process", ("dask", "distributed", "uvloop", "referee.orphans",
                                     "tournaments.cluster.credentials",
                                     "tournaments.cluster.dask_settings", "tournaments.cluster.errors")),

    Rule("tournaments.elsewhere",   ("trio", "referee.sandbox", "tournaments.cluster", "tournaments.config",
                                     "tournaments.engines.dask", "tournaments.engines.slurm")),

    # Uploads: bytes in, files out; one module keeps them.
    Rule("tournaments.submissions", ("referee.sentences", "tournaments.submissions"), pure=True),
    Rule("tournaments.submissions.content", ("tournaments.submissions.names",
                                     "tournaments.submissions.upload")),

    # Checking a bot: verdicts from what was played; two modules play and keep the time.
    Rule("tournaments.checking",    ("referee.clock", "referee.diagnosis", "referee.games",
                                     "referee.interview_script", "referee.limits", "referee.results",
                                     "referee.sandbox", "referee.sentences", "referee.stderr",
                                     "tournaments.checking"), pure=True),
    Rule("tournaments.checking.playing", (*PLAYING, "referee.interview", "referee.processes",
                                     "tournaments.bots", "tournaments.checking")),
    Rule("tournaments.checking.check", (*PLAYING, "tournaments.checking")),

    # The command line may use everything but the referee's insides.
    Rule("tournaments.cli.doctor",  ("click", "referee.host_resources", "referee.limits", "referee.probe",
                                     "referee.processes", "referee.sandbox")),
    Rule("tournaments.cli.new",     ("click", "referee.games.spec", "sample_bots.catalog",
                                     "sample_bots.starters_catalog", "tournaments.cli.main",
                                     "tournaments.manifest")),
    Rule("tournaments.cli",         ("protocol", "click", "rich", "threadpoolctl", "trio", *PLAYING,
                                     "sample_bots.catalog", "sample_bots.options", "sample_bots.solver",
                                     "sample_bots.strong.kernels", "tournaments")),

    # The server.  A course: its own database, no Trio, no HTTP.
    Rule("tournaments.course",      ("sqlalchemy", "tournaments.course", "tournaments.database")),
    Rule("tournaments.course.model", ()),
    Rule("tournaments.course.moments", ()),
    Rule("tournaments.course.errors", ()),
    Rule("tournaments.course.credentials", ()),
    Rule("tournaments.course.passwords", ("argon2", "tournaments.course.errors")),
    Rule("tournaments.course.texts", ("referee.sentences", "tournaments.course.errors",
                                     "tournaments.manifest")),
    Rule("tournaments.course.settings", ("pydantic", "referee.clock", "referee.games", "referee.limits",
                                     "referee.probe", "sample_bots.catalog", "sample_bots.options",
                                     "tournaments.checking.settings", "tournaments.complaints",
                                     "tournaments.course.errors", "tournaments.course.texts")),
    Rule("tournaments.course.deadlines", ("tournaments.course.settings",)),
    Rule("tournaments.course.roster", ("referee.games.spec", "tournaments.course.errors",
                                     "tournaments.course.texts", "tournaments.spreadsheet")),
    Rule("tournaments.course.marked", ("tournaments.course.model", "tournaments.marks.people"), pure=True),
    Rule("tournaments.course.migrations", ("alembic", "sqlalchemy", "tournaments.course.schema",
                                     "tournaments.database.append_only")),
    # The service: who may play when, checks, the practice ladder.  What is pure knows no event loop.
    Rule("tournaments.service",     (), stdlib=False),
    Rule("tournaments.service.config", ("tournaments.cluster.settings",), pure=True),
    Rule("tournaments.service.cluster", ("trio", "referee.sandbox", "tournaments.cluster",
                                     "tournaments.config", "tournaments.elsewhere", "tournaments.engines",
                                     "tournaments.runner", "tournaments.service.failures")),
    Rule("tournaments.service.matchmaking", (), pure=True),
    Rule("tournaments.service.practice_games", ("referee.games", "tournaments.game_summary",
                                     "tournaments.openings", "tournaments.service.matchmaking")),
    Rule("tournaments.service.turns", ("tournaments.course.model",), pure=True),
    Rule("tournaments.service.bot_job", ("referee.clock", "referee.limits", "referee.results",
                                     "referee.sandbox"), pure=True),
    Rule("tournaments.service.places", ("trio", "referee.play", "tournaments.engines.base",
                                     "tournaments.packed_game")),
    Rule("tournaments.service.failures", ("trio",)),
    Rule("tournaments.service.check_log", ("trio",)),
    Rule("tournaments.service.workshop", ("referee.results", "referee.sandbox", "tournaments.bots",
                                     "tournaments.manifest", "tournaments.submissions")),
    Rule("tournaments.service.check_worker", ("referee.errors", "referee.orphans", "referee.sentences",
                                     "tournaments.giving_way", "tournaments.bots", "tournaments.checking",
                                     "tournaments.service.bot_job", "tournaments.service.workshop",
                                     "tournaments.submissions")),
    Rule("tournaments.service.bot_worker", ("trio", "referee.orphans", "referee.sentences",
                                     "tournaments.service.bot_job")),
    Rule("tournaments.service.players", ("trio", *PLAYING, "sample_bots.catalog", "tournaments.bots",
                                     "tournaments.building", "tournaments.course", "tournaments.service",
                                     "tournaments.submissions")),
    Rule("tournaments.service.parts", ("tournaments.course", "tournaments.database",
                                     "tournaments.engines.base", "tournaments.service")),
    Rule("tournaments.service.contenders", ("tournaments.course",)),
    Rule("tournaments.service.qualifying", ("trio", *PLAYING, "tournaments.building",
                                     "tournaments.checking.report", "tournaments.course",
                                     "tournaments.database", "tournaments.service")),
    Rule("tournaments.service.practice", ("trio", *PLAYING, "tournaments.course", "tournaments.database",
                                     "tournaments.engines.base", "tournaments.packed_game",
                                     "tournaments.service", "tournaments.store")),
    Rule("tournaments.service.status", ("tournaments.service",)),
    Rule("tournaments.service.service", ("trio", "referee.host_resources", "referee.probe", "referee.sandbox",
                                     "tournaments.cluster.extra", "tournaments.cluster.waiting",
                                     "tournaments.course", "tournaments.database",
                                     "tournaments.engines", "tournaments.service",
                                     "tournaments.submissions")),
    # What plays now: told by engines, and watched.
    Rule("tournaments.service.live", ("trio", "referee.feed", "referee.play", "referee.results")),
    Rule("tournaments.service.watched_engine", ("referee.feed", "referee.play", "tournaments.engines.base",
                                     "tournaments.packed_game", "tournaments.service.live")),
    Rule("tournaments.web.streams", ("trio",)),
    Rule("tournaments.web.live_boards", ("trio", "tournaments.report.live_replay",
                                     "tournaments.service.live")),
    Rule("tournaments.web.live_pages", ("starlette", "trio", "referee.sentences",
                                     "tournaments.course.model", "tournaments.report",
                                     "tournaments.service.live", "tournaments.web")),
    # Tournaments that the server plays.
    Rule("tournaments.service.tournament_spec", ("pydantic", "referee.games", "referee.probe",
                                     "tournaments.config", "tournaments.course.settings",
                                     "tournaments.format_tables", "tournaments.tournament_file")),
    Rule("tournaments.service.line_up", ("referee.games", "referee.probe", "referee.results",
                                     "tournaments.config", "tournaments.course.model",
                                     "tournaments.manifest", "tournaments.openings",
                                     "tournaments.schedule", "tournaments.service.tournament_spec",
                                     "tournaments.tournament_file")),
    Rule("tournaments.service.narrow_engine", ("trio", "referee.play", "tournaments.engines.base",
                                     "tournaments.packed_game")),
    Rule("tournaments.service.stores", ("tournaments.database", "tournaments.store")),
    Rule("tournaments.service.practice_summary", ("tournaments.game_summary", "tournaments.plan",
                                     "tournaments.schedule", "tournaments.store", "tournaments.summary")),
    Rule("tournaments.service.recall",   ("trio", "tournaments.course")),
    Rule("tournaments.service.summaries", ("trio", "tournaments.course", "tournaments.service.failures",
                                     "tournaments.service.practice_summary", "tournaments.service.stores",
                                     "tournaments.summary")),
    Rule("tournaments.service.rejudging", ("trio_parallel", "tournaments.giving_way", "tournaments.database",
                                     "tournaments.game_summary", "tournaments.rulings",
                                     "tournaments.store", "tournaments.verification")),
    Rule("tournaments.service.contest", ("trio", *PLAYING, "tournaments.cluster.errors",
                                     "tournaments.cluster.waiting", "tournaments.config",
                                     "tournaments.course.model",
                                     "tournaments.directory", "tournaments.engines.base",
                                     "tournaments.gamefiles", "tournaments.rulings", "tournaments.runner",
                                     "tournaments.service", "tournaments.store", "tournaments.summary")),
    Rule("tournaments.service.contests", ("trio", "referee.results", "tournaments.appeals",
                                     "tournaments.course", "tournaments.journal", "tournaments.rulings",
                                     "tournaments.service", "tournaments.summary",
                                     "tournaments.tournament_file", "tournaments.verification")),
    # What an admin does with the data of a server.
    Rule("tournaments.backup",      ("tournaments.backup",)),
    Rule("tournaments.moving",      ("sqlalchemy", "tournaments.course", "tournaments.database",
                                     "tournaments.schema", "tournaments.store")),
    Rule("tournaments.web.lecturer.setting_fields", ("referee.games.catalog", "referee.probe",
                                     "tournaments.course.settings")),
    Rule("tournaments.web.lecturer.tournament_fields", ("tournaments.course.settings",
                                     "tournaments.format_tables", "tournaments.rankings",
                                     "tournaments.service.tournament_spec", "tournaments.tournament_file",
                                     "tournaments.web.lecturer.setting_fields"), pure=True),
    Rule("tournaments.web.lecturer.preview", ("referee.results", "tournaments.game_summary",
                                     "tournaments.service.line_up", "tournaments.service.tournament_spec",
                                     "tournaments.summary", "tournaments.tournament_file"), pure=True),
    # A student's own machine: the standard library alone, and the server's rules on uploads.
    Rule("tournaments.submitting",  ("tournaments.manifest", "tournaments.submissions.limits",
                                     "tournaments.submissions.names", "tournaments.tables")),
    # Pages and API: what the course and the service say, shown; never what plays games.
    Rule("tournaments.web",         ("itsdangerous", "jinja2", "markupsafe", "pydantic", "starlette", "trio",
                                     "trio_parallel", "referee.probe", "referee.results",
                                     "tournaments.appeals", "tournaments.complaints",
                                     "referee.sentences", "referee.version", "sample_bots.catalog",
                                     "sample_bots.starters_catalog", "tournaments.checking",
                                     "tournaments.complaints", "tournaments.config", "tournaments.course",
                                     "tournaments.database", "tournaments.exports",
                                     "tournaments.format_tables", "tournaments.game_summary",
                                     "tournaments.gamefiles", "tournaments.journal",
                                     "tournaments.mark_sheets", "tournaments.marks", "tournaments.pseudonyms",
                                     "tournaments.rankings", "tournaments.report", "tournaments.rulings",
                                     "tournaments.service", "tournaments.standing", "tournaments.store",
                                     "tournaments.submissions", "tournaments.summary", "tournaments.tables",
                                     "tournaments.tournament_file", "tournaments.web",
                                     "tournaments.workbook")),
    Rule("tournaments.web.server_file", ("pydantic", "tournaments.cluster.settings",
                                     "tournaments.complaints", "tournaments.service.config")),
    Rule("tournaments.web.routing", ("starlette",), pure=True),
    Rule("tournaments.web.errors",  (), pure=True),
    Rule("tournaments.web.security", ("referee.sentences",), pure=True),
    Rule("tournaments.web.rate_limits", (), pure=True),
    Rule("tournaments.web.cookies", ("itsdangerous", "starlette"), pure=True),
    Rule("tournaments.web.data_directory", ()),
    Rule("tournaments.web.connections", ("hypercorn", "trio", "tournaments.web.rate_limits",
                                     "tournaments.web.security")),
    Rule("tournaments.web.server",  ("hypercorn", "trio", "tournaments.web.connections",
                                     "tournaments.web.security")),
    Rule("tournaments.service.demo", ("trio", "sample_bots.first_legal", "sample_bots.starters_catalog",
                                     "tournaments.course", "tournaments.manifest",
                                     "tournaments.service.service", "tournaments.submissions")),
)
# fmt: on


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def rule_of(module: str) -> Rule:
    """The nearest line of the table.  A line on referee or tournaments is for the package itself only."""
    fitting = [
        rule
        for rule in RULES
        if module == rule.who or (within(module, rule.who) and rule.who not in ("referee", "tournaments"))
    ]
    assert fitting, f"{module} has no line in the table of {Path(__file__).name}"
    return max(fitting, key=lambda rule: len(rule.who))


def imports_of(source: str) -> set[str]:
    """All modules that a source text imports, wherever in it; a name taken from a package counts as its
    module if it is one.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            assert node.module is not None
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else node.module for name in whole}
    return found


def offences(rule: Rule, imports: set[str]) -> list[str]:
    """Those of the imports that a rule does not allow."""
    wrong = []
    for name in sorted(imports):
        if any(within(name, allowed) for allowed in rule.may):
            continue
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names and rule.stdlib and not (rule.pure and top in IMPURE):
            continue
        wrong.append(name)
    return wrong


@pytest.mark.parametrize("module", FILES)
def test_imports(module: str) -> None:
    rule = rule_of(module)
    wrong = offences(rule, imports_of(FILES[module].read_text(encoding="utf-8")))
    assert not wrong, f"{module} may not import {', '.join(wrong)}: see the line {rule.who!r} of the table"


def test_every_line_of_the_table_is_needed() -> None:
    assert [rule.who for rule in RULES if rule.who not in FILES] == []
    assert len({rule.who for rule in RULES}) == len(RULES)


def test_nothing_imports_the_tests() -> None:
    ours = {"tests", *(path.stem for path in (ROOT / "tests").glob("*.py"))} - {"__init__"}
    for path in [*FILES.values(), *(ROOT / "benchmarks").glob("*.py")]:
        tops = {name.partition(".")[0] for name in imports_of(path.read_text(encoding="utf-8"))}
        assert not tops & ours, path


def test_importing_the_rules_costs_nothing_else() -> None:
    """Every bot that uses the rules imports referee/__init__.py: it stays empty."""
    assert (ROOT / "referee" / "__init__.py").read_bytes() == b""


@pytest.mark.parametrize(
    ("who", "source", "wrong"),
    [
        ("referee.match", "import time", ["time"]),
        ("referee.match", "def f():\n    from os.path import join", ["os.path"]),
        ("referee.match", "if 0:\n    import trio as t", ["trio"]),
        ("referee.match", "from referee import bot, clock", ["referee.bot"]),
        ("referee.match", "from referee.bot import now", ["referee.bot"]),
        ("referee.games.kalah", "import protocol.codec", ["protocol.codec"]),
        ("sample_bots.first_legal", "import referee.games.kalah, sys", ["referee.games.kalah"]),
        ("sample_bots.greedy", "from referee.results import Player", ["referee.results"]),
        ("tournaments.standings", "import random; import sqlalchemy", ["random", "sqlalchemy"]),
        ("tournaments.runner", "from tournaments.engines import local", ["tournaments.engines.local"]),
        ("tournaments.cli.play", "from referee.driver import Driver", ["referee.driver"]),
        ("referee", "import sys", ["sys"]),
        ("tournaments.cli.play", "import trio, click, os, tournaments.store", []),
    ],
)
def test_the_test_itself(who: str, source: str, wrong: list[str]) -> None:
    assert offences(rule_of(who), imports_of(source)) == wrong


def test_a_new_module_needs_a_line() -> None:
    for module in ("referee.sandbox", "tournaments.ratings"):
        if module not in {rule.who for rule in RULES}:
            with pytest.raises(AssertionError, match="has no line in the table"):
                rule_of(module)

"""The catalog of the corpus: each bot's sources, the files submitted with it, and its command."""

from dataclasses import dataclass, field
from pathlib import Path

SOURCES = Path(__file__).parent

JAVA = "java -jar bot.jar"
PYTHON = "python3 bot.py"
LUA = "lua5.4 bot.lua"
NODE = "node bot.js"

TOOLS = {
    "java": ("java", "javac"),
    "python": (),
    "cpp": ("g++",),
    "lua": ("lua5.4",),
    "node": ("node",),
    "go": ("go",),
    "rust": ("rustc",),
    "shell": (),
}
"""Programs on PATH that the bots of each language need."""

LOG, BOOK, FAT_JAR = 2_000_000, 3_000_000, 30_000_000
"""Sizes in bytes."""


@dataclass(frozen=True)
class Program:
    """One bot."""

    source: str
    """The main source file's name; for Java, the class that is run."""
    command: str = ""
    """The command in bot.toml; empty for a directory without a manifest."""
    modules: tuple[str, ...] = ()
    """Source files that are submitted beside the main one."""
    submitted: dict[str, int] = field(default_factory=dict)
    """Sizes in bytes of the text files that are submitted with the bot."""
    resources: dict[str, int] = field(default_factory=dict)
    """Sizes in bytes of the jar's resources; text files by their names, else incompressible bytes."""
    library: str = ""
    """A C source file that is compiled into a shared library of the same name."""
    jar: str = ""
    """The class of a jar that a shell script runs."""
    jar_path: str = "bot.jar"
    """The jar's path in the bot's directory."""
    unpacks: bool = False
    """True if the program is inside of a self-extracting one (C++)."""
    quick: bool = False
    """True for bots in the quick selection of tests/corpus/test_corpus.py."""


PROGRAMS = {
    "java-table": Program("TableBot"),
    "java-hashmap": Program("HashMapBot", JAVA),
    "java-executor": Program("ExecutorBot"),
    "java-thread": Program("ThreadBot", JAVA, submitted={"log.txt": LOG}),
    "java-resources": Program(
        "ResourceBot",
        submitted={"data/book.txt": 1000},
        resources={"weights.txt": 1000, "padding.bin": FAT_JAR},
    ),
    "java-slow-start": Program("SlowStartBot"),
    "java-max-memory": Program("MaxMemoryBot"),
    "java-debug": Program("DebugBot", JAVA),
    "java-folder": Program("FolderBot"),
    "java-native": Program("NativeBot", library="nativebot.c"),
    "java-locale": Program("LocaleBot", JAVA, submitted={"output.txt": 1000}),
    "python-plain": Program("plain_bot.py", modules=("kalah.py",)),
    "python-pool": Program("pool_bot.py", modules=("kalah.py",)),
    "python-library": Program("library_bot.py", PYTHON, modules=("kalah.py",), library="kalah.c"),
    "python-sqlite": Program("sqlite_bot.py", modules=("kalah.py",), quick=True),
    "python-helper": Program("helper_bot.py", modules=("kalah.py", "helper.py")),
    "python-book": Program(
        "book_bot.py", PYTHON, modules=("kalah.py",), submitted={"book.txt": BOOK, "log.txt": 1000}
    ),
    "python-home": Program("home_bot.py", modules=("kalah.py",)),
    "cpp-threads": Program("threads_bot.cpp"),
    "cpp-memory": Program("memory_bot.cpp"),
    "cpp-stdio": Program("stdio_bot.cpp", submitted={"output.txt": 1000}),
    "cpp-unpacks": Program("plain_bot.cpp", unpacks=True),
    "lua-log": Program("log_bot.lua", LUA, modules=("kalah.lua",), submitted={"debug.txt": 1000}, quick=True),
    "lua-book": Program("book_bot.lua", LUA, modules=("kalah.lua",), submitted={"book.txt": BOOK}),
    "node-workers": Program("workers_bot.js", NODE, modules=("kalah.js",)),
    "node-log": Program("log_bot.js", NODE, modules=("kalah.js",)),
    "go-routines": Program("routines_bot.go"),
    "go-log": Program("log_bot.go", submitted={"settings.txt": 1000}),
    "rust-threads": Program("threads_bot.rs"),
    "rust-log": Program("log_bot.rs", submitted={"log.txt": LOG}),
    "shell-java": Program("java_bot.sh", jar="TableBot", jar_path="lib/bot.jar"),
    "shell-error-log": Program("error_log_bot.sh", "./bot", jar="DebugBot", submitted={"error.log": 1000}),
    "shell-plain": Program("plain_bot.sh"),
}
"""Name -> bot; the first word of a name is its language, the folder of its sources."""


def language_of(name: str) -> str:
    """Return a bot's language, a key of TOOLS."""
    return name.partition("-")[0]


def tools_of(name: str) -> tuple[str, ...]:
    """Return the programs that are needed to build and run a bot."""
    program = PROGRAMS[name]
    tools = TOOLS[language_of(name)] + (TOOLS["java"] if program.jar else ())
    return (*tools, "gcc") if program.library else tools

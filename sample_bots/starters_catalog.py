"""The starter kits by language: which there are, what they consist of, what they need."""

from dataclasses import dataclass
from pathlib import Path

STARTERS_DIRECTORY = Path(__file__).resolve().parent / "starters"
"""Where the kits lie, one directory each."""


@dataclass(frozen=True)
class Starter:
    """One language that a bot can be begun in."""

    title: str
    """The language's name as people write it."""
    source: str
    """The file that is the bot."""
    programs: tuple[str, ...]
    """What has to be on PATH to build and run it; none for what Kalarena itself runs with."""
    package: str = ""
    """The package of Debian and Ubuntu that has them."""
    aliases: tuple[str, ...] = ()
    """Other names that people may give the language."""

    @property
    def files(self) -> tuple[str, ...]:
        """What is copied; anything else in the directory was made there."""
        return (".gitignore", "README.md", "bot.toml", self.source)


STARTERS: dict[str, Starter] = {
    "python": Starter("Python", "bot.py", (), aliases=("py", "python3")),
    "java": Starter("Java", "Bot.java", ("java", "javac"), "default-jdk-headless"),
    "cpp": Starter("C++", "bot.cpp", ("g++",), "g++", aliases=("c++", "cxx", "cc")),
    "rust": Starter("Rust", "bot.rs", ("rustc",), "rustc", aliases=("rs",)),
    "javascript": Starter("JavaScript", "bot.js", ("node",), "nodejs", aliases=("js", "node", "nodejs")),
    "go": Starter("Go", "bot.go", ("go",), "golang-go", aliases=("golang",)),
}
"""Directory's name, which is the language's name on the command line -> kit."""


def find_starter(language: str) -> str | None:
    """The directory's name for what a user calls a language, in any case; None if there is no kit for it."""
    wanted = language.strip().lower()
    for name, starter in STARTERS.items():
        if wanted in (name, *starter.aliases):
            return name
    return None


def starter_names() -> list[str]:
    """All names that ``find_starter`` knows."""
    return [word for name, starter in STARTERS.items() for word in (name, *starter.aliases)]


def starter_directory(name: str) -> Path:
    """Where the kit of a directory's name lies."""
    return STARTERS_DIRECTORY / name

"""Catalog of the starter kits by language, with their files and required programs."""

from dataclasses import dataclass
from pathlib import Path

STARTERS_DIRECTORY = Path(__file__).resolve().parent / "starters"
"""Directory of the kits, one subdirectory each."""


@dataclass(frozen=True)
class Starter:
    """The starter kit of one language."""

    title: str
    """Name of the language for people."""
    source: str
    """Name of the bot's source file."""
    programs: tuple[str, ...]
    """Programs on PATH that building and running need, beside those that Kalarena itself needs."""
    package: str = ""
    """Package of Debian and Ubuntu with these programs."""
    aliases: tuple[str, ...] = ()
    """Other names of the language."""

    @property
    def files(self) -> tuple[str, ...]:
        """Files to copy; all others in the directory are products of a build."""
        return (".gitignore", "README.md", "bot.toml", self.source)


STARTERS: dict[str, Starter] = {
    "python": Starter("Python", "bot.py", (), aliases=("py", "python3")),
    "java": Starter("Java", "Bot.java", ("java", "javac"), "default-jdk-headless"),
    "cpp": Starter("C++", "bot.cpp", ("g++",), "g++", aliases=("c++", "cxx", "cc")),
    "rust": Starter("Rust", "bot.rs", ("rustc",), "rustc", aliases=("rs",)),
    "javascript": Starter("JavaScript", "bot.js", ("node",), "nodejs", aliases=("js", "node", "nodejs")),
    "go": Starter("Go", "bot.go", ("go",), "golang-go", aliases=("golang",)),
}
"""Name of the directory, which is the language's name on the command line -> kit."""


def find_starter(language: str) -> str | None:
    """Return the directory's name for a user's name of a language, in any case; None if there is no kit."""
    wanted = language.strip().lower()
    for name, starter in STARTERS.items():
        if wanted in (name, *starter.aliases):
            return name
    return None


def starter_names() -> list[str]:
    """Return all names that ``find_starter`` accepts."""
    return [word for name, starter in STARTERS.items() for word in (name, *starter.aliases)]


def starter_directory(name: str) -> Path:
    """Return the directory of a kit."""
    return STARTERS_DIRECTORY / name

"""Resolution of a user's text for a bot to the command that starts the bot."""

import hashlib
import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from referee.adapters.command import DEFAULT_PROTOCOL, can_describe
from referee.games.catalog import parse_game
from referee.games.spec import did_you_mean, parse_spec
from referee.judge.results import CAPABILITIES, Player
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.runtime_paths import behind_shim, home_directory, needed_paths
from sample_bots.catalog import (
    SAMPLE_BOTS,
    BadOptionError,
    check_game,
    needs_kernels,
    play_digest,
    readable_directories,
    sample_bot_command,
    searches,
)
from sample_bots.strong import kernels
from tournaments.bots.errors import BotError
from tournaments.bots.manifest import MANIFEST_FILE, load_manifest
from tournaments.bots.toolchains import find_program

SHARED = ("/tmp", "/var/tmp", "/home/x", "/etc", "/usr")
"""Shared directories: no directory above them is a bot's own."""

SAMPLE_BOTS_CAN = ("openings",)
"""Capabilities of the sample bots; those that search support TIME lines, too."""

NO_PROGRAMS = {".class", ".java", ".c", ".cpp", ".h", ".rs", ".go", ".js", ".txt", ".md", ".toml", ".json"}
"""Suffixes of files that are no programs, even if they are executable.

WSL and VFAT mark every file as executable.
"""

ARCHIVES = {".zip", ".tar", ".tgz", ".gz", ".xz", ".7z", ".rar"}
"""Suffixes of archives, which are handed in by mistake in place of their content."""
COMMANDS = {
    ".js": 'command = ["node", "{file}"]',
    ".class": 'command = ["java", "{name}"]',
    ".java": 'command = ["java", "{name}"] and, on lines of their own, '
    'build = ["javac", "-Xprefer:source", "{file}"] and made = ["{name}.class"]',
    ".c": 'command = ["./{name}"] and, on another line, build = ["cc", "-O2", "-o", "{name}", "{file}"]',
    ".cpp": 'command = ["./{name}"] and, on another line, build = ["c++", "-O2", "-o", "{name}", "{file}"]',
}
"""Suffix of a program that is not run without a manifest -> settings of a manifest that runs it."""

MAX_FILES = 10_000
"""Documented bound on the files of a bot's directory; its digest reads them all."""

SKIPPED_DIRECTORIES = {"__pycache__", ".git", ".venv", "node_modules"}
"""Directories that do not belong to a bot or its digest."""


def resolve_bot(
    text: str,
    base: Path,
    name: str | None = None,
    game: str | None = None,
    *,
    may_build: bool = True,
    build_in: Sandbox | None = None,
    build_within_s: float | None = None,
    rebuild: bool = False,
    protocol: str = "",
) -> Player:
    """Return the player that a text names: a sample bot, a directory, a file, or a command line.

    Relative paths are taken from ``base``.  With ``game``, a spec text, a bot is refused if its manifest
    does not list the game, and built if it is not up to date, or if ``rebuild`` is true.  With a sandbox
    ``build_in`` it is built there, and only if that sandbox confines; without one it is built like any
    command, if ``may_build`` is true.  A build may take ``build_within_s``, and
    ``tournaments.bots.build.BUILD_LIMIT_S`` at most.  ``protocol`` is that of a bot that is no sample bot
    and declares none (``referee.adapters.command.PROTOCOLS``).
    Raises BotError.
    """
    if not text.strip():
        raise BotError("an empty text names no bot")
    if "\0" in text:
        raise BotError(f"{text!r} names no bot: it holds a NUL character")
    try:
        if sample_bot_command(text) is not None:
            return _sample_bot(text, base, name, game)
    except BadOptionError as error:
        raise BotError(str(error)) from error
    path = _existing_path(base, text)
    if path is not None and path.is_dir():
        confining = build_in if build_in is not None and build_in.tier.confines else None
        builder = _Builder(may_build and build_in is None, confining, build_within_s, rebuild)
        return _directory_bot(path, name, game, builder, protocol)
    if path is not None:
        digest = _digest([path], path.parent)
        bot = Player(name or path.stem, _file_command(path), str(path.parent), digest, reads=(str(path),))
    else:
        bot = _command_line(text, base, name)
    return _speaking(bot, protocol, game)


def _speaking(player: Player, protocol: str, game: str | None, *, is_declared: bool = False) -> Player:
    """Return the player with the adapter of its protocol, if it needs one.

    ``is_declared``: whether the bot's files, and so its digest, name the protocol.  Raises BotError.
    """
    if protocol in ("", DEFAULT_PROTOCOL):
        return player
    if game is not None and not can_describe(protocol, parse_game(game)):
        raise BotError(f"{player.name} cannot play {game}: its protocol {protocol} cannot describe the board")
    digest = player.digest
    if not is_declared:
        digest = hashlib.sha256(f"{protocol}\0{digest}".encode()).hexdigest()
    return replace(player, protocol=protocol, digest=digest, capabilities=CAPABILITIES)


def _sample_bot(text: str, base: Path, name: str | None, game: str | None) -> Player:
    """Return the player of a sample bot's text; with ``game``, compile its search code if needed.

    Raises BadOptionError.
    """
    rules = None if game is None else parse_game(game)
    if rules is not None:
        check_game(text, rules)
    reads = set(map(str, readable_directories()))
    how, is_compiled = "", True
    if needs_kernels(text, rules):
        try:
            reads.add(str(kernels.directory() if rules is None else kernels.prepare()))
        except kernels.NotPreparedError as error:
            how = f"its search could not be compiled, and runs in plain Python, slowly: {error}"
            is_compiled = False
    command = sample_bot_command(text, rules, compiled=is_compiled) or ()
    digest = play_digest(text)
    can = (*SAMPLE_BOTS_CAN, "time") if searches(text) else SAMPLE_BOTS_CAN
    return Player(name or text, tuple(command), str(base.resolve()), digest, can, how, tuple(sorted(reads)))


def _existing_path(base: Path, text: str) -> Path | None:
    """Return the existing path that a text names; None if there is none, or the text is no path."""
    try:
        path = (base / Path(text).expanduser()).resolve()
        return path if path.exists() else None
    except (OSError, RuntimeError):  # too long for a path; home of an unknown user; a loop of links
        return None


def _directory_bot(
    directory: Path, name: str | None, game: str | None, builder: "_Builder", protocol: str
) -> Player:
    """Return the bot of a directory: by its manifest, else by its files."""
    manifest = load_manifest(directory)
    if manifest is None:
        try:
            file = _entry_point(directory)
        except PermissionError as error:
            raise BotError(f"{directory} cannot be read: {error.strerror}") from error
        command = _file_command(file)
        how = f"no {MANIFEST_FILE}; {file.name} was found and is run as: {shlex.join(command)}"
        digest = _directory_digest(directory)
        bot = Player(name or directory.name, command, str(directory), digest, (), how, (str(directory),))
        return _speaking(bot, protocol, game)
    if game is not None:
        family = parse_spec(game).name
        if manifest.games is not None and family not in manifest.games:
            raise BotError(
                f"{directory} does not play {family}: its {MANIFEST_FILE} says games = {manifest.games}"
            )
        if manifest.build is not None:
            builder.bring_up_to_date(directory, manifest.build, manifest.products)
    bot = Player(
        name or manifest.name or directory.name,
        _manifest_command(directory, manifest.command, built=game is not None or manifest.build is None),
        str(directory),
        _directory_digest(directory),
        tuple(sorted(set(manifest.capabilities))),
        f"as its {MANIFEST_FILE} says",
        (str(directory),),
    )
    if manifest.protocol is None:
        return _speaking(bot, protocol, game)
    return _speaking(bot, manifest.protocol, game, is_declared=True)


@dataclass(frozen=True, slots=True)
class _Builder:
    """Permission and means to build bots."""

    may_build: bool
    """True if builds may be run without a sandbox."""
    sandbox: Sandbox | None
    """Confining sandbox for builds; None if there is none."""
    within_s: float | None
    """Time limit of a build in seconds, if less than usual."""
    rebuild: bool
    """True if products that seem up to date are built, too."""

    def bring_up_to_date(self, directory: Path, command: list[str], products: list[str]) -> None:
        """Build products that are missing, or older than their sources.  Raises BotError."""
        # Most bots are built already, or need no build: these modules take time to import.
        from tournaments.bots.build import build, is_outdated
        from tournaments.bots.build_products import ProductError, product_names

        able = self.may_build or self.sandbox is not None
        if self.sandbox is not None:
            try:
                product_names(directory, products, ())  # other existing files are no part of the bot
            except ProductError as error:
                raise BotError(f"{directory}: its build cannot make what it says: {error}") from error
        missing = [name for name in products if not (directory / name).exists()]
        if missing and not able:
            raise BotError(
                f"{directory} has to be built first ({', '.join(missing)} is not there), and its build "
                f"command {shlex.join(command)!r} is not run for untrusted bots, "
                "since nothing here confines a build: build it where that is safe"
            )
        if missing or (able and (self.rebuild or is_outdated(directory, products, SKIPPED_DIRECTORIES))):
            build(directory, command, products, self.sandbox, self.within_s)


def _manifest_command(directory: Path, words: list[str], *, built: bool) -> tuple[str, ...]:
    program = words[0]
    if os.sep in program:
        path = Path(os.path.abspath(directory / program))  # noqa: PTH100 - keeps links as they are
        if built and not _is_file(path):
            raise BotError(
                f"{directory}: its {MANIFEST_FILE} names the program {program}, which is not there"
            )
        if _is_file(path) and _needs_python(path):
            return (sys.executable, str(path), *words[1:])
        if built and not os.access(path, os.X_OK):
            raise BotError(_not_executable(path))
        return (str(path), *words[1:])
    found = find_program(program)
    if found is None:
        raise BotError(
            f"{directory}: its {MANIFEST_FILE} names the program {program!r}, which is not on PATH"
        )
    return (os.path.abspath(found), *words[1:])  # noqa: PTH100


def _entry_point(directory: Path) -> Path:
    """Return the file to run in a bot's directory.

    This is bot.py, else its one jar, else its one executable file, else its one Python file, else its one
    zipped Python program.
    """
    script = directory / "bot.py"
    if script.is_file():
        return script
    files = sorted(path for path in directory.iterdir() if _is_file(path) and not path.name.startswith("."))
    for kind, found in (
        ("jar files", [path for path in files if path.suffix == ".jar"]),
        ("executable files", [path for path in files if _is_program(path)]),
        ("executable .js files", [path for path in files if _is_script_of_node(path)]),
        ("Python files", [path for path in files if path.suffix == ".py"]),
        (".pyz files", [path for path in files if path.suffix == ".pyz"]),
    ):
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(path.name for path in found)
            raise BotError(
                f"{directory} holds several {kind}, {names}: name the one to run with command = [...] in "
                f"its {MANIFEST_FILE}"
            )
    raise BotError(
        f"{directory} holds no bot: expected {MANIFEST_FILE}, bot.py, one .jar file, one executable file "
        f"or one Python file{_instead_of_a_bot(directory)}"
    )


def _instead_of_a_bot(directory: Path) -> str:
    """Return what a directory holds in place of a bot, with the remedy, to end a sentence; often empty."""
    paths = sorted(path for path in directory.iterdir() if not path.name.startswith((".", "__")))
    for path in paths:
        if path.is_symlink() and not path.exists():
            return (
                f". {path.name} is a link to {path.readlink()}, which is not there: put the file itself there"
            )
    for path in paths:
        if path.suffix.lower() in ARCHIVES:
            return f". {path.name} is an archive: unpack it first"
    programs = [path for path in paths if path.suffix in COMMANDS]
    if programs:
        path = programs[0]
        needs = f". {path.name} needs a {MANIFEST_FILE} beside it with its command"
        if len(programs) > 1:
            return f"{needs} (docs/bots.md)"
        command = COMMANDS[path.suffix].format(file=path.name, name=path.stem)
        return f"{needs}, such as {command} (docs/bots.md)"
    inside = next((name for name in paths if name.is_dir() and not name.is_symlink()), None)
    if inside is not None:
        return f". Is the bot in the folder {inside.name}? Then name that folder, or move its files up"
    return ""


def _is_program(path: Path) -> bool:
    """Return whether a file is a program, and not only executable on its file system like every file."""
    return os.access(path, os.X_OK) and path.suffix not in NO_PROGRAMS


def _is_script_of_node(path: Path) -> bool:
    return path.suffix == ".js" and os.access(path, os.X_OK | os.R_OK) and _names_interpreter(path)


def _file_command(path: Path) -> tuple[str, ...]:
    """Return the command that runs a file."""
    if not os.access(path, os.R_OK):
        raise BotError(f"{path} cannot be read")
    # bot.py runs with the current interpreter even if it is executable: `env python3` may be a slow shim.
    if path.name == "bot.py" or _needs_python(path):
        return (sys.executable, str(path))
    if path.suffix == ".jar":
        java = find_program("java")
        if java is None:
            raise BotError(f"{path} needs java, which is not on PATH")
        return (java, "-jar", str(path))
    if not os.access(path, os.X_OK):
        if path.suffix.lower() in ARCHIVES:
            raise BotError(f"{path} is an archive: unpack it, and name the folder that comes out of it")
        raise BotError(_not_executable(path))
    return (str(path),)


def _needs_python(path: Path) -> bool:
    """Return whether a file is a readable Python program that Linux cannot start by itself."""
    # On some file systems every file is executable: a script without a shebang cannot be started, either.
    return (
        path.suffix in (".py", ".pyz")
        and os.access(path, os.R_OK)
        and not (os.access(path, os.X_OK) and _names_interpreter(path))
    )


def _names_interpreter(path: Path) -> bool:
    """Return whether Linux finds the interpreter that a file's first line names.

    With the line ends of Windows, CR would belong to the interpreter's name.
    """
    line = path.read_bytes().partition(b"\n")[0]
    return line.startswith(b"#!") and not line.endswith(b"\r")


def _not_executable(path: Path) -> str:
    return (
        f"{path} is not executable: chmod +x {shlex.quote(str(path))}, or write the command that runs it, "
        'such as "node bot.js" or "java -cp . Bot"'
    )


def _command_line(text: str, base: Path, name: str | None) -> Player:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BotError(f"{text!r} is no command line: {error}") from error
    program = words[0]
    if os.sep in program:
        # Not resolved: a program may depend on the name by which it was called.
        existing = _existing_path(base, program) and Path(program).expanduser()
        found = os.path.abspath(base / existing) if existing else None  # noqa: PTH100
        if found and (not _is_file(Path(found)) or not os.access(found, os.X_OK)):
            raise BotError(_not_executable(Path(found)))
    else:
        on_path = shutil.which(program)
        found = on_path and behind_shim(os.path.abspath(on_path))  # noqa: PTH100 - PATH may hold relative folders
    if found is None:
        what = f"no such program: {_shorten(program)}" if len(words) > 1 else f"no such bot: {_shorten(text)}"
        hint = ""
        if len(words) == 1:
            hint = did_you_mean(program.partition(":")[0], SAMPLE_BOTS) or did_you_mean(
                program, _names_in(base)
            )
        raise BotError(
            f"{what}{hint} (looked for a sample bot [{', '.join(SAMPLE_BOTS)}], "
            f"a path from {base.resolve()}, and a program on PATH)"
        )
    files = [path for word in words[1:] if (path := _existing_path(base, word)) and _is_file(path)]
    if os.sep in program:
        files.append(Path(found))
    own_name = files[0].stem if files else Path(program).name
    named = [path for word in words[1:] for path in _named_paths(base, word) if _is_part(path)]
    for path in named:
        if path.is_dir():  # of a class path, for example
            for kind in ("*.class", "*.jar"):
                files += sorted(path.rglob(kind))[:MAX_FILES]
        elif path not in files:
            files.append(path)
    reads = set(map(str, named))
    reads |= {str(path) for path in needed_paths(Path(found), trusted=True)}
    digest = _digest(files, None, text)
    command = (found, *words[1:])
    return Player(name or own_name, command, str(base.resolve()), digest, reads=tuple(sorted(reads)))


def _named_paths(base: Path, word: str) -> list[Path]:
    """Return the existing paths that a word of a command line names.

    Examples are ``net.bin``, ``--weights=net.bin``, ``bin:lib/gson.jar`` and ``--class-path=bin:lib/*``,
    where the star stands for all jars.
    """
    if whole := _existing_path(base, word):
        return [whole]
    parts = [part for part in word.rpartition("=")[2].split(":") if part]
    return [path for part in parts if (path := _existing_path(base, part.removesuffix("*")))]


def _is_part(path: Path) -> bool:
    """Return whether a path of a command line can belong to the bot: not a whole home, /tmp, or /proc."""
    inside = any(path.is_relative_to(place) for place in ("/proc", "/sys", "/dev", "/run"))
    home = home_directory()
    shared = SHARED if home is None else (str(home.resolve()), *SHARED)
    return not inside and not any(Path(place).is_relative_to(path) for place in shared)


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir())[:MAX_FILES]
    except OSError:
        return []


def _shorten(text: str, limit: int = 80) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "...")


def _directory_digest(directory: Path) -> str:
    files = []
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(set(folders) - SKIPPED_DIRECTORIES)
        # Pipes, sockets and broken links, which editors leave behind, do not belong to a bot.
        files += [Path(folder, name) for name in sorted(names) if _is_file(Path(folder, name))]
        if len(files) > MAX_FILES:
            raise BotError(f"{directory} holds more than {MAX_FILES} files: is it the directory of a bot?")
    return _digest(files, directory)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _digest(files: list[Path], root: Path | None, text: str = "") -> str:
    """Return the SHA-256 of a text and the files' names (below ``root``, if given) and contents."""
    total = hashlib.sha256(f"{text}\0".encode("utf-8", "surrogatepass") if text else b"")
    for path in files:
        name = str(path.relative_to(root)) if root else path.name
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BotError(f"{path} cannot be read: {error.strerror}") from error
        total.update(f"{name}\0{content}\n".encode("utf-8", "surrogatepass"))  # a name may be any bytes
    return total.hexdigest()

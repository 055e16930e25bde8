"""Builds the bots of the corpus: one directory for each, as a student would submit it."""

import fcntl
import hashlib
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.corpus.programs import PROGRAMS, SOURCES, language_of, tools_of

AT_ONCE = 2
BUILD_LIMIT_S = 1200.0
"""For one compiler; Go compiles its standard library first, a minute of CPU time."""
UNPACKED_PADDING = 8_000_000
"""Bytes that the self-extracting program carries beside its bot; PyInstaller's carry about as many."""
KEPT_S = 24 * 3600
"""Another process may still use bots that were built from earlier sources."""
FINISHED = "finished"
"""A file that stands in a directory of bots once all of them are built."""


def missing_tools(name: str) -> list[str]:
    """Return the programs that are not there but needed for a bot."""
    return [tool for tool in tools_of(name) if shutil.which(tool) is None]


def built_corpus(wanted: Iterable[str] = PROGRAMS) -> Path:
    """Return the directory that holds a directory for each wanted bot that can be built here.

    The bots are built at the first call. Other test processes, and later runs with the same sources and
    tools, find them there.
    """
    root = Path(tempfile.gettempdir()) / f"kalarena-corpus-{os.geteuid()}"
    root.mkdir(mode=0o755, exist_ok=True)
    if root.stat().st_uid != os.geteuid():
        raise RuntimeError(f"{root} belongs to somebody else")
    names = [name for name in wanted if not missing_tools(name)]
    corpus = root / _digest(names)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (corpus / FINISHED).exists():
            shutil.rmtree(corpus, ignore_errors=True)
            _remove_old(root)
            corpus.mkdir()
            _build_all(names, corpus, root / "go-cache")
            (corpus / FINISHED).touch()
    return corpus


def _remove_old(root: Path) -> None:
    """Remove what earlier sources were built into."""
    for marker in root.glob(f"*/{FINISHED}"):
        if time.time() - marker.stat().st_mtime > KEPT_S:
            shutil.rmtree(marker.parent)


def _digest(names: list[str]) -> str:
    digest = hashlib.sha256(" ".join(names).encode())
    for path in sorted(SOURCES.rglob("*")):
        if path.is_file() and path.suffix not in (".pyc", ".md"):
            digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build_all(names: list[str], corpus: Path, go_cache: Path) -> None:
    classes = corpus / ".classes"
    environment = {**os.environ, "GOCACHE": str(go_cache), "GO111MODULE": "off", "CGO_ENABLED": "0"}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        compiled: Future[None] | None = None
        if any("javac" in tools_of(name) for name in names):
            compiled = pool.submit(_compile_java, classes, environment)

        def assemble(name: str) -> None:
            if compiled is not None and "javac" in tools_of(name):
                compiled.result()
            (corpus / name).mkdir()
            _assemble(name, corpus / name, classes, environment)

        list(pool.map(assemble, names))


def _assemble(name: str, folder: Path, classes: Path, environment: dict[str, str]) -> None:
    language, program = language_of(name), PROGRAMS[name]
    source, bot = SOURCES / language / program.source, folder / "bot"
    match language:
        case "java":
            _make_jar(program.source, program.resources, classes, folder / "bot.jar")
        case "cpp":
            _compile_cpp(source, bot, environment)
            if program.unpacks:
                _make_self_extracting(bot, environment)
        case "go":
            common = str(source.with_name("kalah.go"))
            _run(["go", "build", "-o", str(bot), common, str(source)], environment)
        case "rust":
            _run(["rustc", "-O", "--edition=2021", "-o", str(bot), str(source)], environment)
        case "shell":
            shutil.copyfile(source, bot)
            bot.chmod(0o755)
            if program.jar:
                _make_jar(program.jar, {}, classes, folder / program.jar_path)
        case _:
            shutil.copyfile(source, bot.with_suffix(source.suffix))
    for module in program.modules:
        shutil.copyfile(source.with_name(module), folder / module)
    if program.library:
        includes = _java_includes() if language == "java" else []
        library = folder / f"lib{Path(program.library).stem}.so"
        options = ["-O1", "-shared", "-fPIC", *includes]
        _run(["gcc", *options, "-o", str(library), str(source.with_name(program.library))], environment)
    for file, size in program.submitted.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(_text(size), encoding="ascii")
    if program.command:
        (folder / "bot.toml").write_text(f"command = {program.command!r}\n", encoding="ascii")


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=BUILD_LIMIT_S, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _compile_java(classes: Path, environment: dict[str, str]) -> None:
    sources = sorted(map(str, (SOURCES / "java").glob("*.java")))
    _run(["javac", "-d", str(classes), *sources], environment)


def _make_jar(main: str, resources: dict[str, int], classes: Path, jar: Path) -> None:
    jar.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\nMain-Class: {main}\n")
        for path in (classes / "Kalah.class", classes / f"{main}.class"):
            archive.write(path, path.name)
        for name, size in resources.items():
            archive.writestr(name, _text(size) if name.endswith(".txt") else _padding(size))


def _compile_cpp(source: Path, program: Path, environment: dict[str, str]) -> None:
    _run(["g++", "-O1", "-std=c++17", "-pthread", "-o", str(program), str(source)], environment)


def _make_self_extracting(bot: Path, environment: dict[str, str]) -> None:
    """Replace a program by one that carries it."""
    content = bot.read_bytes() + _padding(UNPACKED_PADDING)
    _compile_cpp(SOURCES / "cpp" / "unpacks.cpp", bot, environment)
    with bot.open("ab") as file:
        file.write(content + struct.pack("<Q", len(content)))


def _java_includes() -> list[str]:
    javac = shutil.which("javac")
    assert javac is not None
    folder = Path(javac).resolve().parents[1] / "include"
    return [f"-I{folder}", f"-I{folder / 'linux'}"]


def _text(size: int) -> str:
    """Return about ``size`` bytes of numbered lines, as an opening book or a log may have."""
    line = "{} 7 7 7 7 7 7 7\n"
    return "".join(line.format(number) for number in range(1, size // len(line) + 2))


def _padding(size: int) -> bytes:
    """Return bytes that cannot be compressed."""
    return random.Random(size).randbytes(size)

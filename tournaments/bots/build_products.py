"""Transfer of a confined build's products into the bot's directory: only declared, plain files."""

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from referee.process.confined_build import MAX_UNDECLARED
from referee.sandbox.build_artifacts import Artifact, Kind

CLASS = ".class"
LONGEST_SHOWN = 120
"""Characters of the longest file name in a message: a build chooses its names."""


class ProductError(Exception):
    """A product is refused; the message begins with its name and gives the reason."""


def product_names(directory: Path, products: Sequence[str], kept: Collection[str]) -> list[str]:
    """Return the products as paths from the directory.  Raises ProductError.

    ``kept`` are names and suffixes of files that no build may write.
    """
    names = []
    for product in products:
        # Not resolved: a link is refused, not followed.
        path = PurePosixPath(os.path.normpath(directory / product))
        if not path.is_relative_to(directory) or path == PurePosixPath(directory):
            raise ProductError(f"{product!r} is not below the bot's directory")
        name = path.relative_to(directory)
        if _is_kept(name, kept):
            raise ProductError(f"{str(name)!r} is a source, or none of what a build may write")
        names.append(str(name))
    return names


def _is_kept(name: PurePosixPath, kept: Collection[str]) -> bool:
    return name.suffix.lower() in kept or bool(set(name.parts) & set(kept))


def check_products(
    artifacts: Sequence[Artifact], names: Sequence[str], kept: Collection[str]
) -> dict[PurePosixPath, Artifact]:
    """Return the files to write, by path.  Raises ProductError if a product is invalid or missing.

    Files with names that are ``kept`` are left out of directories.
    """
    found: dict[PurePosixPath, Artifact] = {}
    names_beside = (str(PurePosixPath(one.name)) for one in artifacts if one.kind is Kind.UNDECLARED)
    undeclared = [name for name in names_beside if len(name) <= LONGEST_SHOWN][:MAX_UNDECLARED]
    for artifact in artifacts:
        path = PurePosixPath(artifact.name)
        if artifact.kind is Kind.UNDECLARED or _is_kept(path, kept):
            continue
        if path.is_absolute() or ".." in path.parts or not path.parts or not _is_wanted(path, names):
            raise ProductError(f"{artifact.name!r} is no product that was declared")
        if artifact.kind is Kind.LINK:
            raise ProductError(f"{str(path)!r} is a link, not a file")
        if artifact.kind is Kind.OTHER:
            raise ProductError(f"{str(path)!r} is not a file")
        found[path] = artifact
    for name in names:
        if not any(path.is_relative_to(name) for path in found):
            raise ProductError(f"{name!r} was not made")
    # A script is seldom made by a build: it starts what was made.
    if undeclared and all(one.content.startswith(b"#!") for one in found.values()):
        raise ProductError(
            f"{', '.join(map(repr, names))} was not written anew, and other files were: name all those that "
            f"the bot needs, as in made = {json.dumps(undeclared)}"
        )
    return found


def _is_wanted(path: PurePosixPath, names: Sequence[str]) -> bool:
    if path.suffix == CLASS and any(name.endswith(CLASS) for name in names):
        return True
    return any(path.is_relative_to(name) for name in names)


def write_products(directory: Path, files: dict[PurePosixPath, Artifact]) -> None:
    """Write files below a directory, each in one step.  Raises ProductError, OSError.

    No link in the directory is followed, and a file with the name of a product is replaced, not written to.
    """
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path, artifact in files.items():
            folder = _folder(root, path)
            try:
                _write(folder, path, artifact)
            finally:
                os.close(folder)
    finally:
        os.close(root)


def _folder(root: int, path: PurePosixPath) -> int:
    """Return a descriptor of a product's directory, which is created if needed."""
    here = os.dup(root)
    try:
        for part in path.parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=here)
            try:
                inner = os.open(
                    part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here
                )
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):  # a link is no directory, either
                    raise
                raise ProductError(f"{str(path)!r} lies below {part!r}, which is no directory") from error
            os.close(here)
            here = inner
    except BaseException:
        os.close(here)
        raise
    return here


def _write(folder: int, path: PurePosixPath, artifact: Artifact) -> None:
    part = f".{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o600, dir_fd=folder), "wb") as file:
            file.write(artifact.content)
            # A bot may run as another user.
            os.fchmod(file.fileno(), 0o755 if artifact.kind is Kind.PROGRAM else 0o644)
        try:
            os.rename(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError as error:
            raise ProductError(f"{str(path)!r} is a directory here") from error
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        raise

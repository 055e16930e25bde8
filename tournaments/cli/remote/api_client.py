"""Client that submits a bot to a server over its HTTP API, and follows the check there.

It uses the standard library alone, since it runs on students' machines.
"""

import http.client
import io
import json
import os
import ssl
import stat
import unicodedata
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

from tournaments.bots.errors import ManifestError
from tournaments.bots.manifest import load_manifest
from tournaments.bots.upload.limits import size_text
from tournaments.bots.upload.names import PYVENV, passed_over

ANSWER_LIMIT_S = 30.0
"""Time limit in seconds of an answer, and of each block of an upload; checks are asynchronous, so that each
answer comes at once."""
LONGEST_ANSWER = 16 << 20
"""Maximum bytes of an answer; a report of a check has some 100 kB."""
POLL_S = 1.0
"""Seconds between two requests for the same; the server permits an account twice as many."""
POLLS_LOST = 30
"""Maximum failures in a row (while a server restarts or is asked too often) before following is given up."""
TOO_MANY = 429
MOST_BYTES = 1 << 30
"""Maximum size in bytes of a bot's files.  A server may accept less; more is probably a whole home."""
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every entry, the earliest in a zip archive: the same files make the same archive."""


class SubmitError(Exception):
    """Submitting failed; the message gives the reason and the remedy."""

    def __init__(self, message: str, *, is_ours: bool = False, may_pass: bool = False) -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """True if the server or the network failed, and the user's input is not at fault."""
        self.may_pass = is_ours or may_pass
        """True if the same request may succeed later."""


@dataclass(frozen=True)
class Package:
    """An upload."""

    name: str
    content: bytes
    left_out: tuple[str, ...]
    """Names in the folder that do not belong to the bot, or that its build makes."""


def pack(path: Path, most_bytes: int = MOST_BYTES) -> Package:
    """Return a bot's folder as a zip archive, or its file unchanged.  Raises SubmitError."""
    try:
        return _packed(path, most_bytes)
    except PermissionError as error:  # in a folder that may be listed, but not entered
        raise _unreadable(error.filename, error) from error


def _is_in_environment(folder: Path, top: Path) -> bool:
    """Return whether a folder of a bot belongs to a virtual environment of Python, whose links lead out."""
    inside = [folder, *folder.parents]
    return any((each / PYVENV).is_file() for each in inside if each != top and each.is_relative_to(top))


def _packed(path: Path, most_bytes: int) -> Package:
    """Return the package.  Raises SubmitError, and PermissionError for a folder without access."""
    if path.is_file():
        _check_name(path, path.name)
        return Package(path.name, _read(path), ())
    if not path.is_dir():
        raise SubmitError(f"{path}: there is no such folder or file; name the folder with your bot in it")
    try:
        manifest = load_manifest(path)
    except ManifestError as error:
        raise SubmitError(str(error)) from error
    made = manifest.products if manifest is not None and manifest.build is not None else []
    made_here = {os.path.normpath(product) for product in made}
    _check_name(path, path.resolve().name)
    archive = io.BytesIO()
    left_out: list[str] = []
    total = 0

    def refuse(error: OSError) -> NoReturn:
        raise _unreadable(error.filename, error)

    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for folder, folders, names in os.walk(path, onerror=refuse):
            here = Path(folder).relative_to(path)
            for name in sorted([*folders, *names]):
                inner = (here / name).as_posix()
                is_link = Path(folder, name).is_symlink() and _is_in_environment(Path(folder), path)
                if passed_over(inner) is not None or inner in made_here or is_link:
                    left_out.append(inner)
            folders[:] = sorted(name for name in folders if (here / name).as_posix() not in left_out)
            for name in folders:
                if Path(folder, name).is_symlink():
                    raise SubmitError(
                        f"{Path(folder, name)} is a link to a folder, which would not be followed: put the "
                        "folder itself there, or remove the link"
                    )
            for name in sorted(names):
                inner = (here / name).as_posix()
                file = Path(folder, name)
                if inner in left_out:
                    continue
                _check_name(file, inner)
                if not file.is_file():
                    raise SubmitError(f"{file} is no file (a broken link, a pipe or a device): remove it")
                content = _read(file)
                total += len(content)
                if total > most_bytes:
                    raise SubmitError(
                        f"{path} holds more than {size_text(most_bytes)}, counted up to {inner}: "
                        "is it the folder of a bot? Leave out what the bot does not need"
                    )
                entry = zipfile.ZipInfo(inner, FIRST_DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                executable = file.stat().st_mode & stat.S_IXUSR
                entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
                zipped.writestr(entry, content)
    if total == 0:
        raise SubmitError(f"{path} holds nothing to submit; name the folder with your bot in it")
    return Package(f"{path.resolve().name or 'bot'}.zip", archive.getvalue(), tuple(left_out))


def _check_name(path: Path, name: str) -> None:
    """Raise SubmitError if a name that is sent for a path is not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise SubmitError(f"{str(path)!a}: this name is not UTF-8, and cannot be sent: rename it") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(path: Path | str, error: OSError) -> SubmitError:
    return SubmitError(f"{path} cannot be read: {error.strerror}: make it readable, or remove it")


class Client:
    """Client of one server's API, with one token."""

    def __init__(self, server: str, token: str) -> None:
        """``server`` is the address of its first page.  Raises SubmitError."""
        wrong = f"{server!r} is no address of a server, such as https://bots.example.org"
        try:
            parts = urlsplit(server if "://" in server else f"https://{server}")
            name = unicodedata.normalize("NFC", parts.hostname or "")
            host = name.encode("idna").decode("ascii")
            port = "" if parts.port is None else f":{parts.port}"
            path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        except ValueError as error:  # brackets, a name, a port or characters that no address has
            raise SubmitError(wrong) from error
        if parts.scheme not in ("http", "https") or not host:
            raise SubmitError(wrong)
        # Browsers follow a later rule than Python: with "ss" for a sharp s the token would go elsewhere.
        if not name.isascii() and host.encode("ascii").decode("idna") != name:
            raise SubmitError(
                f"{server!r}: give the server's name in ASCII, as in https://xn--bcher-kva.example"
            )
        if any(character.isspace() or not character.isprintable() for character in token) or not token:
            raise SubmitError("the token is empty, or has characters that none has: copy it again")
        try:
            token.encode("ascii")
        except UnicodeEncodeError as error:
            raise SubmitError("the token has characters that none has: copy it again") from error
        self.exposes_token = parts.scheme == "http" and not _is_this_machine(host)
        """True if the token can be read on the way to the server."""
        self.base = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{path}"
        self._token = token
        self._opener = urllib.request.build_opener(_NoRedirects)

    def submit(self, package: Package) -> dict[str, Any]:
        """Send an upload; return the server's answer (``SubmissionAnswer``).  Raises SubmitError."""
        query = urlencode({"name": package.name})
        return self._request("POST", f"/api/v1/submissions?{query}", package.content)

    def version(self, number: int) -> dict[str, Any]:
        """Return a version and the report of its check (``VersionAnswer``); ``number`` is its id."""
        return self._request("GET", f"/api/v1/submissions/{number}")

    def log(self, number: int, after: int) -> dict[str, Any]:
        """Return the lines of the log after the first ``after`` (``LogAnswer``)."""
        return self._request("GET", f"/api/v1/submissions/{number}/log?after={after}")

    def follow(self, number: int, on_line: Callable[[str], None], wait: Callable[[float], None]) -> None:
        """Call ``on_line`` with each line of the check's log until its end.  Raises SubmitError.

        A server that does not answer for a while is polled again: accepted uploads are not lost.
        """
        after = 0
        while True:
            answer = self.patiently(partial(self.log, number, after), wait)
            if answer["next"] < after:  # the check was restarted
                after = 0
                continue
            for line in answer["lines"]:
                on_line(line)
            after = answer["next"]
            if answer["is_over"]:
                return
            if not answer["lines"]:
                wait(POLL_S)

    def patiently(self, call: Callable[[], dict[str, Any]], wait: Callable[[float], None]) -> dict[str, Any]:
        """Return the answer of a call about something that the server has accepted already.

        The call is repeated while the server restarts or is asked too often.  Raises SubmitError, with
        ``is_ours`` true: after the acceptance, no failure is one of the user's input.
        """
        lost = 0
        while True:
            try:
                return call()
            except SubmitError as error:
                lost += 1
                if not error.may_pass or lost > POLLS_LOST:
                    raise SubmitError(str(error), is_ours=True) from error
            wait(POLL_S)

    def challenge(self, opponent: str, pairs: int, bot: str) -> dict[str, Any]:
        """Challenge a bot; return the server's answer (``ChallengeAnswer``).  Raises SubmitError."""
        body = json.dumps({"opponent": opponent, "pairs": pairs, "bot": bot}).encode()
        return self._request("POST", "/api/v1/challenges", body)

    def challenge_now(self, number: int) -> dict[str, Any]:
        """Return the state of a challenge (``ChallengeAnswer``).  Raises SubmitError."""
        return self._request("GET", f"/api/v1/challenges/{number}")

    def opponents(self) -> dict[str, Any]:
        """Return the bots that can be challenged (``OpponentsAnswer``).  Raises SubmitError."""
        return self._request("GET", "/api/v1/opponents")

    @property
    def token(self) -> str:
        """The token."""
        return self._token

    def page(self, path: str) -> str:
        """Return the address of a page for a browser."""
        return self.base + quote(path, safe="/?=&#%")

    def _request(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        # The time limit counts for each block of a file, but for the whole of a body that is one of bytes.
        data = None if body is None else io.BytesIO(body)
        request = urllib.request.Request(self.base + path, data, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/octet-stream")
            request.add_header("Content-Length", str(len(body)))
        try:
            try:
                with self._opener.open(request, timeout=ANSWER_LIMIT_S) as answer:
                    text = answer.read(LONGEST_ANSWER + 1)
                    if answer.length and len(text) <= LONGEST_ANSWER:
                        raise http.client.IncompleteRead(text, answer.length)
            except urllib.error.HTTPError as error:
                with error:
                    self._raise_refusal(error.code, error.read(LONGEST_ANSWER), error.headers.get("Location"))
        except urllib.error.URLError as error:
            failure = f"cannot be reached: {_reason(error.reason)}"
            is_cut_off = isinstance(error.reason, BrokenPipeError | ConnectionResetError)
            if is_cut_off and data is not None and data.tell():
                failure = "ended the transfer: is the upload too large, or the connection too slow?"
            raise SubmitError(f"{self.base} {failure}", is_ours=True) from error
        except (OSError, http.client.HTTPException) as error:
            raise SubmitError(f"{self.base} did not answer: {_reason(error)}", is_ours=True) from error
        found = _json(text)
        if found is None or len(text) > LONGEST_ANSWER:
            raise SubmitError(
                f"{self.base} does not answer like a kalarena server: is this its address?", may_pass=True
            )
        return found

    def _raise_refusal(self, status: int, text: bytes, location: str | None) -> NoReturn:
        found = _json(text)
        message = ""
        if found is not None and isinstance(found.get("error"), str):
            message = found["error"]
        is_of_proxy = not message  # while the server restarts
        if status in (301, 302, 303, 307, 308):
            raise SubmitError(f"{self.base} has moved to {location or 'elsewhere'}: give that address")
        if not message:
            message = f"the server answered with status {status}, and not like a kalarena server"
        raise SubmitError(message, is_ours=status >= 500, may_pass=is_of_proxy or status == TOO_MANY)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirects: the token is for this server."""

    def redirect_request(self, *_arguments: Any) -> None:
        """Follow no redirect."""


def _json(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a text; None if it is no object."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def tls_failure(error: ssl.SSLError) -> str:
    """Return the reason for which no TLS connection was made, without the host."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its TLS certificate was not accepted ({error.verify_message})"
    return f"no TLS connection could be made ({error.reason or error})"


def _reason(error: object) -> str:
    if isinstance(error, ssl.SSLError):
        return tls_failure(error)
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_LIMIT_S:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, http.client.IncompleteRead):
        return "it broke off in the middle"
    return str(error) or type(error).__name__

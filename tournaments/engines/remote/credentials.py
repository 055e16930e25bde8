"""Temporary credentials of one cluster, which permit a process to join it.

One certificate serves the scheduler, the workers and the head, and is its own authority: each side presents
it and requires it of the other, so that a plaintext connection, or one with another certificate, is refused.
With the key, any program can be run as the user of every worker.
"""

import datetime
import shutil
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from distributed import Security

from tournaments.engines.remote.extra import ClusterError
from tournaments.files.durable import os_errors_as

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "certificate.pem", "key.pem"
FILES = (AUTHORITY, CERTIFICATE, KEY)
PRIVATE = 0o600
OTHERS = 0o077
"""Permissions on the key that only its owner may have."""
COPY = "copy the whole directory that `kalarena tournament run --engine dask` has made"


class Credentials:
    """A directory with the three files, checked.  Raises ClusterError, whose message names the problem."""

    def __init__(self, directory: Path, moment: datetime.datetime | None = None) -> None:
        """``moment`` is the time at which they must be valid; None is now."""
        self.directory = directory
        for path in (directory / name for name in FILES):
            try:
                path.read_bytes()
            except OSError as error:
                raise ClusterError(f"{path}: cannot be read: {error.strerror}; {COPY}") from error
        key = directory / KEY
        if key.stat().st_mode & OTHERS:
            raise ClusterError(
                f"{key}: other users can read it, and with it run programs as you: chmod 600 {key}"
            )
        try:
            self.security().get_connection_args("client")
            certificate = x509.load_pem_x509_certificate((directory / CERTIFICATE).read_bytes())
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            why = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
            raise ClusterError(
                f"{directory}: this is no cluster's certificate and key ({why}); {COPY}"
            ) from error
        moment = moment or datetime.datetime.now(datetime.UTC)
        made_at = certificate.not_valid_before_utc
        if made_at > moment:
            raise ClusterError(
                f"{directory}: this host's clock is behind: it is {moment:%Y-%m-%d %H:%M} UTC here, and "
                f"these credentials were made at {made_at:%Y-%m-%d %H:%M} UTC; set the clock"
            )
        self.valid_until = certificate.not_valid_after_utc
        if self.valid_until < moment:
            raise ClusterError(
                f"{directory}: these credentials were valid until {self.valid_until:%Y-%m-%d}: remove them "
                "on the host of the tournament, which makes new ones"
            )

    @classmethod
    def made(cls, directory: Path) -> "Credentials":
        """Return the credentials of a directory, which is created if needed.

        The directory is created whole or not at all, with mode 0700.  Existing credentials are used again:
        machines that have them can rejoin a resumed tournament.  Raises ClusterError.
        """
        with os_errors_as(ClusterError, f"{directory} cannot be read"):
            is_there = directory.exists()
        if not is_there:
            with os_errors_as(ClusterError, f"{directory}: credentials cannot be kept"):
                _make(directory)
        return cls(directory)

    def security(self) -> Security:
        """Return Dask's TLS settings for all roles; unencrypted connections are refused."""
        authority, certificate, key = (str(self.directory / name) for name in FILES)
        return Security(
            require_encryption=True,
            tls_ca_file=authority,
            **{f"tls_{role}_cert": certificate for role in ("client", "scheduler", "worker")},
            **{f"tls_{role}_key": key for role in ("client", "scheduler", "worker")},
        )


def _make(directory: Path) -> None:
    """Create the credentials.  Raises OSError."""
    temporary = Security.temporary()
    directory.parent.mkdir(parents=True, exist_ok=True)
    # mkdtemp creates it with mode 0700; it is renamed once it is complete.
    unfinished = Path(tempfile.mkdtemp(prefix=".credentials-", dir=directory.parent))
    texts = (temporary.tls_ca_file, temporary.tls_scheduler_cert, temporary.tls_scheduler_key)
    try:
        for name, text in zip(FILES, texts, strict=True):
            (unfinished / name).touch(PRIVATE)
            (unfinished / name).write_text(text, encoding="ascii")
        unfinished.rename(directory)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise

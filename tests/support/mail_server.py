"""A mail server on this machine for tests, with real connections, and with failures that a test chooses."""

import base64
import ipaddress
import socketserver
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from threading import Condition, Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
LIMIT_S = 300.0


@dataclass(frozen=True)
class Received:
    """A mail that the server has accepted."""

    sender: str
    to: str
    content: bytes
    is_encrypted: bool
    user: str

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.content, policy=default)

    @property
    def text(self) -> str:
        return str(self.message.get_content()).replace("\r\n", "\n")


@dataclass
class MailServer:
    """The state of a mail server, which a test reads and changes."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    replies: dict[str, str] = field(default_factory=dict)
    """Verb, or verb and address, such as ``RCPT full@example.org`` -> the reply in place of the usual one.
    ``close`` closes the connection instead."""
    attempts: list[str] = field(default_factory=list)
    """Addresses of all RCPT commands."""
    passwords: dict[str, str] = field(default_factory=dict)
    changed: Condition = field(default_factory=Condition)

    def until(self, number: int) -> list[Received]:
        """Return the mails as soon as there are so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.received) >= number, LIMIT_S), self.received
            return list(self.received)


class _Handler(socketserver.StreamRequestHandler):
    """One connection (RFC 5321, with STARTTLS and AUTH PLAIN)."""

    server: "_Server"
    timeout = LIMIT_S
    sender = to = user = ""
    is_encrypted = False

    def handle(self) -> None:
        if self.server.is_tls:
            self._encrypt()
        self._reply("CONNECT", "220 ready")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            verb, _, rest = line.partition(" ")
            if not self._do(verb.upper(), rest):
                return

    def _do(self, verb: str, rest: str) -> bool:
        """Answer a command; return False at the end of the connection."""
        state = self.server.state
        match verb:
            case "EHLO":
                offers = ["STARTTLS"] if self.server.context and not self.is_encrypted else []
                offers += ["AUTH PLAIN"] if state.passwords else []
                lines = ["hello", *offers]
                return self._reply(verb, "".join(f"250-{one}\r\n" for one in lines[:-1]) + f"250 {lines[-1]}")
            case "STARTTLS":
                self._reply(verb, "220 go on")
                self._encrypt()
                return True
            case "AUTH":
                _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                if state.passwords.get(user) != password:
                    return self._reply(verb, "535 5.7.8 wrong password")
                self.user = user
                return self._reply(verb, "235 welcome")
            case "MAIL":
                self.sender = rest[rest.index("<") + 1 : rest.index(">")]
                return self._reply(verb, "250 ok")
            case "RCPT":
                self.to = rest[rest.index("<") + 1 : rest.index(">")]
                state.attempts.append(self.to)
                return self._reply(f"RCPT {self.to}", state.replies.get("RCPT", "250 ok"))
            case "DATA":
                return self._data()
            case "QUIT":
                self._reply(verb, "221 bye")
                return False
        return self._reply(verb, "250 ok")

    def _data(self) -> bool:
        if not self._reply("DATA", "354 send it"):
            return False
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            assert line, "the connection ended within a mail"
            lines.append(line[1:] if line.startswith(b".") else line)
        state, key = self.server.state, f"END {self.to}"
        if key not in state.replies:
            with state.changed:
                mail = Received(self.sender, self.to, b"".join(lines), self.is_encrypted, self.user)
                state.received.append(mail)
                state.changed.notify_all()
        return self._reply(key, "250 2.0.0 accepted as 7")

    def _reply(self, key: str, usual: str) -> bool:
        reply = self.server.state.replies.get(key, usual)
        if reply == "close":
            return False
        self.wfile.write(reply.encode() + b"\r\n")
        return True

    def _encrypt(self) -> None:
        assert self.server.context is not None
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.is_encrypted = True

    def finish(self) -> None:
        super().finish()
        self.connection.close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, state: MailServer, context: ssl.SSLContext | None, *, is_tls: bool) -> None:
        self.state, self.context, self.is_tls = state, context, is_tls
        super().__init__((HOST, state.port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that ends the connection: a refused certificate, a killed process."""


@contextmanager
def mail_server(
    state: MailServer | None = None, certificate: Path | None = None, *, is_tls: bool = False
) -> Iterator[MailServer]:
    """Run a mail server; a state that was used before has the same port again.

    With a certificate it offers STARTTLS, or speaks TLS from the beginning.
    """
    state, context = state or MailServer(), None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    with _Server(state, context, is_tls=is_tls) as server:
        state.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def make_certificate(path: Path, host: str = HOST) -> Path:
    """Write a certificate with its key, which is its own authority, for an address of this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(pem))
    return path

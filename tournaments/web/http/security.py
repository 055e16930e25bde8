"""Browser security: response headers, origin checks and client addresses.  Pure."""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

from referee.judge.verdict_text import visible


def content_security_policy(frame_ancestors: Iterable[str] = ()) -> str:
    """Return the policy of a page that only pages of these origins may frame."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "font-src 'self'",
            "form-action 'self'",
            "frame-ancestors " + (" ".join(frame_ancestors) or "'none'"),
            "base-uri 'none'",
        )
    )


HEADERS = {
    "Content-Security-Policy": content_security_policy(),
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with that, browsers send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
STRICT_TRANSPORT = "max-age=31536000"
"""A year, as browsers' preload lists require; without subdomains, which may belong to others."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Network = IPv4Network | IPv6Network


def security_headers(https: bool) -> dict[str, str]:
    """Return the security headers of every response."""
    return HEADERS | ({"Strict-Transport-Security": STRICT_TRANSPORT} if https else {})


def local_path(text: str | None) -> str:
    r"""Return the path to go on at after signing in: the text if it is a path of this site, else ``/``.

    Browsers take ``//host``, ``/\host`` and either with control characters in between as another host.
    """
    if not text or not text.startswith("/") or not text.isprintable() or "\\" in text:
        return "/"
    return "/" if text.startswith("//") else text


def origin_of(url: str) -> str:
    """Return the origin of an address, as browsers write it in ``Origin``."""
    parts = urlsplit(url)
    port = {"http": 80, "https": 443}.get(parts.scheme)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port not in (None, port) else "")


def may_post(headers: Mapping[str, str], public_url: str | None) -> bool:
    """Return True if a form was sent from a page of this site, by the headers that pages cannot forge.

    Without a public address the ``Host`` header names the site.  A client that sends neither header is not a
    current browser; the CSRF text alone then protects the form.
    """
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site not in (None, "same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    if public_url is not None:
        return origin == origin_of(public_url)
    host = headers.get("host")
    return origin in (f"http://{host}", f"https://{host}")


def host_allowed(host: str, public_url: str | None) -> bool:
    """Return True if a ``Host`` header names this site: its public address, or the loopback for checks."""
    if public_url is None:
        return True
    try:
        asked = urlsplit(f"//{host}")
        wanted = urlsplit(public_url)
        if asked.hostname in LOOPBACK:
            return True
        default = {"http": 80, "https": 443}[wanted.scheme]
        return asked.hostname == wanted.hostname and (asked.port or default) == (wanted.port or default)
    except ValueError:
        return False


def client_address(peer: str, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the client's address: the nearest address that is not one of our own proxies.

    Args:
        peer: The other end of the connection.
        forwarded_for: All ``X-Forwarded-For`` headers; each proxy appends the address of its client.
        trusted: Networks of our own proxies; headers of others are not trusted.

    """
    hops = [hop.strip() for header in forwarded_for for hop in header.split(",")]
    address = peer
    while hops and is_within(address, trusted):
        address = hops.pop()
    return address


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Return True if an address is in one of these networks; False if it is invalid."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def same_text(given: str | None, expected: str) -> bool:
    """Return True if two texts are the same; the time taken does not reveal how far they agree."""
    return given is not None and hmac.compare_digest(given.encode(), expected.encode())


def masked(path: str) -> str:
    """Return a path for the log, on one line and without the secret of a link or a feed."""
    hidden = next(
        (start for start in ("/links/", "/feeds/", "/account/mail/") if path.startswith(start)), None
    )
    return visible(path) if hidden is None else f"{hidden}..."

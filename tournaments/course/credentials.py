"""Secrets for signing in: generated here, handed out once, and stored as SHA-256 alone.

They have 190 random bits and more, so that a digest without salt reveals nothing about them; and since the
database looks up the digest, the time of the lookup reveals nothing about the secret either.
"""

import hashlib
import hmac
import secrets
import string

SECRET_BYTES = 32
"""Random bytes of the secrets of sessions and links."""
TOKEN_PREFIX = "kal_"
"""Prefix by which people and secret scanners recognize a token of Kalarena."""
TOKEN_CHARACTERS = string.digits + string.ascii_letters
TOKEN_LENGTH = 40
"""Characters after the prefix: 238 bits."""


def new_secret() -> str:
    """Return a secret for a session or a link: letters, digits, ``-`` and ``_``."""
    return secrets.token_urlsafe(SECRET_BYTES)


def new_token() -> str:
    """Return a token for a program: ``kal_`` and 40 letters and digits."""
    return TOKEN_PREFIX + "".join(secrets.choice(TOKEN_CHARACTERS) for _ in range(TOKEN_LENGTH))


def digest_of(secret: str) -> str:
    """Return the digest that is stored for a secret; any text is accepted, since requests may contain any."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(secret: str) -> str:
    """Return the CSRF token of a session, derived from its secret, so that the database holds neither."""
    return hmac.digest(secret.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()

"""Secrets that let somebody in: made here, given away once, and kept as SHA-256 alone.

They have 190 random bits and more, so that a digest without salt tells nothing about them; and since a
database looks up the digest, how long that takes tells nothing about the secret either.
"""

import hashlib
import hmac
import secrets
import string

SECRET_BYTES = 32
"""Of sessions and links."""
TOKEN_PREFIX = "kal_"
"""So that people, and programs that search for secrets in what is published, know a token of ours."""
TOKEN_CHARACTERS = string.digits + string.ascii_letters
TOKEN_LENGTH = 40
"""Characters after the prefix: 238 bits."""


def new_secret() -> str:
    """For a session or a link: letters, digits, ``-`` and ``_``."""
    return secrets.token_urlsafe(SECRET_BYTES)


def new_token() -> str:
    """For a program: ``kal_`` and 40 letters and digits."""
    return TOKEN_PREFIX + "".join(secrets.choice(TOKEN_CHARACTERS) for _ in range(TOKEN_LENGTH))


def digest_of(secret: str) -> str:
    """What is kept of a secret; of any text at all, since people send what they like."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(secret: str) -> str:
    """What the forms of a session carry: told from its secret, so that the database holds neither."""
    return hmac.digest(secret.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()

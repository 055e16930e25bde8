"""Rules of security as functions: addresses, forms, hosts, clients, headers; and rate limits."""

from ipaddress import ip_network
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.web.http.rate_limits import Rate, RateLimit, address_key
from tournaments.web.http.security import (
    client_address,
    content_security_policy,
    host_allowed,
    local_path,
    masked,
    may_post,
    origin_of,
    same_text,
    security_headers,
)

PUBLIC = "https://kalah.example.org"


@pytest.mark.parametrize("path", ["/", "/my", "/my/versions/3?tab=log", "/a//b", "/%2F%2Fhost"])
def test_a_path_of_this_site_is_kept(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "text",
    [None, "", "my", "//host", "//host/my", "/\\host", "\\\\host", "/\t/host", "/\n/host", "https://host/",
     "javascript:x", "/x\\..\\..\\", "/\x00", " //host"],
)  # fmt: skip
def test_anything_else_leads_to_the_first_page(text: str | None) -> None:
    assert local_path(text) == "/"


@given(st.text(st.sampled_from("/\\ht:.@\t\n\r x?#%"), max_size=12))
def test_no_text_leads_to_another_site(text: str) -> None:
    # Browsers drop tabs and line ends, and take a backslash for a slash.
    seen = "".join(c for c in local_path(text) if c not in "\t\n\r").replace("\\", "/")
    assert urlsplit(urljoin("https://here.example/sign-in", seen)).netloc == "here.example"


@pytest.mark.parametrize(
    ("headers", "public", "allowed"),
    [
        ({}, PUBLIC, True),  # no browser of today; the form's text decides
        ({"origin": PUBLIC}, PUBLIC, True),
        ({"origin": PUBLIC, "sec-fetch-site": "same-origin"}, PUBLIC, True),
        ({"origin": PUBLIC, "sec-fetch-site": "same-site"}, PUBLIC, False),
        ({"origin": PUBLIC, "sec-fetch-site": "cross-site"}, PUBLIC, False),
        ({"origin": "https://evil.example"}, PUBLIC, False),
        ({"origin": "http://kalah.example.org"}, PUBLIC, False),
        ({"origin": "https://kalah.example.org:444"}, PUBLIC, False),
        ({"origin": "https://kalah.example.org.evil.example"}, PUBLIC, False),
        ({"origin": "null"}, PUBLIC, False),
        ({"origin": "null", "host": "kalah.example.org"}, None, False),
        ({"sec-fetch-site": "cross-site"}, PUBLIC, False),
        ({"origin": "http://127.0.0.1:8000", "host": "127.0.0.1:8000"}, None, True),
        ({"origin": "http://127.0.0.1:9000", "host": "127.0.0.1:8000"}, None, False),
        ({"origin": "http://evil.example", "host": "127.0.0.1:8000"}, None, False),
        ({"origin": "http://[bad", "host": "127.0.0.1:8000"}, None, False),
    ],
)
def test_forms_come_from_this_site(headers: dict[str, str], public: str | None, allowed: bool) -> None:
    assert may_post(headers, public) is allowed


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://kalah.example.org", "https://kalah.example.org"),
        ("https://kalah.example.org:443", "https://kalah.example.org"),
        ("http://kalah.example.org:80", "http://kalah.example.org"),
        ("http://kalah.example.org:443", "http://kalah.example.org:443"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_origins_are_written_as_browsers_do(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("host", "public", "allowed"),
    [
        ("anything", None, True),
        ("kalah.example.org", PUBLIC, True),
        ("KALAH.example.org:443", PUBLIC, True),
        ("kalah.example.org:8000", PUBLIC, False),
        ("127.0.0.1:8000", PUBLIC, True),
        ("localhost", PUBLIC, True),
        ("[::1]:8000", PUBLIC, True),
        ("evil.example", PUBLIC, False),
        ("", PUBLIC, False),
        ("kalah.example.org:port", PUBLIC, False),
        ("[", PUBLIC, False),
    ],
)
def test_hosts(host: str, public: str | None, allowed: bool) -> None:
    assert host_allowed(host, public) is allowed


TRUSTED = (ip_network("10.0.0.0/8"), ip_network("::1"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.7", [], "192.0.2.7"),
        ("192.0.2.7", ["198.51.100.1"], "192.0.2.7"),  # not our proxy: what it claims is not believed
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::1", ["1.2.3.4, 198.51.100.1"], "198.51.100.1"),  # the left one was sent by the client
        ("10.0.0.1", ["1.2.3.4", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("unknown", ["198.51.100.1"], "unknown"),
        ("10.0.0.1", ["what, ever"], "ever"),
    ],
)
def test_the_address_of_a_client(peer: str, forwarded: list[str], address: str) -> None:
    assert client_address(peer, forwarded, TRUSTED) == address


def test_the_policy_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    assert content_security_policy() == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    assert "Strict-Transport-Security" not in security_headers(https=False)
    assert security_headers(https=True)["Strict-Transport-Security"] == "max-age=31536000"


def test_secrets_of_links_are_masked() -> None:
    assert masked("/links/abc") == "/links/..."
    assert masked("/feeds/feed_abc") == "/feeds/..."
    assert masked("/account/mail/secret") == "/account/mail/..."
    assert masked("/my") == "/my"


def test_a_path_does_not_begin_a_line_of_the_log() -> None:
    assert masked("/x\nERROR fault\r\x1b[2J\u2028") == "/x\\nERROR fault\\r\\x1b[2J\\u2028"


def test_texts_are_compared() -> None:
    assert same_text("ä", "ä")
    assert not same_text("b", "a")
    assert not same_text(None, "a")


# Rate limits.


def test_a_burst_is_taken_then_one_by_one() -> None:
    limit = RateLimit(Rate(burst=3, per_s=0.5))
    assert [limit.take("a", 100.0) for _ in range(3)] == [0, 0, 0]
    assert limit.take("a", 100.0) == 2.0
    assert limit.take("a", 101.0) == 1.0  # a refused attempt costs nothing
    assert limit.take("a", 102.0) == 0
    assert limit.take("a", 102.0) == 2.0
    assert limit.take("b", 102.0) == 0


def test_a_successful_attempt_can_be_given_back() -> None:
    limit = RateLimit(Rate(burst=1, per_s=0.1))
    assert limit.take("a", 0.0) == 0
    limit.give_back("a", 0.0)
    assert limit.take("a", 0.0) == 0
    limit.give_back("a", 0.0)
    limit.give_back("a", 0.0)
    assert (limit.take("a", 0.0), limit.take("a", 0.0)) == (0, 10.0)


def test_the_memory_of_a_limit_is_bounded() -> None:
    limit = RateLimit(Rate(burst=1, per_s=1), most_keys=10)
    for number in range(1000):
        assert limit.take(number, 0.0) == 0
    assert len(limit) == 10
    assert limit.take(999, 0.0) > 0


@given(
    burst=st.integers(1, 5),
    per_s=st.floats(0.1, 10),
    steps=st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_a_limit_never_admits_more_than_its_rate(burst: int, per_s: float, steps: list[float]) -> None:
    limit = RateLimit(Rate(burst, per_s))
    now, taken = 0.0, 0
    for step in steps:
        now += step
        wait = limit.take("key", now)
        taken += wait == 0
        assert 0 <= wait <= 1 / per_s + 1e-9
    assert taken <= burst + now * per_s + 1e-6


def test_a_clock_that_is_set_back_gives_nothing_and_blocks_nobody() -> None:
    limit = RateLimit(Rate(burst=1, per_s=1))
    assert limit.take("a", 1000.0) == 0
    assert limit.take("a", 0.0) == 1.0
    assert limit.take("a", 1.0) == 0


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unknown", "unknown"),
    ],
)
def test_the_key_of_an_address(address: str, key: str) -> None:
    assert address_key(address) == key

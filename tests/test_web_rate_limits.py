"""Token buckets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.web.http.rate_limits import Rate, RateLimit, address_key


def test_so_many_at_once_then_one_by_one() -> None:
    limit = RateLimit(Rate(burst=3, per_s=0.5))
    assert [limit.take("a", 100.0) for _ in range(3)] == [0, 0, 0]
    assert limit.take("a", 100.0) == 2.0
    assert limit.take("a", 101.0) == 1.0  # asking costs nothing
    assert limit.take("a", 102.0) == 0
    assert limit.take("a", 102.0) == 2.0
    assert limit.take("b", 102.0) == 0


def test_what_succeeded_can_be_given_back() -> None:
    limit = RateLimit(Rate(burst=1, per_s=0.1))
    assert limit.take("a", 0.0) == 0
    limit.give_back("a", 0.0)
    assert limit.take("a", 0.0) == 0
    limit.give_back("a", 0.0)
    limit.give_back("a", 0.0)
    assert (limit.take("a", 0.0), limit.take("a", 0.0)) == (0, 10.0)


def test_memory_is_bounded() -> None:
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
def test_never_more_than_promised(burst: int, per_s: float, steps: list[float]) -> None:
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
def test_one_address(address: str, key: str) -> None:
    assert address_key(address) == key

"""A check's log: bounded, and told whole and once to everybody who follows it, from wherever he begins."""

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tournaments.server.checks.check_log import CUT, LONGEST_LINE, MAX_BYTES, MAX_LINES, CheckLog


async def test_readers_get_every_line_once_and_end_with_it(nursery: trio.Nursery) -> None:
    log = CheckLog()
    seen: dict[int, list[str]] = {0: [], 1: [], 2: []}
    over = 0

    async def read(after: int) -> None:
        nonlocal over
        async for line in log.follow(after):
            seen[after].append(line)
        over += 1

    log.add("one")
    for after in seen:
        nursery.start_soon(read, after)
    await trio.testing.wait_all_tasks_blocked()
    assert seen == {0: ["one"], 1: [], 2: []}
    log.add("two\nthree")
    await trio.testing.wait_all_tasks_blocked()
    assert seen == {0: ["one", "two", "three"], 1: ["two", "three"], 2: ["three"]}
    assert not log.over
    assert over == 0
    log.add("four")
    log.close()
    await trio.testing.wait_all_tasks_blocked()
    assert over == 3
    assert seen[2] == ["three", "four"]


async def test_a_log_that_is_over_is_read_to_its_end() -> None:
    log = CheckLog.of("one\ntwo")
    assert log.over
    assert [line async for line in log.follow()] == ["one", "two"]
    assert [line async for line in log.follow(7)] == []


def test_it_keeps_within_its_bounds_and_says_so_once() -> None:
    log = CheckLog()
    for number in range(MAX_LINES + 10):
        log.add(str(number))
    assert len(log.lines) == MAX_LINES + 1
    assert log.lines[-1] == CUT
    assert log.lines.count(CUT) == 1
    wide = CheckLog()
    wide.add("\u20ac" * (2 * LONGEST_LINE))
    assert wide.lines == ["\u20ac" * LONGEST_LINE + "..."]
    for _ in range(1000):
        wide.add("\u20ac" * LONGEST_LINE)
    assert wide.lines[-1] == CUT
    assert len(wide.text.encode()) <= MAX_BYTES + len(CUT) + 1


@given(st.lists(st.text()))
def test_what_was_kept_is_the_same_log_again(texts: list[str]) -> None:
    log = CheckLog()
    for text in texts:
        log.add(text)
    assert CheckLog.of(log.text).text == log.text

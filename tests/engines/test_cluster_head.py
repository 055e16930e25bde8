"""The head with a fake scheduler, whose events have orders that real ones have only at bad moments."""

import asyncio
from copy import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import KilledWorker

from tests.engines.fake_scheduler import FIRST, OTHER, Cluster, facts, in_a_loop, settled
from tournaments.engines.base import EngineError, WorkerLostError
from tournaments.engines.remote.extra import SchedulerLostError
from tournaments.engines.remote.head import head
from tournaments.engines.remote.head.head import TOGETHER
from tournaments.engines.remote.head.pair_hosts import HostWorkers
from tournaments.engines.remote.scheduler_process import LOST
from tournaments.engines.remote.waiting import Demands
from tournaments.engines.remote.worker.game_process import DIED, FAILURE


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@in_a_loop
async def test_a_game_that_waits_for_a_host_that_was_lost_unseen_is_played_elsewhere(
    cluster: Cluster,
) -> None:
    first = await cluster.ask("first")
    await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
    assert cluster.begun == ["first"]
    cluster.scheduler.send_event(LOST, FIRST)
    await settled()
    with pytest.raises(WorkerLostError, match=r"tls://10\.0\.0\.1:1 was lost, which played game first"):
        first.result()
    again = await cluster.ask("again")  # it chooses, and a worker takes it that is gone at once
    await cluster.begins(cluster.scheduler.tasks[1], FIRST, "first")
    second = await cluster.ask("second")
    assert cluster.scheduler.tasks[2].workers == [FIRST]
    del cluster.scheduler.facts[FIRST]
    await cluster.head.poll_workers()  # this is noticed before the scheduler reports it
    await settled()
    assert cluster.scheduler.tasks[2].released
    assert [task.workers for task in cluster.scheduler.tasks] == [None, None, [FIRST], None]
    await cluster.begins(cluster.scheduler.tasks[3], OTHER, "other")
    await cluster.reply(cluster.scheduler.tasks[3], b"R")
    assert second.result() == b"R"
    cluster.scheduler.send_event(LOST, FIRST)
    await settled()
    assert isinstance(again.exception(), EngineError)


@in_a_loop
async def test_a_received_reply_counts_although_its_worker_is_lost_then(cluster: Cluster) -> None:
    game = await cluster.ask("game")
    (task,) = cluster.scheduler.tasks
    await cluster.begins(task, FIRST, "first")
    cluster.scheduler.send_event(cluster.head.topic, {"game": [*task.name], "reply": b"R"})
    cluster.scheduler.send_event(LOST, FIRST)
    await settled()
    assert game.result() == b"R"
    await cluster.reply(task, b"too late")


@in_a_loop
async def test_a_quick_game_is_one_event_and_chooses_the_host_of_its_pair(cluster: Cluster) -> None:
    first, second = await cluster.ask("first"), await cluster.ask("second")
    (task,) = cluster.scheduler.tasks  # the other one waits until it is known where this one is played
    here = [OTHER, "other", 1]
    cluster.scheduler.send_event(cluster.head.topic, {"game": [*task.name], "begins": here, "reply": b"G"})
    await settled()
    assert first.result() == b"G"
    assert cluster.begun == ["other"]
    assert [one.workers for one in cluster.scheduler.tasks] == [None, [OTHER]]
    await cluster.reply(cluster.scheduler.tasks[1], b"G")
    assert second.result() == b"G"


@in_a_loop
async def test_a_game_that_is_played_again_before_its_worker_is_known_to_be_lost(cluster: Cluster) -> None:
    playing = await cluster.ask("it")
    await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
    await cluster.begins(cluster.scheduler.tasks[0], OTHER, "other")
    with pytest.raises(WorkerLostError, match=r"tls://10\.0\.0\.1:1 was lost, which played it"):
        playing.result()
    assert cluster.begun == ["first"]
    assert cluster.scheduler.tasks[0].released


@in_a_loop
async def test_simultaneous_requests_are_one_message_without_cancelled_games(
    cluster: Cluster,
) -> None:
    wanted = [cluster.game(key, "") for key in ("one", "two", "three")]
    confined = cluster.game("confined", "", {"a sandbox": 1.0})
    games = [asyncio.create_task(cluster.head.play(game)) for game in (*wanted, confined)]
    await asyncio.sleep(0)
    games[1].cancel()
    await settled()
    messages = [[key for _, key, _ in message] for message in cluster.scheduler.messages]
    assert messages == [["one", "three"], ["confined"]]
    assert cluster.scheduler.takes == [{}, {}, {"a sandbox": 1.0}]
    for task in cluster.scheduler.tasks:
        await cluster.reply(task, task.name[1].encode())
    assert [game.result() for game in (games[0], *games[2:])] == [b"one", b"three", b"confined"]


@in_a_loop
async def test_a_game_that_is_cancelled_while_it_is_submitted_is_released(cluster: Cluster) -> None:
    game = asyncio.create_task(cluster.head.play(cluster.game("game", "")))
    cluster.scheduler.when_asked = lambda: asyncio.get_running_loop().call_soon(game.cancel)
    await settled()
    assert game.cancelled()
    assert cluster.scheduler.tasks[0].released


@in_a_loop
async def test_a_message_has_a_maximum_of_games(cluster: Cluster) -> None:
    keys = [str(number) for number in range(TOGETHER + 1)]
    games = [asyncio.create_task(cluster.head.play(cluster.game(key, ""))) for key in keys]
    await settled()
    assert [len(message) for message in cluster.scheduler.messages] == [TOGETHER, 1]
    assert [task.name[1] for task in cluster.scheduler.tasks] == keys
    for game in games:
        game.cancel()


@in_a_loop
async def test_a_game_that_moves_to_another_host_does_not_count_as_ended(cluster: Cluster) -> None:
    first, second = await cluster.ask("first"), await cluster.ask("second")
    await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
    await cluster.reply(cluster.scheduler.tasks[0], b"G")
    assert first.done()
    assert cluster.scheduler.tasks[1].workers == [FIRST]
    cluster.scheduler.send_event(LOST, FIRST)  # and now it is looked in each turn of the loop
    for _ in range(20):
        await cluster.head.fail_ended()
        await asyncio.sleep(0)
    assert cluster.scheduler.tasks[1].released
    await cluster.begins(cluster.scheduler.tasks[2], OTHER, "other")
    await cluster.reply(cluster.scheduler.tasks[2], b"G")
    assert second.result() == b"G"


@in_a_loop
async def test_games_that_the_scheduler_refuses_are_errors(cluster: Cluster) -> None:
    cluster.scheduler.refuses = TypeError("too long")
    games = [await cluster.ask(key, "") for key in ("one", "two")]
    for game in games:
        with pytest.raises(EngineError, match=r"not be played by a worker: TypeError\('too long'\)"):
            game.result()
    cluster.scheduler.refuses = None
    again = await cluster.ask("one", "")
    await cluster.reply(cluster.scheduler.tasks[0], b"G")
    assert again.result() == b"G"


@in_a_loop
async def test_a_client_that_connected_again_by_itself_has_lost_its_scheduler(cluster: Cluster) -> None:
    await cluster.ask("it")
    cluster.scheduler.scheduler_comm = copy(cluster.scheduler)
    with pytest.raises(SchedulerLostError, match="the connection to the scheduler was lost"):
        await cluster.head.poll_workers()
    with pytest.raises(SchedulerLostError, match="the connection to the scheduler was lost"):
        await cluster.head.fail_ended()


@in_a_loop
async def test_games_that_have_ended_are_forgotten_together(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[Any] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda _delay, function: later.append(function))
    games = [await cluster.ask(key, "") for key in ("one", "two", "three")]
    for task in cluster.scheduler.tasks[:2]:
        await cluster.reply(task, b"G")
    assert [game.done() for game in games] == [True, True, False]
    assert not any(task.released for task in cluster.scheduler.tasks)
    (forget,) = later
    forget()
    assert [task.released for task in cluster.scheduler.tasks] == [True, True, False]
    await cluster.reply(cluster.scheduler.tasks[2], b"G")
    assert len(later) == 2
    # Dask would repeat the games that a lost worker still had.
    cluster.scheduler.send_event(LOST, OTHER)
    assert cluster.scheduler.tasks[2].released


@in_a_loop
async def test_dask_reassigns_a_game_that_was_not_reported_when_its_worker_was_lost(
    cluster: Cluster,
) -> None:
    game = await cluster.ask("game")
    (task,) = cluster.scheduler.tasks
    cluster.scheduler.send_event(LOST, FIRST)
    await settled()
    assert not task.released
    await cluster.begins(task, OTHER, "other")
    await cluster.reply(task, b"G")
    assert game.result() == b"G"
    assert cluster.begun == ["other"]


@pytest.mark.parametrize(
    ("raised", "kind", "why"),
    [
        (None, EngineError, "reported no result"),
        (OSError("out of space"), EngineError, r"OSError\('out of space'\)"),
        (
            KilledWorker("game", cast("Any", SimpleNamespace(address=FIRST)), 3),
            WorkerLostError,
            "all workers with a game were lost",
        ),
    ],
)
@in_a_loop
async def test_a_task_that_ends_without_a_reply_is_an_error(
    cluster: Cluster, raised: Exception | None, kind: type[EngineError], why: str
) -> None:
    game = await cluster.ask("game")
    await cluster.head.fail_ended()
    await settled()
    assert not game.done()
    cluster.scheduler.tasks[0].end(raised)
    await cluster.head.fail_ended()
    await settled()
    with pytest.raises(kind, match=why):
        game.result()


@in_a_loop
async def test_the_head_does_not_connect_to_workers() -> None:
    """A firewall may keep it from their ports; the fake has no such calls."""
    cluster = Cluster(Demands(programs=("java",)))
    await cluster.open()
    assert (cluster.head.hosts, cluster.head.slots) == (["first", "other"], 2)


@in_a_loop
async def test_a_worker_with_invalid_facts_is_turned_away_and_the_others_play() -> None:
    cluster = Cluster()
    cluster.scheduler.facts[FIRST] = {"name": "first"}
    await cluster.head.begin()
    (sentence,) = await cluster.head.poll_workers()
    assert sentence == f"{FIRST}: a worker's facts of its host cannot be read: 'cores'"
    assert cluster.scheduler.retired == [FIRST]
    assert cluster.head.hosts == ["other"]
    assert await cluster.head.poll_workers() == []  # it is reported once


@pytest.mark.parametrize("kind", [FAILURE, DIED])
@in_a_loop
async def test_a_game_that_a_host_could_not_play_moves_with_its_pair_to_another(
    cluster: Cluster, kind: bytes
) -> None:
    first, second = await cluster.ask("first"), await cluster.ask("second")
    tasks = cluster.scheduler.tasks
    assert len(tasks) == 1
    here = [FIRST, "first", 1]
    failed = {"game": [*tasks[0].name], "begins": here, "reply": kind + b"/tmp is full"}
    cluster.scheduler.send_event(cluster.head.topic, failed)
    await settled()
    assert first.result() == failed["reply"]
    again = await cluster.ask("first")  # the second chooses now, and is not tied to that host
    assert [task.workers for task in tasks] == [None, None]
    await cluster.begins(tasks[1], FIRST, "first")  # where the first one could not be played
    assert [task.workers for task in tasks] == [None, None, [OTHER]]
    await cluster.begins(tasks[2], OTHER, "other")
    await cluster.reply(tasks[2], b"G")
    assert again.result() == b"G"
    second.cancel()


@in_a_loop
async def test_a_game_that_failed_on_the_only_host_is_tried_there_again() -> None:
    cluster = Cluster()
    del cluster.scheduler.facts[OTHER]
    await cluster.open()
    for _ in range(2):
        game = await cluster.ask("game", "")
        task = cluster.scheduler.tasks[-1]
        await cluster.begins(task, FIRST, "first")
        failed = {"game": [*task.name], "begins": [FIRST, "first", 1], "reply": FAILURE + b"no"}
        cluster.scheduler.send_event(cluster.head.topic, failed)
        await settled()
        assert game.result() == FAILURE + b"no"
    assert [task.workers for task in cluster.scheduler.tasks] == [None, [FIRST]]


@in_a_loop
async def test_a_game_moves_from_a_host_without_its_programs_and_no_attempt_has_failed(
    cluster: Cluster,
) -> None:
    first, second = await cluster.ask("first", "pair", "java"), await cluster.ask("second", "pair", "java")
    tasks = cluster.scheduler.tasks
    await cluster.lacks(tasks[0], FIRST, "first", "java")
    assert not first.done()
    assert tasks[0].released
    for number, key in enumerate(("first", "second"), 1):
        assert [(task.name[1], task.workers) for task in tasks[number:]] == [(key, [OTHER])]
        await cluster.begins(tasks[number], OTHER, "other")
        await cluster.reply(tasks[number], b"G")
    assert (first.result(), second.result()) == (b"G", b"G")
    assert cluster.begun == ["other", "other"]
    another, free = await cluster.ask("another", "", "java", "sh"), await cluster.ask("free", "", "sh")
    assert [task.workers for task in tasks[-2:]] == [[OTHER], None]  # each host is tried once for a program
    assert await cluster.head.poll_workers() == ["first lacks java"]
    assert await cluster.head.poll_workers() == []
    for game in (another, free):
        game.cancel()


@in_a_loop
async def test_a_game_is_not_sent_again_to_the_host_of_its_pair_that_lacks_a_program(
    cluster: Cluster,
) -> None:
    """Two workers of one host can have different programs."""
    beside = "tls://10.0.0.1:2"
    cluster.scheduler.facts[beside] = facts("first")
    await cluster.head.poll_workers()
    first, second = await cluster.ask("first", "pair", "java"), await cluster.ask("second", "pair", "java")
    await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
    await cluster.lacks(cluster.scheduler.tasks[1], beside, "first", "java")
    assert [task.workers for task in cluster.scheduler.tasks[2:]] == [[OTHER]]
    for game in (first, second):
        game.cancel()


@in_a_loop
async def test_a_game_whose_programs_no_host_has_fails_with_the_reason(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "JOINING_S", 0.0)
    game = await cluster.ask("game", "pair", "java")
    await cluster.lacks(cluster.scheduler.tasks[0], FIRST, "first", "java")
    await cluster.lacks(cluster.scheduler.tasks[1], OTHER, "other", "java")
    assert game.result() == FAILURE + b"other lacks java"
    cluster.scheduler.send_event(LOST, OTHER)  # it is installed there, and its worker is started again
    cluster.scheduler.facts["tls://10.0.0.3:1"] = cluster.scheduler.facts.pop(OTHER)
    await cluster.head.poll_workers()
    again = await cluster.ask("game", "pair", "java")
    assert cluster.scheduler.tasks[-1].workers == ["tls://10.0.0.3:1"]
    again.cancel()


@in_a_loop
async def test_a_game_waits_for_a_host_with_its_programs_while_others_may_join(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "POLL_S", 0.0)
    game = await cluster.ask("game", "", "java")
    await cluster.lacks(cluster.scheduler.tasks[0], FIRST, "first", "java")
    await cluster.lacks(cluster.scheduler.tasks[1], OTHER, "other", "java")
    assert not game.done()
    cluster.scheduler.facts["tls://10.0.0.3:1"] = cluster.scheduler.facts[OTHER]
    await cluster.head.poll_workers()
    await settled()
    assert cluster.scheduler.tasks[-1].workers == ["tls://10.0.0.3:1"]
    game.cancel()


@in_a_loop
async def test_of_two_hosts_with_different_speeds_the_first_stays() -> None:
    cluster = Cluster(Demands(same_speed=0.1))
    cluster.scheduler.facts = {OTHER: facts("other")}
    await cluster.open()
    cluster.scheduler.facts = {FIRST: facts("first", 1.25e6), OTHER: facts("other")}
    game = await cluster.ask("game", "")
    (sentence,) = await cluster.head.poll_workers()
    assert sentence.startswith("first has 125% of the median speed")
    assert cluster.scheduler.retired == [FIRST]
    assert cluster.scheduler.tasks[0].workers == [OTHER]  # though the first one had joined
    game.cancel()


@in_a_loop
async def test_a_game_that_ends_before_it_begins_leaves_the_choice_to_one_other(cluster: Cluster) -> None:
    first = await cluster.ask("first")
    second, third = await cluster.ask("second"), await cluster.ask("third")
    assert len(cluster.scheduler.tasks) == 1
    first.cancel()
    await settled()
    assert [task.name[1] for task in cluster.scheduler.tasks] == ["first", "second"]
    await cluster.begins(cluster.scheduler.tasks[1], OTHER, "other")
    assert cluster.scheduler.tasks[2].workers == [OTHER]
    for game in (second, third):
        game.cancel()


@pytest.mark.parametrize("workers", [["tls://1:1"], ["tls://1:1", "tls://1:2"]])
def test_a_host_exists_as_long_as_one_of_its_workers(workers: list[str]) -> None:
    known = HostWorkers()
    for address in workers:
        known.add(address, "lab-1", 4)
        known.add(address, "lab-1", 4)  # told by the worker, and by the scheduler
    assert known.of("lab-1") == set(workers)
    assert known.slots("lab-1") == 4 * len(workers)
    for address in workers:
        assert address in known
        assert known.of("lab-1")
        known.remove(address)
        known.remove(address)
    assert known.of("lab-1") == frozenset()
    assert known.slots("lab-1") == 0


def test_workers_are_replaced_as_a_whole() -> None:
    known = HostWorkers()
    known.add("tls://1:1", "lab-1", 4)
    known.replace([("tls://2:1", "lab-2", 2)])
    assert known.of("lab-1") == frozenset()
    assert known.of("lab-2") == {"tls://2:1"}

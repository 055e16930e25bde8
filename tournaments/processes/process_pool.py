"""Pools of processes for work on many items; the processes end with the pool's user."""

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDiedError(Exception):
    """A process of the pool ended before its work was done."""


def map_in_processes(
    function: Callable[[Sequence[Item]], Iterator[Result]],
    items: Sequence[Item],
    processes: int,
    errors: tuple[type[Exception], ...] = (),
) -> Iterator[Result]:
    """Yield a result for each item, in the order of the items.

    Each of n processes gets every n-th item at the beginning, and has a pipe of its own.  A process ends at
    its next result if the reader is gone.

    Args:
        function: Yields a result for each item of a share; pickled for the processes.
        items: Arguments of the work.
        processes: Number of processes; with one or none, the work is done in this process.
        errors: Exceptions of ``function`` that are raised here, too.

    Raises:
        WorkerDiedError: a process was killed, or failed in another way.
    """
    if processes < 2:
        yield from function(items)
        return
    context = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # starting it later would unblock signals
    workers = []
    pipes: list[Connection] = []
    try:
        for number in range(processes):
            ours, theirs = context.Pipe(duplex=False)
            pipes.append(ours)
            share = items[number::processes]
            worker = context.Process(target=_work, args=(function, share, theirs, errors), daemon=True)
            with _interrupts_deferred():
                worker.start()
                workers.append(worker)
            theirs.close()
        for number in range(len(items)):
            yield _received(pipes[number % processes])
    finally:
        for pipe in pipes:
            pipe.close()
        for worker in workers:
            worker.terminate()
            worker.join()


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer SIGINT until the end, and block it for good in processes that are started meanwhile.

    Ctrl-C is sent to all processes, and only the pool's user must react.  Blocking is not enough here: the
    signal may be delivered to a library's thread, and the handler then runs in this one.
    """
    deferred: list[tuple[Any, ...]] = []
    is_main = threading.current_thread() is threading.main_thread()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, lambda *of: deferred.append(of)) if is_main else None
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_main:
            signal.signal(signal.SIGINT, handler)
        if deferred and callable(handler):
            handler(*deferred[0])


def _received(pipe: Connection) -> Any:
    try:
        answer = pipe.recv()
    except EOFError as error:
        raise WorkerDiedError from error
    if isinstance(answer, Exception):
        raise answer
    return answer


def _work(
    function: Callable[[Sequence[Item]], Iterator[Result]],
    items: Sequence[Item],
    pipe: Connection,
    errors: tuple[type[Exception], ...],
) -> None:
    """Do a share of the work, in a process of its own."""
    try:
        try:
            for result in function(items):
                pipe.send(result)
        except errors as error:
            pipe.send(error)
    except BrokenPipeError:
        pass

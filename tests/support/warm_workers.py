"""Worker processes of tournaments in a test's own process: forks of one that has imported all modules.

A worker takes half a second of CPU time to import its modules, and most of these tests need two for a handful
of games.  Tournaments of commands and servers that a test starts have workers as users have them.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import trio_parallel

open_started_context = trio_parallel.open_worker_context
"""trio_parallel's own function, which starts each worker anew."""


def fork_workers_from_a_warm_process() -> None:
    """Make the workers of this process forks (on Linux: the libraries of macOS break in forks)."""
    if sys.platform != "linux":
        return
    multiprocessing.set_forkserver_preload(["tournaments.engines.local", "tournaments.running.result_writer"])
    trio_parallel.open_worker_context = _open_warm_context


def _open_warm_context(*, init: Callable[[], object] = bool, **settings: Any) -> Any:
    """Return what ``open_worker_context`` does."""
    here = partial(_begin, dict(os.environ), os.sched_getaffinity(0), init)
    return open_started_context(init=here, worker_type=trio_parallel.WorkerType.FORKSERVER, **settings)


def _begin(environment: dict[str, str], cores: set[int], init: Callable[[], object]) -> object:
    """Begin a worker with what it would have from the test's process, and not from the warm one."""
    os.environ.clear()
    os.environ.update(environment)
    os.sched_setaffinity(0, cores)
    return init()

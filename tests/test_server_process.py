"""What the tests of killed servers overlook, and what not."""

import os
import subprocess
import sys

from tests.server_process import ORPHANED_WORKER


def errors_of(program: str, written: bytes) -> str:
    """The standard error of a process that reads this from a pipe whose other end is then closed."""
    read, write = os.pipe()
    os.write(write, written)
    os.close(write)
    try:
        return subprocess.run(
            [sys.executable, "-c", program.format(read), "--multiprocessing-fork"],
            pass_fds=[read],
            stderr=subprocess.PIPE,
            text=True,
        ).stderr
    finally:
        os.close(read)


def test_a_worker_that_was_told_nothing_is_overlooked() -> None:
    program = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=0, pipe_handle={})"
    errors = errors_of(program, b"")
    assert errors.endswith("EOFError: Ran out of input\n")
    assert ORPHANED_WORKER.sub("", f"before\n{errors}after\n") == "before\nafter\n"


def test_other_tracebacks_are_not() -> None:
    program = "import pickle; pickle.load(open({}, 'rb'))"
    errors = errors_of(program, b"")
    assert errors.endswith("EOFError: Ran out of input\n")
    assert ORPHANED_WORKER.sub("", errors) == errors
    program = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=0, pipe_handle={})"
    errors = errors_of(program, b"no pickle")
    assert "Traceback" in ORPHANED_WORKER.sub("", errors)

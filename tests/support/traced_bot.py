"""A bot that its own descendant traces, so that nobody else can reap the bot while the descendant lives.

The descendant has a session of its own: a signal to the bot's process group does not reach it.  It ends by
itself after LIFE_S, in case a test fails to end it.  The bot's second argument is what it replies.
"""

import ctypes
import os
import sys
import time

LIFE_S = 120
PTRACE_SEIZE = 0x4206  # linux/ptrace.h
PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
ANY_PROCESS = ctypes.c_ulong(-1)


def main() -> None:
    """Become traced, and play."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PTRACER, ANY_PROCESS, 0, 0, 0)
    bot = os.getpid()
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        traced = libc.ptrace(PTRACE_SEIZE, bot, None, None)
        os.write(writing, b"%d" % traced)
        time.sleep(LIFE_S)
        os._exit(0)
    if os.read(reading, 2) != b"0":
        sys.exit("could not be traced")
    reply = sys.argv[2]
    for line in sys.stdin:
        if line.startswith("START;South") or line.rstrip().endswith("YOU"):
            if reply == "exit":
                os._exit(3)
            print(reply, flush=True)


if __name__ == "__main__":
    main()

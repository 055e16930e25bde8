"""How much a process of ours gives way to others."""

import os


def give_way(nice: int) -> None:
    """Give way by so much (0 to 19) more than an ordinary process, and never less than before.

    Who started us may go before others, which we do not take over.
    """
    is_now = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(19, max(0, is_now) + nice))

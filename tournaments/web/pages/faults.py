"""Page of all faults with their meanings and remedies, to which the page of a lost game links."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.checking.advice import ADVICE
from tournaments.web.http.rendering import render
from tournaments.web.http.routing import Access, Route, in_thread

MEANINGS = {
    "start-limit": "START was not taken within the start limit",
    "not-runnable": "the command could not be run: not there, not executable, no such interpreter",
    "late": "no complete reply within the time control",
    "off-turn-cpu": "its processes kept the opponent from computing while the bot was not on turn",
    "memory-limit": "its processes together held more memory than they may, and were killed",
    "out-of-memory": "it ended because its runtime, or the system, refused it memory",
    "read-only": "it ended because it could not write a file: the place is read-only",
    "disk-full": "it ended because the space for its files was full",
    "file-too-large": "it wrote a file larger than it may",
    "too-many-files": "it had too many files, or too many open at the same time",
    "exited": "the process ended, on its turn or off it; a reply that was complete before still counts",
    "killed": "the process was ended by a signal",
    "closed-output": ("standard output was closed, and no complete line was left when a move was awaited"),
    "closed-input": ("standard input was closed, or the process was gone, when a line was to be sent"),
    "process-limit": (
        "it had more processes and threads than it may, and was killed (where no sandbox bounds them)"
    ),
    "long-line": "a line of more than 1,024 bytes",
    "wire-limit": (
        "in one game, more than 1 MiB of lines that nobody had asked for, or that are longer than a move"
    ),
    "unasked-output": "more than 1,000 lines that nobody had asked for",
    "not-reading": "the pipe to the bot is full, because it does not read",
    "blank-line": "an empty line",
    "crlf": "a line that ends in CR LF",
    "nul-byte": "a NUL in the line",
    "not-ascii": "a character, or byte, that is not ASCII; other digits than 0 to 9 among them",
    "spaces": "leading, trailing or inner spaces",
    "lower-case": "move;3",
    "no-move": "MOVE or MOVE;",
    "extra-field": "MOVE;3;x",
    "unknown-message": "any other line, debug text for example",
    "bad-number": "MOVE;x, MOVE;SWAP",
    "not-positive": "MOVE;0, MOVE;-1",
    "number-too-large": "a number beyond 32 bits",
    "swap-not-offered": (
        "SWAP at any other time than as the second player's first reply, or in a game without it"
    ),
    "out-of-turn": "a reply that the conversation has no place for",
    "bad-turn": "Kalamala: not the text of a turn",
    "no-such-pit": "a number above p",
    "empty-pit": "the pit is empty",
    "occupied": "Kalamala: a placement on a square that is not empty",
    "no-stones": "Kalamala: a placement without an unplaced stone",
    "no-such-turn": "Kalamala: no movement has this effect",
    "repetition": "Kalamala: the position was there before",
    "game-over": "a move after the end",
}
"""Fault word -> what happened, in the order and with the words of docs/protocol.md."""


async def faults(request: Request) -> Response:
    """Show all faults."""
    return await in_thread(render, request, "faults.html", faults=MEANINGS, advice=ADVICE)


ROUTES = (Route("GET", "/faults", faults, Access.EVERYBODY, "faults"),)

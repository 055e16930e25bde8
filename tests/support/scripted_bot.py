"""A bot that plays its first legal move, and misbehaves in one selected way.

    scripted_bot.py [--do WHAT] [--reply N] [--status N]

WHAT happens instead of its N-th reply (counted from 1), or at the moment its name says.  It uses
the standard library alone, as a student's bot does.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

HANG_S = 120.0
"""Longer than any limit of a test; the referee ends the process long before."""

LINES = {
    "empty-pit": None,  # found from the board
    "pit-8": b"MOVE;8\n",
    "pit-0": b"MOVE;0\n",
    "negative": b"MOVE;-1\n",
    "no-argument": b"MOVE\n",
    "empty-argument": b"MOVE;\n",
    "extra-field": b"MOVE;3;x\n",
    "inner-space": b"MOVE; 3\n",
    "leading-space": b" MOVE;3\n",
    "trailing-space": b"MOVE;3 \n",
    "crlf": b"MOVE;3\r\n",
    "swap-crlf": b"SWAP\r\n",
    "blank": b"\n",
    "lower-case": b"move;3\n",
    "debug": b"thinking about it...\n",
    "swap": b"SWAP\n",
    "swap-as-move": b"MOVE;SWAP\n",
    "nul": b"MOVE;3\0\n",
    "overflow": b"MOVE;99999999999\n",
    "fullwidth-digit": "MOVE;\uff13\n".encode(),
    "latin-1": b"MOVE;\xe9\n",
    "long-line": b"x" * 5000 + b"\n",
}


class Bot:
    """Plays on the board of the last message."""

    def __init__(self, do: str, reply: int, status: int) -> None:
        self.do, self.reply, self.status = do, reply, status
        self.replies = 0
        self.seat = "South"
        self.board: list[int] = []

    def run(self) -> None:
        if self.do == "exit-at-once":
            sys.exit(self.status)
        if self.do == "never-read":
            time.sleep(HANG_S)
        if self.do == "stderr-first":
            os.write(2, b"debug\n" * 30_000)  # three times what a pipe holds
        for line in sys.stdin:
            word, *fields = line.rstrip("\n").split(";")
            if word == "START":
                self.seat = fields[0]
                if self.do == "move-at-start":
                    self.say(b"MOVE;1\n")
                if self.seat == "South":
                    self.answer()
            elif word == "CHANGE":
                self.board = [int(number) for number in fields[1].split(",")]
                if fields[0] == "SWAP":
                    self.seat = "North"
                if fields[2] == "YOU":
                    self.answer()
                elif fields[2] == "OPP":
                    self.off_turn()
            else:
                break
        self.after_the_end()

    def pits(self) -> list[int]:
        """Return the seeds of the bot's own pits."""
        if not self.board:
            return [7] * 7
        count = len(self.board) // 2 - 1
        return self.board[:count] if self.seat == "North" else self.board[count + 1 : -1]

    def answer(self) -> None:
        self.replies += 1
        if self.do == "slow":
            time.sleep(0.1)
        if self.do == "slow-at-first" and self.replies <= 4:
            time.sleep(0.5)
        if self.do == "empty-pit" and 0 not in self.pits():
            self.reply = self.replies + 1  # not yet
        if self.replies == self.reply and self.do:
            self.misbehave()
        else:
            self.play()

    def legal(self) -> int:
        return next(number for number, seeds in enumerate(self.pits(), 1) if seeds)

    def play(self) -> None:
        self.say(f"MOVE;{self.legal()}\n".encode())

    def say(self, line: bytes) -> None:
        os.write(1, line)

    def misbehave(self) -> None:
        do = self.do
        if do == "empty-pit":
            self.say(f"MOVE;{self.pits().index(0) + 1}\n".encode())
        elif do in LINES:
            self.say(LINES[do] or b"")
        elif do == "plus":
            self.say(f"MOVE;+{self.legal()}\n".encode())
        elif do == "zero-padded":
            self.say(f"MOVE;0{self.legal()}\n".encode())
        elif do == "pieces":
            for byte in f"MOVE;{self.legal()}\n".encode():
                self.say(bytes([byte]))
                time.sleep(0.01)
        elif do == "hang":
            time.sleep(HANG_S)
        elif do == "no-line-feed":
            self.say(f"MOVE;{self.legal()}".encode())
            time.sleep(HANG_S)
        elif do == "exit":
            print("ValueError: something went wrong", file=sys.stderr, flush=True)
            os._exit(self.status)
        elif do == "kill-self":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif do == "close-output":
            os.close(1)
            time.sleep(HANG_S)
        elif do == "close-input":
            os.close(0)
            self.play()
            time.sleep(HANG_S)
        elif do == "endless-line":
            while True:
                self.say(b"x" * 4096)
        elif do == "many-lines":
            while True:
                self.say(b"MOVE;1\n" * 500)
        elif do == "stderr-flood":
            for _ in range(256):
                os.write(2, b"debug output without end\n" * 160)
            self.play()
        elif do == "child-keeps-output":
            subprocess.Popen(["sleep", f"{HANG_S + self.status / 1000:.3f}"])
            os._exit(self.status)
        else:
            self.play()

    def off_turn(self) -> None:
        """Misbehave in the first turn of the opponent after the selected reply."""
        if self.do == "exit-off-turn" and self.replies >= self.reply:
            os._exit(self.status)
        if self.do == "duplicate" and self.replies == self.reply:
            self.say(f"MOVE;{self.legal()}\n".encode())

    def after_the_end(self) -> None:
        if self.do == "talk-after-end":
            self.say(b"MOVE;1\n" * 100)
        if self.do == "stay-after-end":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(HANG_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--do", default="")
    parser.add_argument("--reply", type=int, default=3)
    parser.add_argument("--status", type=int, default=3)
    arguments = parser.parse_args()
    Bot(arguments.do, arguments.reply, arguments.status).run()

"""A bot that does again what a recorded bot did: replay_bot.py FILE INDEX SEAT.

It reads where the recorded bot was sent a line, and writes where the recorded bot wrote.  After a line that
differs from the record, which it reports on standard error, it does not end by itself any more.
"""

import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    file, index, seat = sys.argv[1:]
    game = json.loads(Path(file).read_text(encoding="utf-8").splitlines()[int(index)])
    if "stderr" in game["tag"] and "scripted" in game[seat]:
        os.write(2, b"debug " * 10_000)
    in_step = True
    for event in game["events"]:
        if event.get("to") == seat:
            line = sys.stdin.readline()
            if line != event["line"] + "\n":
                in_step = False
                print(f"expected {event['line']!r}, was sent {line!r}", file=sys.stderr)
        elif event.get("from") == seat:
            if "0.7s-per-move" in game["tag"] and "slow" in game[seat]:
                time.sleep(0.7)
            end = "" if event.get("unterminated") else "\n"
            sys.stdout.write(event["line"] + end)
            sys.stdout.flush()
        elif event.get("agent") == seat and event["event"].startswith("EXIT:") and in_step:
            os._exit(int(event["event"].removeprefix("EXIT:")))
        elif event.get("agent") == seat and event["event"] == "<EOF" and "closeout" in game["tag"]:
            sys.stdout.flush()
            os.close(1)
    # The recorded bot was ended by the engine: wait for the same end.
    sys.stdin.read()
    time.sleep(60)


if __name__ == "__main__":
    sys.stdout.reconfigure(newline="\n")  # type: ignore[union-attr]
    main()

"""Measures the time that an adapter adds to a move, and counts the faults of KGP clients.

    python -m benchmarks.bench_adapters [--games 10] [--kgp 0]

The same bot, which plays its last pit, speaks the protocol of the course, ``turns`` and KGP in turn, against
``first_legal``: the games are the same, move by move.  Of each game the median of the wall time of its moves
counts, without the first one, in which an interpreter may start; of all games the least, since other programs
can only add to it.  ``--kgp 100`` then plays so many confined games of each client of tests/adapters/bots.py.

The exit status is 0 whether or not the target is reached, 1 if a game ended by a fault.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

import trio

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_game
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import AUTO, find_sandbox
from tests.adapters.bots import KGP_NODE, KGP_PYTHON, KGP_SIMPLE, KGP_WEBSOCKET
from tournaments.bots.resolve import resolve_bot

GAME = "kalah(6,6)+end=either"
"""The rules of KGP's clients."""
TARGET_MS = 5.0
MANCHESTER = """\
import sys
for line in sys.stdin:
    word, *fields = line.strip().split(";")
    if word == "START":
        seat, seeds, is_turn = fields[0], [6] * 6, fields[0] == "South"
    elif word == "CHANGE":
        board = fields[1].split(",")
        seeds = list(map(int, board[:6] if seat == "North" else board[7:13]))
        is_turn = fields[2] == "YOU"
    else:
        break
    if is_turn:
        print(f"MOVE;{max(pit for pit in range(6) if seeds[pit]) + 1}", flush=True)
"""
TURNS = """\
import json, sys
for line in sys.stdin:
    print(json.loads(line)["legal_moves"][-1], flush=True)
"""
SAME_BOT = {"manchester": MANCHESTER, "turns": TURNS, "kgp": KGP_PYTHON}
"""Protocol -> program of the bot that plays its last pit."""
CLIENTS = {
    "Python, mode freeplay": (KGP_PYTHON, "python3", 10.0),
    "Python, mode simple": (KGP_SIMPLE, "python3", 10.0),
    "Python, WebSocket": (KGP_WEBSOCKET, "python3", 10.0),
    "Node": (KGP_NODE, "node", 0.4),
}
"""KGP client -> its program, interpreter and seconds for a move, all of which one without ``yield`` has."""


def bot_of(folder: Path, name: str, protocol: str, source: str, interpreter: str = "python3") -> Player:
    """Write a bot's directory, and return the bot."""
    directory = folder / name
    directory.mkdir()
    (directory / "bot").write_text(source)
    address = " {ws}" if source is KGP_WEBSOCKET else ""
    manifest = f'command = "{interpreter} bot{address}"\nprotocol = "{protocol}"\n'
    (directory / "bot.toml").write_text(manifest)
    return resolve_bot(str(directory), folder, name.partition(",")[0], GAME)


def played(bot: Player, sandbox: Sandbox, control: TimeControl) -> GameRecord:
    """Play one game of a bot, which moves first; again if the host kept a bot waiting for too long."""
    opponent = resolve_bot("first_legal", Path.cwd(), game=GAME)
    job = Job("game", GAME, (bot, opponent), control, sandbox=sandbox)
    while True:
        try:
            return trio.run(partial(play_game, job))
        except RefereeError as error:
            print(f"played again: {error}", file=sys.stderr)


def faults_of(records: Sequence[GameRecord]) -> Counter[str]:
    """Count what was wrong: verdicts but by score, and what an adapter wrote on standard error."""
    texts = [record.result.detail for record in records if record.result.reason.value != "score"]
    return Counter([*texts, *(record.stderr[0] for record in records if record.stderr[0])])


def median_move_ms(record: GameRecord) -> float:
    """Return the median wall time of the bot's moves but the first, in milliseconds."""
    return median(move.wall_us / 1000 for move in record.moves[1:] if move.player == 0)


def compare(folder: Path, games: int, tier: str, sandbox: Sandbox) -> bool:
    """Play the same game in each protocol, and print the times; return False after a fault."""
    bots = {name: bot_of(folder, f"{name}-{tier}", name, source) for name, source in SAME_BOT.items()}
    records: dict[str, list[GameRecord]] = {name: [] for name in bots}
    for _ in range(games):
        for name, bot in bots.items():
            records[name].append(played(bot, sandbox, TimeControl(move_s=10.0)))
    texts = {tuple(move.move for move in record.moves) for found in records.values() for record in found}
    medians = {name: min(map(median_move_ms, found)) for name, found in records.items()}
    for name, median_ms in medians.items():
        more_ms = median_ms - medians["manchester"]
        extra = "" if name == "manchester" else f", {more_ms:+.2f} ms (target: at most {TARGET_MS:g} ms)"
        print(f"{tier:10} {name:10} {median_ms:.2f} ms a move{extra}", flush=True)
    faults = faults_of([record for found in records.values() for record in found])
    if faults or len(texts) != 1:
        print(f"the games differ, or ended by a fault: {dict(faults)}", file=sys.stderr)
    return not faults and len(texts) == 1


def count_faults(folder: Path, games: int, sandbox: Sandbox) -> bool:
    """Play games of each KGP client, and print the number of faults; return False if there is one."""
    is_right = True
    for name, (source, interpreter, move_s) in CLIENTS.items():
        if shutil.which(interpreter) is None:
            print(f"{name}: there is no {interpreter}")
            continue
        bot = bot_of(folder, name, "kgp", source, interpreter)
        records = [played(bot, sandbox, TimeControl(move_s=move_s)) for _ in range(games)]
        faults = faults_of(records)
        print(f"{name}: {games} games, {faults.total()} faults {dict(faults) or ''}", flush=True)
        is_right = is_right and not faults
    return is_right


def main() -> int:
    """Print the measured times, and the faults of KGP clients."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_adapters", description=__doc__)
    parser.add_argument("--games", type=int, default=10, help="games of each protocol and tier")
    parser.add_argument("--kgp", type=int, default=0, help="games of each KGP client")
    options = parser.parse_args()
    confined = find_sandbox(AUTO)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        is_right = True
        for tier, sandbox in (("unconfined", Sandbox()), (confined.tier.value, confined)):
            is_right = compare(folder, options.games, tier, sandbox) and is_right
        if options.kgp:
            is_right = count_faults(folder, options.kgp, confined) and is_right
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())

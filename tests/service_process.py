"""A small server for ``test_service_kill``: submits, checks and plays until it is killed.

It says each upload that was acknowledged, as a line of JSON.
"""

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

import trio

from tests.service_world import bot, open_service_world
from tournaments.service.config import ServiceConfig


async def main(data: Path, uploads: int) -> None:
    config = ServiceConfig(places=2, checks=1, retry_s=0.05)
    settings: dict[str, Any] = {
        "practice_on": True,
        "references": ["random:1", "greedy"],
        "game": "kalah(3,2)",
    }
    async with open_service_world(data, config, limit_s=600, **settings) as world:
        print("ready", flush=True)
        known = len(world.course.versions.all(1000))
        for number in count(known):
            if number >= uploads:
                break
            version = await world.submit(f"Team {number % 3}", bot(number))
            print(json.dumps([version.id, version.team_id, version.number, version.content]), flush=True)
            await trio.sleep(0.1)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))

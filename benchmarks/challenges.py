"""Measures the time from the request of a challenge to its result, on a real server without other work.

The server has a new course with its default settings, but without practice games and without the daily limit
of challenges.  The sandbox is required, so the bots are confined.  The bot is the starter kit for Python; its
opponent is a reference player.  The challenges, of one pair of games each, are asked for one after another
over the HTTP API, and their state is read every half a second.

The exit status is 0 whether or not the target is reached, 1 if a challenge is not played to its end.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.load.scene import made_scene
from benchmarks.load.server import running_server
from tournaments.course.course import Course

TARGET_S = 30.0
"""For the median, with an idle server."""
LIMIT_S = 600.0
"""Seconds after which a challenge counts as not played."""
POLL_S = 0.5
"""The rate at which the API answers a client."""
KALARENA = [sys.executable, "-c", "from tournaments.cli.main import entry; entry()"]


class Client:
    """A client of the HTTP API with a token."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token

    def request(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the response to a GET, or to a POST with this body.  Raises urllib.error.URLError."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self._url + path, data, headers)) as response:
            found: dict[str, Any] = json.load(response)
        return found

    def play(self, opponent: str) -> tuple[float, dict[str, Any]]:
        """Ask for a challenge; return the seconds until its result is shown, and the result."""
        began = time.monotonic()
        challenge = self.request("/api/v1/challenges", {"opponent": opponent})["challenge"]
        while not challenge["is_over"] and time.monotonic() - began < LIMIT_S:
            time.sleep(POLL_S)
            challenge = self.request(f"/api/v1/challenges/{challenge['id']}")["challenge"]
        return time.monotonic() - began, challenge


def submit(url: str, token: str) -> None:
    """Submit the starter kit, and wait until it has qualified.  Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*KALARENA, "new", "python", "kit"], cwd=folder, check=True, capture_output=True)
        options = ("--server", url, "--token", token)
        subprocess.run([*KALARENA, "submit", "kit", *options], cwd=folder, check=True, capture_output=True)


def percentile(times: list[float], share: float) -> float:
    """Return the nearest-rank percentile; ``share`` is between 0 and 1."""
    return sorted(times)[max(0, -(-int(share * 100 * len(times)) // 100) - 1)]


def main() -> int:
    """Print the times; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--challenges", type=int, default=20, help="number of challenges (20)")
    parser.add_argument("--opponent", default="ladder:3", help="reference player (ladder:3)")
    options = parser.parse_args()
    with made_scene(1, None) as scene:
        with Course(scene.database.course()) as course:
            course.settings.change(practice_on=False, challenge_pairs_per_day=None)
        with running_server(Path(scene.data)) as server:
            url, token = f"http://127.0.0.1:{server.port}", scene.students[0].token
            submit(url, token)
            print(f"load average before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", flush=True)
            client, times = Client(url, token), []
            for number in range(1, options.challenges + 1):
                seconds, challenge = client.play(options.opponent)
                if challenge["state"] != "finished":
                    print(f"challenge {number} is {challenge['state']}: {challenge['message']}")
                    return 1
                times.append(seconds)
                print(f"challenge {number}: {seconds:.1f} s", flush=True)
            server.end()
    print(f"load average after: {os.getloadavg()[0]:.2f}")
    median = statistics.median(times)
    verdict = "reached" if median < TARGET_S else "not reached"
    print(f"median {median:.1f} s, p90 {percentile(times, 0.9):.1f} s of {len(times)} challenges")
    print(f"target, a median under {TARGET_S:.0f} s: {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

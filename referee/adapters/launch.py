"""Main program of the adapters: ``python -I -S .../referee/adapters/launch.py PROTOCOL NETWORK COMMAND...``.

NETWORK is ``own`` if the bot has a loopback interface for itself, else ``shared``.

Started by its path, this file works in any directory, whether Kalarena is installed or not, and
begins quickly since it does not look for installed packages.
"""

import os
import sys
import traceback

ADAPTER_FAILED = 70
"""Exit status of an adapter that failed itself (EX_SOFTWARE in sysexits.h)."""
NOT_RUNNABLE = 127
"""Exit status when the bot's command cannot be run, as shells use it."""


class AdapterFailedError(Exception):
    """The adapter failed itself.  The verdict quotes the message, the last line on standard error."""


def main(protocol: str, network: str, command: list[str]) -> None:
    """Play one game between the referee on standard input and output and the bot of a command."""
    from referee.adapters.game_follower import GameFollower
    from referee.games.catalog import DEFAULT_GAME, GAME_VARIABLE, OPENING_VARIABLE, parse_game

    game = parse_game(os.environ.get(GAME_VARIABLE, DEFAULT_GAME))
    follower = GameFollower(game, opening=bool(os.environ.get(OPENING_VARIABLE)))
    try:
        if protocol == "turns":
            from referee.adapters.turns import TurnsAdapter

            TurnsAdapter(command, follower).run()
        else:
            from referee.adapters.command import OWN_NETWORK
            from referee.adapters.kgp_server import KgpAdapter

            KgpAdapter(command, follower, own_network=network == OWN_NETWORK).run()
    except OSError as error:
        if error.filename != command[0]:
            raise
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(NOT_RUNNABLE)


if __name__ == "__main__":
    # The folder above this package contains the packages that it imports.
    path = os.path  # pathlib is slow to import
    sys.path.append(path.dirname(path.dirname(path.dirname(path.abspath(__file__)))))
    try:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
    except Exception as error:
        failure = AdapterFailedError(
            f"the {sys.argv[1]} adapter of Kalarena failed, by no fault of the bot: {error!r}"
        )
        traceback.print_exception(failure.with_traceback(error.__traceback__))
        sys.stderr.flush()
        os._exit(ADAPTER_FAILED)

"""Openings of a tournament: from a file, or random ones."""

import random
from pathlib import Path
from typing import NamedTuple

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import OpeningError, parse_opening

MAX_OPENING_PLIES = 100
"""Documented bound on the plies of random openings."""
ATTEMPTS = 1000
"""Maximum draws of a random opening; one that ends the game, or is a duplicate, is drawn again."""
MOST_PROBLEMS = 5
"""Bad lines of a file that are named: a file that is no list of openings has nothing else."""
SHORT_PLIES = 5
"""Length of random openings in plies where nobody chose one: in Kalah with six pits and four seeds there are
13,580 of them, more than any duel needs by default, and the game is still open."""


class OpeningBook(NamedTuple):
    """Openings of a tournament, by default the game's own start alone."""

    texts: tuple[str, ...] = ()
    source: str = ""
    """Description of the source; only results with the same source can be compared."""

    @classmethod
    def from_file(cls, game: str, path: Path) -> "OpeningBook":
        """Return the openings of a file, for a game's spec text.  Raises OpeningError."""
        texts = read_openings(parse_game(game), path)
        return cls(texts, "; ".join(texts))

    @classmethod
    def random(cls, game: str, plies: int, seed: int, count: int) -> "OpeningBook":
        """Return random openings, see ``random_openings``.  Raises OpeningError."""
        texts = random_openings(parse_game(game), plies, seed, count)
        return cls(texts, f"random, {plies} plies, seed {seed}")

    @classmethod
    def short(cls, game: str, seed: int, count: int) -> "OpeningBook":
        """Return random openings of SHORT_PLIES plies.

        They are shorter where a game would be over by then; there are none if any move ends it.
        """
        for plies in range(SHORT_PLIES, 0, -1):
            try:
                return cls.random(game, plies, seed, count)
            except OpeningError:
                continue
        return cls()


def read_openings(game: AnyGame, path: Path) -> tuple[str, ...]:
    """Return the openings of a file.

    A line holds one opening, a position or moves with spaces between them; # begins a comment.  Raises
    OpeningError that names the first bad lines.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise OpeningError(f"{path} cannot be read: it is not UTF-8 text") from error
    except (OSError, ValueError) as error:  # a path with a NUL character
        raise OpeningError(
            f"{path} cannot be read: {getattr(error, 'strerror', 'its name holds a NUL character')}"
        ) from error
    openings, problems = [], []
    for number, line in enumerate(lines, 1):
        text = " ".join(line.partition("#")[0].split())
        if not text:
            continue
        try:
            parse_opening(game, text)
        except OpeningError as error:
            problems.append(f"{path.name} line {number}: {error}")
        openings.append(text)
    if problems:
        hidden = len(problems) - MOST_PROBLEMS
        raise OpeningError(
            "; ".join(problems[:MOST_PROBLEMS]) + (f"; and {hidden} more" if hidden > 0 else "")
        )
    if not openings:
        raise OpeningError(f"{path} holds no opening")
    return tuple(openings)


def random_openings(game: AnyGame, plies: int, seed: int, count: int) -> tuple[str, ...]:
    """Return ``count`` different openings; fewer if no other one is found.

    The first ones are the same for a larger ``count``.  Raises OpeningError if none can be found.
    """
    found: dict[str, None] = {}
    for number in range(count):
        dice = random.Random(f"{seed}/{number}")  # a text gives the same seed everywhere and for ever
        drawn = (_draw(game, plies, dice) for _ in range(ATTEMPTS))
        text = next((text for text in drawn if text is not None and text not in found), None)
        if text is None:
            break
        found[text] = None
    if not found:
        raise OpeningError(f"no {game.name} was still on after {plies} random plies, {ATTEMPTS} tries long")
    return tuple(found)


def _draw(game: AnyGame, plies: int, dice: random.Random) -> str | None:
    """Return random moves from the start, never the swap; None if the game is over after them."""
    state = game.initial_state()
    words = []
    for _ in range(plies):
        moves = [move for move in game.legal_moves(state) if game.swap is None or move != game.swap]
        if not moves:
            return None
        move = dice.choice(moves)
        words.append(game.format_move(state, move))
        state = game.apply(state, move)
    return None if game.outcome(state) is not None else " ".join(words)

"""Reader of the games that ``tournaments.reporting.sgf`` writes; any other text is an AssertionError."""

import re
from collections.abc import Iterator

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from tournaments.reporting.sgf import NEEDED, PLAYED_BY, RESULTS, VERSION, GameText, Ply

PROPERTY = r"\s*([A-Z]+)\[((?:[^\\\]]|\\.)*)\]"
NODE = re.compile(rf"\s*;((?:{PROPERTY})*)", re.DOTALL)
WINNERS = {word: winner for winner, word in RESULTS.items()}


def states(text: GameText) -> Iterator[object]:
    """Yield the position before the first move, and after each move, by the rules."""
    game: AnyGame = parse_game(text.game)
    steps = parse_opening(game, text.opening)
    state = steps[-1].state if steps else game.initial_state()
    yield state
    for ply in text.plies:
        state = game.apply(state, game.parse_move(state, ply.move))
        yield state


def parse(text: str) -> GameText:
    """Return the game of a text."""
    assert re.fullmatch(rf"\(({NODE.pattern})+\s*\)\s*", text, re.DOTALL)
    root, *moves = [dict(_properties(node[1])) for node in NODE.finditer(text[1:])]
    assert root["KA"] == VERSION
    assert set(NEEDED) <= set(root)
    last = moves[-1] if moves else root
    first_score, _, second_score = root.get("SC", "").partition(":")
    return GameText(
        game=root["RU"],
        first=root["PF"],
        second=root["PS"],
        winner=WINNERS[root["RE"]],
        reason=root["RN"],
        sentence=last.get("C", ""),
        fault=root.get("FA", ""),
        score=(int(first_score), int(second_score)) if first_score else None,
        started_at=root.get("DT", ""),
        control=root.get("TM", ""),
        opening=root.get("OP", ""),
        tournament=root.get("EV", ""),
        round=int(root["RO"]) if "RO" in root else None,
        key=root.get("ID", ""),
        final=root.get("FP", ""),
        aside=root.get("AS", ""),
        plies=tuple(map(_ply, moves)),
    )


def _properties(node: str) -> Iterator[tuple[str, str]]:
    """Yield names and values without escapes; no name occurs twice."""
    found = re.findall(PROPERTY, node, re.DOTALL)
    assert len(dict(found)) == len(found)
    for name, value in found:
        yield name, re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)


def _ply(node: dict[str, str]) -> Ply:
    (player,) = (player for player, name in enumerate(PLAYED_BY) if name in node)
    assert re.fullmatch(r"\d+\.\d{3}", node["T"])
    return Ply(player, node[PLAYED_BY[player]], int(node["T"].replace(".", "")))

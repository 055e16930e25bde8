"""Data of a casual game's page: the plies, the legal moves with their cells, and the state in words."""

from typing import Any

from referee.games.catalog import AnyGame
from referee.games.layout import GridBoard, PitBoard
from referee.judge.verdict_text import visible
from tournaments.reporting.board import board_renderer
from tournaments.reporting.board.drawing import changed_cells
from tournaments.reporting.site.replay_page import without_styles
from tournaments.server.casual.table import Table
from tournaments.server.live_hub import LiveGame
from tournaments.web.http.routing import in_thread
from tournaments.web.views.game_caches import LiveBoards


def legal_moves(game: AnyGame, state: Any) -> list[dict[str, Any]]:
    """Return the legal moves with the cells of the scene by which a person points at them.

    The keys are: ``move``; ``from``, cells of which one is pointed at first; ``to``, cells of which one is
    pointed at then.  A move with one list alone is played at once, and one with neither has a button of its
    own, such as the swap (``swap``).
    """
    return [
        {"move": game.format_move(state, move), "swap": move == game.swap}
        | (_NO_CELLS if move == game.swap else _cells(game, state, move))
        for move in game.legal_moves(state)
    ]


_NO_CELLS: dict[str, list[int]] = {"from": [], "to": []}


def _cells(game: AnyGame, state: Any, move: Any) -> dict[str, list[int]]:
    layout = game.layout(state)
    if isinstance(layout, PitBoard):
        text = game.format_move(state, move)
        pits = len(layout.bottom.pits)
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= pits):
            return _NO_CELLS
        # The pits of the upper row, its store, the pits of the lower row.
        is_below = layout.bottom.owner is game.to_move(state)
        return {"from": [int(text) - 1 + (pits + 1 if is_below else 0)], "to": []}
    assert isinstance(layout, GridBoard)
    squares = sum(map(len, layout.rows))
    before = board_renderer.contents(game, state)
    left, entered = changed_cells(before, board_renderer.contents(game, game.apply(state, move)))
    return {"from": sorted(cell for cell in left if cell < squares), "to": sorted(entered)}


async def casual_page(boards: LiveBoards, table: Table, side: int | None) -> dict[str, Any]:
    """Return the whole data of a game's page; ``side`` is the viewer's, or None."""
    board = await boards.get(_live_game(table))
    page = board.page(_names(table))
    state = await casual_state(boards, table, side, 0, table.game.revision)
    data = {**page["board"], "svg": ""}
    return {
        "svg": without_styles(page["board"]["svg"]),
        "width": page["board"]["width"],
        "ratio": page["board"]["width"] / page["board"]["height"],
        "players": page["players"],
        "pits": isinstance(table.rules.layout(table.states[0]), PitBoard),
        "status": state["status"],
        "json": {
            "board": data,
            "players": page["players"],
            "start": page["start"],
            "you": side,
            "bot": table.bot,
            "state": state,
        },
    }


async def casual_state(
    boards: LiveBoards, table: Table, side: int | None, after: int, revision: int
) -> dict[str, Any]:
    """Return the state for a viewer who has ``after`` plies of a ``revision``.

    The keys are: ``revision``; ``plies`` after the first ``after`` ones, which is 0 if the viewer's revision
    is an old one; ``players`` (names); ``to_move``; ``legal`` (moves of the viewer, in turn); ``status``;
    ``over``, ``winner``; ``trouble``; ``open`` (a seat waits for a person); ``may_take_back``.
    """
    game, to_move = table.game, table.to_move
    rules, state, trouble = table.rules, table.state, table.trouble
    is_waiting, is_open = table.is_waiting, table.is_open
    if game.revision != revision or after > len(game.moves):
        after = 0
    is_own_turn = side is not None and side == to_move and not is_open
    legal = await in_thread(legal_moves, rules, state) if is_own_turn else []
    board = await boards.get(_live_game(table, game))
    names = [visible(player.name) for player in game.players]
    return {
        "revision": game.revision,
        "after": after,
        "plies": board.plies[after : len(game.moves)],
        "players": names,
        "to_move": to_move,
        "legal": legal,
        "status": _status(table, side, to_move, is_waiting, is_open),
        "over": game.ended_at is not None,
        "winner": game.winner,
        "trouble": visible(trouble),
        "open": is_open,
        "may_take_back": side is not None
        and table.bot is not None
        and game.ended_at is None
        and any(ply["player"] == side for ply in board.plies[: len(game.moves)]),
    }


def _status(table: Table, side: int | None, to_move: int | None, is_waiting: bool, is_open: bool) -> str:
    game = table.game
    if game.ended_at is not None:
        return visible(game.sentence)
    if is_open:
        return "Waiting for your opponent: pass the link on." if side is not None else "A seat is free."
    if to_move is None:
        return "The game is over."
    if to_move == side:
        return "Your turn."
    name = visible(game.players[to_move].name)
    if to_move != table.bot:
        return f"{name} is to move."
    return f"{name} waits for a free slot on the server." if is_waiting else f"{name} is thinking."


def _names(table: Table) -> tuple[str, str]:
    first, second = (visible(player.name) for player in table.game.players)
    return first, second


def _live_game(table: Table, game: Any = None) -> LiveGame:
    """Return the game as the cache of boards takes it; each take-back makes another one."""
    game = game or table.game
    first, second = _names(table)
    return LiveGame(
        competition="play",  # no slug of a competition is as long as the key of this one
        key=f"{game.address}/{game.revision}",
        game=game.game,
        first=first,
        second=second,
        opening=game.opening,
        control="",
        started_at=game.created_at,
        moves=game.moves,
        charged_us=(0,) * len(game.moves),
    )

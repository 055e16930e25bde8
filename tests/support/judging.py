"""A judge under test: feeds it events at made-up times, answers its sends, keeps what it said."""

from typing import Any

from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.judge.clock import TimeControl
from referee.judge.events import Event, InputClosed, LineReceived, Send, Sent, StartRead, TimePassed
from referee.judge.match import Match
from referee.judge.results import MatchResult, Reason

CONTROL = TimeControl(move_s=1.0, margin_s=0.25, start_s=10.0, setup_s=0.5)
"""All binary fractions, so that deadlines come out exact."""


class Judged:
    """A match in which sending takes no time, and START is taken at once unless a player is asleep."""

    def __init__(
        self,
        control: TimeControl = CONTROL,
        game: str = "manchester",
        *,
        asleep: tuple[int, ...] = (),
        gone: tuple[int, ...] = (),
        opening: str = "",
        timed: tuple[bool, bool] = (False, False),
        ready_at: float = 0.0,
        **options: Any,
    ) -> None:
        """``options`` are those of ``Match``: ``wire_bytes``, ``limits`` and ``judge``.

        ``ready_at`` is when both sandboxes are made, and the first START is sent.
        """
        rules = parse_game(game)
        steps = parse_opening(rules, opening)
        self.match: Match[Any, Any] = Match(rules, control, ("Ada", "Bob"), steps, timed, **options)
        self.said: tuple[list[str], list[str]] = ([], [])
        self.order: list[Send] = []
        self.asleep = asleep
        self.gone = gone
        self.at = ready_at
        self._carry_out(self.match.start(0.0))

    def tell(self, event: Event) -> None:
        self.at = event.at
        self._carry_out(self.match.handle(event))

    def tell_taken(self, player: int, at: float) -> None:
        """A player that was asleep has taken its START."""
        self.tell(StartRead(player, at))

    def line(self, player: int, text: str, at: float | None = None) -> None:
        self.tell(LineReceived(player, self.at if at is None else at, text))

    def play(self, *lines: str) -> None:
        """Lines of whoever is on turn."""
        for text in lines:
            assert self.match.on_turn is not None, self.match.result
            self.line(self.match.on_turn, text)

    def wait_until(self, at: float, unfinished: tuple[str, str] = ("", "")) -> None:
        self.tell(TimePassed(at, unfinished))

    @property
    def result(self) -> MatchResult:
        assert self.match.result is not None
        return self.match.result

    @property
    def verdict(self) -> tuple[int | None, Reason]:
        """The winner and the reason."""
        return self.result.winner, self.result.reason

    def _carry_out(self, sends: list[Send]) -> None:
        for send in sends:
            if send.player in self.gone:
                self._carry_out(self.match.handle(InputClosed(send.player, self.at)))
                continue
            self.order.append(send)
            self.said[send.player].append(send.line)
            self._carry_out(self.match.handle(Sent(send.player, self.at, send.line)))
            if send.line.startswith("START") and send.player not in self.asleep:
                self._carry_out(self.match.handle(StartRead(send.player, self.at)))

"""The referee sends the same lines as the course's own engine, to the same bots."""

import sys

import pytest

from referee.games.catalog import parse_game
from referee.judge.clock import TimeControl
from referee.judge.events import BotExited, LineReceived, OutputClosed, Send, Sent, StartRead, TimePassed
from referee.judge.limits import Limits
from referee.judge.match import Match
from referee.judge.results import MatchResult, Player, Reason
from referee.playing import Job, play_game
from tests.support.paths import SUPPORT
from tests.support.transcripts import DIRECTORY, LIMIT_S, SEATS, SLOW_REPLY_S, Transcript, load_all

REPLAY_BOT = SUPPORT / "replay_bot.py"
ALL = load_all()
REFUSED_BY_US = "utf8"
"""The old engine took a non-ASCII digit for a number; ours refuses it, on purpose."""

# What each recorded bot's last line was to the engine; the tag's middle part names what the bot does.
FAULT_REASONS = {
    **dict.fromkeys(("illegal", "move8", "early", "bothstart", "oppmove"), Reason.ILLEGAL),
    **dict.fromkeys(
        ("move0", "moveneg", "malformed", "nomovearg", "trailspace", "leadspace", "crlf", "swapcrlf"),
        Reason.PROTOCOL,
    ),
    **dict.fromkeys(("blankonly", "debugline", "swap", "big", "utf8", "earlybad"), Reason.PROTOCOL),
    **dict.fromkeys(("swap-as-very-first-message", "re-swap-after-being-swapped"), Reason.PROTOCOL),
    **dict.fromkeys(("nonlexit", "exit3", "moveexit", "closeout", "exitstart"), Reason.EXIT),
    **dict.fromkeys(("nonl", "hang", "0.7s-per-move", "no-newline"), Reason.TIMEOUT),
}


def expected_reason(transcript: Transcript) -> Reason:
    if not transcript.data["result"]["aborted"] and REFUSED_BY_US not in transcript.tag:
        return Reason.SCORE
    if transcript.file == "real_bots_own_faults":
        return Reason.ILLEGAL
    if transcript.tag.startswith("fault:stderr"):
        return Reason.TIMEOUT
    parts = transcript.tag.removesuffix(":as-South").removesuffix(":as-North").split(":")
    return FAULT_REASONS[parts[-1]]


def check_result(transcript: Transcript, result: MatchResult) -> None:
    assert result.winner == transcript.winner, result.detail
    assert result.reason is expected_reason(transcript), result.detail
    assert (result.score is not None) == (result.reason is Reason.SCORE)
    if result.score is not None:
        assert abs(result.score[0] - result.score[1]) == transcript.data["result"]["score_diff"]


def expected_lines(transcript: Transcript, player: int) -> list[str]:
    """Lines that a bot must receive.  Where we refuse a line that the old engine accepted, the game ends."""
    if REFUSED_BY_US not in transcript.tag:
        return transcript.sent_to(SEATS[player])
    told: list[str] = []
    for event in transcript.events:
        if not event.get("line", "").isascii():
            break
        if event.get("to") == SEATS[player]:
            told.append(event["line"])
    return [*told, "END"]


def time_control(transcript: Transcript) -> TimeControl:
    """The old engine's limit; where it had none, one that ends the games of bots that hang."""
    if transcript.limited:
        return TimeControl(game_s=LIMIT_S)
    return TimeControl(move_s=1.0 if transcript.killed else 20.0)


class Replay:
    """Feeds a judge what the recorded bots did, at made-up times, and keeps what it says."""

    def __init__(self, transcript: Transcript) -> None:
        self.match = Match(parse_game("manchester"), time_control(transcript), ("one", "two"))
        self.reply_s = {seat: SLOW_REPLY_S if "slow" in transcript.data[seat] else 0.001 for seat in SEATS}
        self.hangs = expected_reason(transcript) is Reason.TIMEOUT
        self.said: tuple[list[str], list[str]] = ([], [])
        self.dead: set[int] = set()
        self.at = 0.0
        self.tell_all(self.match.start(0.0))
        for event in transcript.events:
            self.feed(event)

    def feed(self, event: dict[str, str]) -> None:
        self.at += self.reply_s[event["from"]] if "from" in event else 0.001
        if "from" in event and not event.get("unread"):
            player = SEATS.index(event["from"])
            self.tell_all(self.match.handle(LineReceived(player, self.at, event["line"])))
        elif self.match.result is None and self.hangs and (event.get("line") == "END" or "event" in event):
            assert self.match.deadline is not None
            self.at = max(self.at, self.match.deadline + 0.001)
            self.tell_all(self.match.handle(TimePassed(self.at)))
        elif event.get("event", "").startswith("EXIT:") and self.match.result is None:
            player = SEATS.index(event["agent"])
            status = int(event["event"].removeprefix("EXIT:"))
            self.tell_all(self.match.handle(BotExited(player, self.at, status, "", "")))
        elif event.get("event") == "<EOF" and self.match.result is None:
            player = SEATS.index(event["agent"])
            self.tell_all(self.match.handle(OutputClosed(player, self.at, "")))

    def tell_all(self, sends: list[Send]) -> None:
        for send in sends:
            self.at += 0.0001
            self.said[send.player].append(send.line)
            self.tell_all(self.match.handle(Sent(send.player, self.at, send.line)))
            if send.line.startswith("START"):
                self.tell_all(self.match.handle(StartRead(send.player, self.at)))


def same_lines(transcript: Transcript, player: int, told: list[str]) -> bool:
    """Return True if a bot received the expected lines.

    A bot that ended by itself may have been told less, or more.  Its opponent: the old engine found out when
    it wrote to the dead bot, before it told the opponent of the last move; we may have told it already.
    """
    expected = expected_lines(transcript, player)
    if transcript.killed:
        return told == [*expected, "END"]
    if transcript.exiting is None:
        return told == expected
    if player == transcript.exiting:
        return True
    if "exitstart" in transcript.tag:
        return told[-1] == "END" and not any(line.startswith("CHANGE") for line in told)
    extra = [line for line in told if line not in expected]
    return [line for line in told if line in expected] == expected and len(extra) <= (
        "moveexit" in transcript.tag
    )


@pytest.mark.parametrize("transcript", ALL, ids=lambda transcript: transcript.name)
def test_the_judge_sends_what_the_engine_sent(transcript: Transcript) -> None:
    replay = Replay(transcript)
    assert replay.match.result is not None
    for player in (0, 1):
        assert same_lines(transcript, player, replay.said[player])
    check_result(transcript, replay.match.result)


QUICK_TAGS = {
    *("fault:illegal", "fault:nonl", "fault:exit3", "fault:moveexit", "fault:closeout", "fault:early"),
    *("fault:exitstart", "fault:stayafterend", "fault:slowstart", "real-bot-fault", "stderr-60000-bytes"),
}
"""Games of scripted bots that the quick tier plays with real processes: one for each way to end."""


def is_quick(transcript: Transcript) -> bool:
    tag = transcript.tag.removesuffix(":as-South").removesuffix(":as-North")
    return tag in QUICK_TAGS or (transcript.index == 0 and transcript.file != "scripted_faults")


@pytest.mark.parametrize(
    "transcript",
    [pytest.param(one, id=one.name, marks=[] if is_quick(one) else [pytest.mark.slow]) for one in ALL],
)
async def test_real_processes_are_sent_what_the_engine_sent_them(transcript: Transcript) -> None:
    games = DIRECTORY / f"{transcript.file}.jsonl"
    command = (sys.executable, "-S", "-E", str(REPLAY_BOT), str(games), str(transcript.index))
    players = [Player(str(transcript.data[seat]), (*command, seat), str(DIRECTORY)) for seat in SEATS]
    job = Job(
        "replay", "manchester", (players[0], players[1]), time_control(transcript), Limits(end_grace_s=0.2)
    )
    record = await play_game(job)
    for player in (0, 1):
        told = [line.line for line in record.wire if (line.player, line.direction) == (player, "to")]
        assert same_lines(transcript, player, told)
    check_result(transcript, record.result)
    if record.result.reason is Reason.SCORE:
        final = transcript.data["result"]["final_board"]
        assert record.final_state == ",".join(map(str, final))

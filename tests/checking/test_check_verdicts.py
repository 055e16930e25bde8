"""Verdicts of a check from records alone, for bots that no short test can show."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from referee.conformance.script import (
    FORFEIT_LINE,
    FragmentedLine,
    Observations,
    TestOpponent,
    UnexpectedLine,
)
from referee.games.catalog import parse_game
from referee.judge.clock import TimeControl
from referee.judge.record_rows import MoveRecord, WireLine
from referee.judge.results import MatchResult, Reason
from referee.judge.verdict_text import late, late_reply, long_line
from tests.support.builders import lost_by, make_record
from tournaments.checking import gameplay, output_rules, resource_usage
from tournaments.checking.advice import (
    ADVICE,
    FORMAT,
    NO_SWAP,
    NO_SWAP_AFTER_MOVES,
    NO_SWAP_AFTER_POSITION,
    STDERR,
    likely_cause,
    what_happened,
    what_to_do,
)
from tournaments.checking.evidence import OUT_OF_TIME, Evidence, PlayedScenario, Verdict
from tournaments.checking.report import Status
from tournaments.checking.scenarios import (
    Scenario,
    Settings,
    chaining,
    gives_extra_turn,
    has_extra_turns,
    has_swap,
    opening_with,
    swapping,
    varied,
)

GAME = Scenario("g", "as South against first_legal", "plays-first", "kalah(1,1)", 0, "first_legal")
TALK = replace(GAME, opponent="", test_opponent=TestOpponent(varied), title="as South, in a conversation")


def evidence(*played: PlayedScenario, cut: dict[str, str] | None = None) -> Evidence:
    return Evidence("kalah(1,1)", played, cut or {}, (), 512, 65536, 0.5)


def moves(*charged_ms: float, cpu_ms: float | None = None) -> list[MoveRecord]:
    cpu = None if cpu_ms is None else round(cpu_ms * 1000)
    waits = (None, None) if cpu is None else (0, 0)
    return [MoveRecord(0, "1", round(ms * 1000), round(ms * 1000), cpu, *waits) for ms in charged_ms]


def game(
    *charged_ms: float, cpu_ms: float | None = None, control: TimeControl | None = None
) -> PlayedScenario:
    control = control or TimeControl(move_s=1.0)
    return PlayedScenario(GAME, make_record(moves=moves(*charged_ms, cpu_ms=cpu_ms), control=control))


@pytest.mark.parametrize(
    ("values", "share", "value"),
    [([5], 0.5, 5), ([1, 2, 3, 4], 0.5, 2), ([1, 2, 3, 4], 0.95, 4), (list(range(1, 101)), 0.95, 95)],
)
def test_percentiles_by_nearest_rank(values: list[float], share: float, value: float) -> None:
    assert resource_usage.percentile(values, share) == value


def behind_adapter(protocol: str, fault: str, reason: Reason) -> PlayedScenario:
    """A game that a bot of another protocol lost."""
    record = make_record(result=lost_by(reason, 0, "one lost: it did", fault), stderr=("an error\n", ""))
    one, other = record.players
    return PlayedScenario(GAME, replace(record, players=(replace(one, protocol=protocol), other)))


@pytest.mark.parametrize(
    ("protocol", "fault", "reason", "advice"),
    [
        ("turns", "late", Reason.TIMEOUT, "answer each line of standard input by one line"),
        ("turns", "no-such-pit", Reason.ILLEGAL, "print one of the texts in legal_moves"),
        ("turns", "memory-limit", Reason.MEMORY, "keep less"),
        ("kgp", "late", Reason.TIMEOUT, "answer each state by @ID move PIT"),
        ("kgp", "start-limit", Reason.START, "connect to KGP_HOST and KGP_PORT"),
        ("kgp", "closed-output", Reason.EXIT, "keep the connection open until goodbye"),
    ],
)
def test_advice_is_in_the_terms_of_the_bots_protocol(
    protocol: str, fault: str, reason: Reason, advice: str
) -> None:
    played = behind_adapter(protocol, fault, reason)
    assert what_to_do(played).startswith(advice)
    assert "START" not in what_to_do(played)
    assert "'an error'" in what_happened(played)


def lost_after(line: str, fault: str, reason: Reason, event: str) -> PlayedScenario:
    """A game that its first bot lost after it had sent a line."""
    wire = [WireLine(0, "to", "START;South", 0), WireLine(0, "from", line, 1)]
    return PlayedScenario(
        GAME, replace(make_record(result=lost_by(reason, 0, f"one lost: {event}", fault)), wire=wire)
    )


def test_advice_on_a_read_only_file_is_that_of_the_verdict() -> None:
    """By default a bot can write in its own directory."""
    advice = what_to_do(behind_adapter("", "read-only", Reason.FILES))
    assert advice.startswith("write a new file in the bot's own directory")


@pytest.mark.parametrize(
    ("line", "fault", "reason", "event", "advice"),
    [
        (
            "MOVE;1",
            "late",
            Reason.TIMEOUT,
            late("1 s passed", "", "running"),
            "look for a loop that does not end",
        ),
        (
            "MOVE;1",
            "late",
            Reason.TIMEOUT,
            late_reply("1 s passed", "MOVE;1"),
            "it replied too late: measure the time",
        ),
        (
            "MOVE;1",
            "late",
            Reason.TIMEOUT,
            late("1 s passed", "", "waiting"),
            "take out sleep(), and waits for",
        ),
        ("M\0O\0V\0E\0;\x007\0", "nul-byte", Reason.PROTOCOL, "it did", "write ASCII or UTF-8"),
        ("ÿþM\0O\0V\0E\0;\x007\0", "nul-byte", Reason.PROTOCOL, "it did", "write ASCII or UTF-8"),
        ("MOVE;7\0", "nul-byte", Reason.PROTOCOL, "it did", "do not send the zero that ends a text in C"),
    ],
)
def test_advice_follows_what_the_bot_did(
    line: str, fault: str, reason: Reason, event: str, advice: str
) -> None:
    """A bot that still computes did not forget to flush, and UTF-16 is no zero at the end of a text in C."""
    words = what_to_do(lost_after(line, fault, reason, event))
    assert words.startswith(advice)
    if advice.startswith("look"):
        assert "flush" not in words


@pytest.mark.parametrize(
    ("spec", "opening", "advice"),
    [
        ("kalah(4,3)", "", NO_SWAP),
        ("kalamala", "", NO_SWAP),
        ("kalah(4,3)+pie", "", ADVICE["swap-not-offered"]),
        ("kalah(4,3)+pie", "1", ADVICE["swap-not-offered"]),
        ("kalah(4,3)+pie", "1 1", NO_SWAP_AFTER_MOVES),
        ("kalah(4,3)+pie", "3,3,3,3,0,0,4,4,4,0;North", NO_SWAP_AFTER_POSITION),
    ],
)
def test_advice_on_a_swap_says_where_there_is_one(spec: str, opening: str, advice: str) -> None:
    lost = lost_after("SWAP", "swap-not-offered", Reason.PROTOCOL, "it sent 'SWAP'")
    assert what_to_do(replace(lost, record=replace(lost.record, game=spec, opening=opening))) == advice


@pytest.mark.parametrize(
    ("size", "has_ended", "words"),
    [
        (1025, True, " (the line had 1025 bytes)"),
        (70_000, False, " (the line had not ended after 70000 bytes)"),
        (0, False, ""),  # not observed
    ],
)
def test_a_long_line_is_described_with_all_of_its_bytes(size: int, has_ended: bool, words: str) -> None:
    event = long_line("x" * 1024)
    lost = lost_after("MOVE;1", "long-line", Reason.FLOOD, event)
    observed = Observations(long_line_bytes=size, has_long_line_ended=has_ended, after_end="a\n")
    assert what_happened(replace(lost, observed=observed)) == event + words
    assert what_happened(lost) == event


def test_advice_on_cr_lf_names_causes_on_every_system() -> None:
    """On Linux the bot itself sends the CR; on Windows it is added, in C and C++ to each line feed."""
    advice = what_to_do(lost_after("MOVE;1\r", "crlf", Reason.PROTOCOL, "it did"))
    for words in ('"\\r\\n" in the bot\'s source', "lines end in CR LF", "println", "newline=", "_O_BINARY"):
        assert words in advice


@pytest.mark.parametrize(
    ("player", "move", "line", "words"),
    [
        (
            1,
            "SWAP",
            "CHANGE;SWAP;0,1,0,1;YOU",
            "its opponent has just swapped: the bot has the other seat now",
        ),
        (0, "1", "CHANGE;1;0,1,0,1;YOU", "that was an extra turn"),
        (1, "1", "CHANGE;1;0,1,0,1;YOU", ""),
    ],
)
def test_a_missing_reply_is_explained_by_the_last_line_that_was_sent(
    player: int, move: str, line: str, words: str
) -> None:
    lost = make_record(
        moves=[MoveRecord(player, move, 1, 1)],
        wire=[WireLine(0, "to", "START;South", 0), WireLine(0, "to", line, 1)],
        result=lost_by(Reason.TIMEOUT, 0, "one lost: 1 s passed", "late"),
    )
    cause = likely_cause(PlayedScenario(GAME, lost))
    assert cause.startswith(words)
    assert bool(cause) == bool(words)


def test_a_word_that_was_almost_one_of_the_protocol_gets_the_format_as_advice() -> None:
    event = "it sent 'MOV;1': did you mean MOVE?"
    assert what_to_do(lost_after("MOV;1", "unknown-message", Reason.PROTOCOL, event)) == FORMAT
    assert what_to_do(lost_after("hello", "unknown-message", Reason.PROTOCOL, "it sent 'hello'")) != FORMAT


@pytest.mark.parametrize("holds_output", [False, True])
def test_a_process_that_outlived_the_bot_is_named_in_its_verdict(holds_output: bool) -> None:
    observed = Observations(left_behind=["sleep"], holds_output=holds_output)
    played = replace(lost_after("MOVE;1", "late", Reason.TIMEOUT, "1 s passed"), observed=observed)
    text = what_happened(played)
    assert "a process that it had started (sleep) lived on" in text
    assert text.endswith(", and holds its standard output open") == holds_output


def test_a_greeting_before_the_turn_is_no_misunderstood_turn() -> None:
    observed = Observations(unexpected_lines=[UnexpectedLine("Welcome!", "START;North")])
    verdict = output_rules.one_reply(evidence(replace(game(5), observed=observed)))
    assert verdict.status is Status.FAILED
    assert verdict.advice == STDERR
    observed = Observations(unexpected_lines=[UnexpectedLine("7", "START;North")])
    verdict = output_rules.one_reply(evidence(replace(game(5), observed=observed)))
    assert verdict.advice.startswith("after START;North wait")  # a move, in a wrong form


def test_a_line_after_the_first_move_is_blamed_on_an_extra_turn_only_where_one_was_expected() -> None:
    """The advice on the first move needs a first move of the bot from the regular start."""
    observed = Observations(unexpected_lines=[UnexpectedLine("MOVE;1", "CHANGE;1;0,1,0,1;OPP")])
    for record in (make_record(moves=[]), make_record(opening="1")):
        verdict = output_rules.one_reply(evidence(PlayedScenario(TALK, record, observed)))
        assert verdict.status is Status.FAILED
        assert verdict.advice.startswith("answer only lines that end in YOU")


def test_a_kgp_bot_may_wait_until_it_is_stopped() -> None:
    talk = [MoveRecord(0, "1", 950_000, 950_000, 10, 0, 0)] * 10
    waits = make_record(moves=talk, control=TimeControl(move_s=1.0))
    plain = PlayedScenario(GAME, waits)
    one, other = waits.players
    kgp = PlayedScenario(GAME, replace(waits, players=(replace(one, protocol="kgp"), other)))
    assert resource_usage.idle(evidence(plain)).status is Status.FAILED
    verdict = resource_usage.idle(evidence(kgp))
    assert verdict.status is Status.WARNING
    assert "yield" in verdict.advice
    assert resource_usage.times(evidence(kgp)).status is Status.PASSED


def test_a_worst_move_near_the_limit_is_a_warning() -> None:
    assert resource_usage.times(evidence(game(10, 700))).status is Status.PASSED
    verdict = resource_usage.times(evidence(game(10, 960)))
    assert verdict.status is Status.WARNING
    assert "96.0% of the limit of 1 s a move" in verdict.sentence
    whole = TimeControl(game_s=1.0)
    assert resource_usage.times(evidence(game(300, 300, control=whole))).status is Status.PASSED
    sentence = resource_usage.times(evidence(game(480, 480, control=whole))).sentence
    assert "96.0% of the limit of 1 s a game" in sentence
    sentence = resource_usage.times(evidence(game(480, 480, control=TimeControl(5.0, 1.0)))).sentence
    assert "96.0% of the limit of 1 s a game" in sentence


def test_a_game_with_an_increment_has_more_time_than_its_limit() -> None:
    growing = TimeControl(game_s=1.0, increment_s=0.5)
    verdict = resource_usage.times(evidence(game(500, 500, 500, 500, control=growing)))
    assert verdict.status is Status.PASSED
    assert "66.7% of the limit of 1 s a game and 0.5 s more a move" in verdict.sentence


def test_lines_that_a_busy_host_divided_are_no_failure() -> None:
    """Each line of a bot without buffers comes in two writes or more, between which it may be stopped."""
    talk = make_record(wire=[WireLine(number, "from", "MOVE;1", 0) for number in [0] * 100])
    for slow, status in ((9, Status.WARNING), (10, Status.FAILED)):
        observed = Observations(fragmented_lines=[FragmentedLine("MOVE;1", 3, 6000)] * slow)
        verdict = output_rules.spelling(evidence(PlayedScenario(TALK, talk, observed)))
        assert verdict.status is status
        assert "in 3 pieces over 6 ms" in verdict.sentence


def test_one_line_in_many_pieces_fails_the_check() -> None:
    """On a busy host the referee reads several pieces at once, and late."""
    talk = make_record(wire=[WireLine(number, "from", "MOVE;1", 0) for number in [0] * 100])
    lines = [FragmentedLine("MOVE;1", 7, 60_000), FragmentedLine("MOVE;1", 2, 70_000)]
    for fragmented in (lines, lines[::-1]):
        observed = Observations(fragmented_lines=fragmented)
        verdict = output_rules.spelling(evidence(PlayedScenario(TALK, talk, observed)))
        assert verdict.status is Status.FAILED
        assert "in 7 pieces over 60 ms" in verdict.sentence


@pytest.mark.parametrize(("moves", "status", "is_cause"), [(5, 1, False), (0, 1, False), (0, 0, True)])
def test_time_lines_are_the_likely_cause_only_of_an_end_in_the_first_turn(
    moves: int, status: int, is_cause: bool
) -> None:
    wire = [WireLine(0, "to", line, 10) for line in ("TIME;1000;1000", "START;South")]
    result = lost_by(Reason.EXIT, 0, f"its process ended with exit status {status}", "exited")
    made = [MoveRecord(0, "1", 10, 10, 10, 0, 0)] * moves
    record = make_record(wire=wire, moves=made, result=result, exit_status=(status, 0))
    assert (likely_cause(PlayedScenario(GAME, record)) != "") == is_cause


def test_idle_moves_neither_compute_nor_wait_for_a_cpu() -> None:
    waited = [move._replace(wait_us=95_000) for move in moves(100, 100, 100, 100, cpu_ms=5)]
    assert resource_usage.idle(evidence(game(5, 100, 100, 100, cpu_ms=1))).status is Status.FAILED
    for played in (
        game(5, 100, 100, 100, cpu_ms=99),
        game(100, 1, 1, 1, cpu_ms=0),  # the first move, in which a bot may read files
        game(100, *[1] * 40, 100, 100, 100, cpu_ms=0),  # hiccups of the machine
        PlayedScenario(GAME, make_record(moves=waited)),
        # Most moves were too brief to be measured.
        PlayedScenario(GAME, make_record(moves=[*moves(*[0.5] * 40), *moves(100, 100, 100, cpu_ms=0)])),
    ):
        assert resource_usage.idle(evidence(played)).status is Status.PASSED


def talk_of(ms: float, cpu_ms: int, number: int = 5) -> PlayedScenario:
    """A conformance game with moves of ``ms`` each, in which the bot computed for ``cpu_ms`` in all."""
    record = make_record(moves=moves(*[ms] * number))
    return PlayedScenario(TALK, record, Observations(cpu_us=cpu_ms * 1000, wait_us=0))


def test_a_bot_that_sleeps_does_so_in_every_conformance_game() -> None:
    asleep, awake, too_short = talk_of(100, 3), talk_of(1, 3), talk_of(1, 0, number=3)
    assert resource_usage.idle(evidence(asleep, asleep, too_short)).status is Status.FAILED
    # A busy host is slow in one and not in another, whatever the bot does.
    assert resource_usage.idle(evidence(asleep, awake)).status is Status.PASSED


@pytest.mark.parametrize(("held_mb", "status"), [(0, "skipped"), (100, "passed"), (450, "warning")])
def test_memory(held_mb: int, status: str) -> None:
    talk = PlayedScenario(TALK, make_record(), Observations(memory_bytes=held_mb << 20))
    assert resource_usage.memory(evidence(talk)).status == status


def test_memory_over_the_limit_fails() -> None:
    over = make_record(result=lost_by(Reason.EXIT, 0, "one (South) lost: it was killed", "memory-limit"))
    assert resource_usage.memory(evidence(PlayedScenario(GAME, over))).status is Status.FAILED


@pytest.mark.parametrize(
    ("replies", "words"), [(("1", "1"), "plays the same game"), (("1", "2"), "plays different games")]
)
def test_repeated_games_are_no_failure(replies: tuple[str, str], words: str) -> None:
    games = [PlayedScenario(GAME, make_record(moves=[MoveRecord(0, move, 1, 1)])) for move in replies]
    verdict = resource_usage.repeats(evidence(*games))
    assert (verdict.status, words in verdict.sentence) == (Status.PASSED, True)
    assert resource_usage.repeats(evidence(games[0])).status is Status.SKIPPED


def test_left_out_games_are_skipped_or_for_lack_of_time_failed() -> None:
    cut = {"plays-first": "it does not start"}
    assert gameplay.plays_first(evidence(cut=cut)).status is Status.SKIPPED
    assert gameplay.plays_first(evidence(game(1), cut=cut)).status is Status.WARNING
    cut = dict.fromkeys(("plays-first", "end-mid-game"), f"{OUT_OF_TIME}, 1 s, was used up")
    assert gameplay.plays_first(evidence(cut=cut)).status is Status.FAILED
    assert output_rules.end_mid_game(evidence(cut=cut)).status is Status.WARNING


def test_a_fault_in_a_game_with_time_lines_is_that_of_the_other_items() -> None:
    """All games of a bot that declares TIME lines have them: its other faults are not explained by them."""
    wire = [WireLine(0, "to", line, 10) for line in ("TIME;1000;1000", "START;South")]
    result = lost_by(Reason.ILLEGAL, 0, "one (South) lost: it sent", "empty-pit")
    lost = make_record(wire=wire, moves=[], result=result)
    played = replace(evidence(PlayedScenario(GAME, lost)), capabilities=("time",))
    first, second = gameplay.plays_first(played), gameplay.time_lines(played)
    assert (first.status, second.status) == (Status.FAILED, Status.FAILED)
    assert first.cause == second.cause == "empty-pit"  # so that the second one only refers to the first


def test_games_with_time_lines_and_without_a_fault_pass() -> None:
    declared = replace(evidence(), capabilities=("time",))
    assert gameplay.time_lines(declared).sentence == "not tried: no game was played"
    wire = [WireLine(0, "to", line, 10) for line in ("TIME;1000;1000", "START;South")]
    played = PlayedScenario(GAME, make_record(wire=wire))
    verdict = gameplay.time_lines(replace(declared, played=(played,)))
    assert verdict.status is Status.PASSED
    assert verdict.sentence == "1 game with TIME lines without a fault"


@pytest.mark.parametrize(
    ("judge", "item", "words"),
    [
        (gameplay.swap, "swap", "not tried: no game came to a swap"),
        (gameplay.extra_turns, "extra-turns", "not tried: nobody had an extra turn"),
    ],
)
def test_a_rule_that_no_game_came_to_is_not_tried(
    judge: Callable[[Evidence], Verdict], item: str, words: str
) -> None:
    played = PlayedScenario(replace(TALK, item=item), make_record())
    verdict = judge(replace(evidence(played), game="manchester"))
    assert (verdict.status, verdict.sentence) == (Status.SKIPPED, words)


@pytest.mark.parametrize(("winner", "word"), [(0, "won"), (1, "lost"), (None, "draw")])
def test_a_game_without_points_is_listed_by_its_outcome(winner: int | None, word: str) -> None:
    record = make_record(result=MatchResult(winner, Reason.SCORE, "it is over", None))
    verdict = gameplay.plays_first(evidence(PlayedScenario(GAME, record)))
    assert verdict.details == (f"{GAME.title}: {word}",)


def test_only_a_game_that_the_test_opponent_gave_up_was_ended_early() -> None:
    given_up = make_record(result=lost_by(Reason.PROTOCOL, 1, "two lost: it gave up", "unknown-message"))
    given_up.wire.append(WireLine(1, "from", FORFEIT_LINE, 2000))
    late = make_record(result=lost_by(Reason.TIMEOUT, 1, "two lost: it was late", "late"))
    for record, was_ended_early in ((given_up, True), (late, False)):
        played = PlayedScenario(TALK, record, Observations())
        assert (played.was_ended_early, played.opponent_failed) == (was_ended_early, not was_ended_early)
    leaves = replace(TALK, test_opponent=TestOpponent(varied, leaves_in=1))
    left = make_record(result=lost_by(Reason.EXIT, 1, "two lost: its process ended", "exited"))
    assert not PlayedScenario(leaves, left, Observations()).opponent_failed


def test_a_check_needs_a_game() -> None:
    with pytest.raises(ValueError, match="a check needs a game"):
        Settings(games=())


def test_processes_that_live_on_fail() -> None:
    verdict = output_rules.processes(
        evidence(PlayedScenario(TALK, make_record(), Observations(left_behind=["sleep"])))
    )
    assert verdict.status is Status.FAILED
    assert "left processes behind: sleep" in verdict.sentence


def test_a_file_that_may_not_be_written_is_a_warning() -> None:
    words = "OSError: [Errno 30] Read-only file system: 'log.txt'\n"
    talk = PlayedScenario(TALK, make_record(stderr=(words, "")), Observations(stderr_bytes=len(words)))
    verdict = output_rules.stderr(evidence(talk))
    assert verdict.status is Status.WARNING
    assert "TMPDIR" in verdict.advice


def ending_fault(**observed: object) -> Verdict | None:
    observations = Observations(**observed)  # type: ignore[arg-type]
    return output_rules.ending_fault(PlayedScenario(TALK, make_record(), observations), 0.5)


def test_a_reply_that_was_sent_with_end_is_no_output_after_end() -> None:
    output = {"after_end": "MOVE;1\n", "after_end_bytes": 7, "after_end_lines": 1, "ended_us": 1000}
    assert ending_fault(**output) is not None
    assert ending_fault(**output, was_on_turn=True) is None


def test_a_bot_may_take_the_grace_to_end_and_no_more() -> None:
    assert ending_fault(ended_us=500_000) is None
    verdict = ending_fault(ended_us=812_345)
    assert verdict is not None
    assert "it took 0.812 s to end after END; 0.5 s are allowed" in verdict.sentence


@pytest.mark.parametrize(
    ("spec", "swap", "extra"),
    [
        ("manchester", True, True),
        ("bga", False, True),
        ("bga+pie", True, True),
        ("kalah(6,4)", False, True),
        ("kalamala", False, False),
        ("kalah(1,1)", False, False),
    ],
)
def test_swap_and_extra_turns_are_detected_from_the_rules(spec: str, swap: bool, extra: bool) -> None:
    rules = parse_game(spec)
    assert (has_swap(rules), has_extra_turns(rules)) == (swap, extra)


def test_test_opponents_play_legal_moves() -> None:
    rules = parse_game("manchester")
    for choose in (varied, swapping, chaining, opening_with(2)):
        state, number, chains = rules.initial_state(), 0, 0
        while rules.outcome(state) is None:
            move = choose(rules, state)
            assert move in rules.legal_moves(state)
            if choose is chaining:
                chains += move != rules.swap and gives_extra_turn(rules, state, move)
            state, number = rules.apply(state, move), number + 1
        assert number > 10
        assert chains > 5 or choose is not chaining
    assert opening_with(2)(rules, rules.initial_state()) == 3

"""Tournament files: the meaning of each key, and a clear message for each mistake."""

from pathlib import Path

import pytest

import tournaments
from referee.judge.clock import TimeControl
from referee.judge.limits import LEAST, Limits
from referee.sandbox.host_resources import default_memory_here
from tests.support.builders import write_tournament
from tournaments.config.load import ConfigError, load_tournament
from tournaments.config.tournament import Tournament
from tournaments.config.tournament_file import MAX_BOTS

EXAMPLES = [
    path
    for path in sorted((Path(tournaments.__file__).parent / "examples").glob("*.toml"))
    if path.name != "marks.toml"  # the only example that is no tournament
]
TWO_BOTS = 'bots = ["first_legal", "greedy"]\n'
OR_A_COMMAND = ', or write the command that runs it, such as "node bot.js" or "java -cp . Bot"'
KEYS = (
    "name, game, rounds, openings, format, seed, ranking, rating, concurrency, own_core, untrusted, "
    "keep_files, game_files, clock, ponder, time, sandbox, limits, cluster, bots"
)


def load(folder: Path, text: str) -> Tournament:
    return load_tournament(write_tournament(folder, text))


def problems(folder: Path, text: str) -> list[str]:
    """Return the lines of the error, without the path at the beginning of each."""
    path = write_tournament(folder, text)
    with pytest.raises(ConfigError) as raised:
        load_tournament(path)
    lines = str(raised.value).split("\n")
    assert all(line.startswith(f"{path}: ") for line in lines), lines
    return [line.removeprefix(f"{path}: ") for line in lines]


def problem(folder: Path, text: str) -> str:
    (line,) = problems(folder, text)
    return line


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_load(path: Path) -> None:
    tournament = load_tournament(path)
    assert len(tournament.bots) >= (4 if path.name == "demo.toml" else 2)
    assert tournament.game == "manchester" or path.name != "demo.toml"


def test_defaults(tmp_path: Path) -> None:
    tournament = load(tmp_path, TWO_BOTS)
    assert (tournament.name, tournament.game, tournament.rounds) == ("cup", "manchester", 1)
    assert (tournament.ranking, tournament.concurrency) == ("points", None)
    assert tournament.names == ["first_legal", "greedy"]
    assert tournament.control == TimeControl(move_s=10.0, clock="fair", ponder="measure")
    assert (tournament.untrusted, tournament.sandbox_mode) == (False, "auto")
    assert tournament.limits == Limits(memory_mb=default_memory_here())
    assert tournament.has_default_memory


def test_every_key(tmp_path: Path) -> None:
    tournament = load(
        tmp_path,
        """
        name = "Grand Prix"
        game = " bga(6,6) +pie"
        rounds = 3
        ranking = "wins-then-speed"
        concurrency = 2
        bots = ["greedy", { bot = "random:1", name = "R2-D2 (old)" }, { bot = "random:2" }]
        [time]
        move_s = 1
        game_s = 60
        increment_s = 0.5
        margin_s = 0.1
        start_s = 5
        clock = "wall"
        ponder = "suspend"
        [sandbox]
        mode = "required"
        [limits]
        memory_mb = 16
        processes = 1
        file_mb = 1
        scratch_mb = 1
        stderr_bytes = 1024
        line_bytes = 16
        wire_bytes = 4096
        end_grace_s = 0
        """,
    )
    assert (tournament.name, tournament.game, tournament.rounds) == ("Grand Prix", "bga(6,6)+pie", 3)
    assert (tournament.ranking, tournament.concurrency) == ("wins-then-speed", 2)
    assert tournament.names == ["greedy", "R2-D2 (old)", "random:2"]
    assert tournament.control == TimeControl(1, 60, 0.5, 0.1, 5, clock="wall", ponder="suspend")
    assert (tournament.sandbox_mode, tournament.untrusted) == ("required", False)
    assert tournament.limits == Limits(16, 1, 1, 1, 1024, 16, 4096, 0.0)


def test_a_limit_per_game_alone_sets_none_per_move(tmp_path: Path) -> None:
    assert load(tmp_path, TWO_BOTS + "[time]\ngame_s = 60").control == TimeControl(None, 60)


def test_paths_are_relative_to_the_files_folder(tmp_path: Path) -> None:
    """A byte order mark, as editors on Windows write it, is no error."""
    script = tmp_path / "cup" / "mine" / "bot.py"
    script.parent.mkdir(parents=True)
    script.write_text("input()")
    tournament = load(tmp_path / "cup", '\ufeffbots = ["mine", "greedy"]')
    assert tournament.bots[0].command[-1] == str(script)


GRACES = ("-0.1", "60.1", "nan", "inf")
NOT_REQUIRED = ("off", "auto")
UNTRUSTED = "untrusted = true needs a sandbox that holds, and [sandbox] says mode = '%s': leave that out"
BAD_BOTS = ("a\\u0000b", "~nosuchuser-here/bot", "y" * 300, "no-program -c '" + "z" * 5000 + "'")
"""Texts that the system refuses: a file name may hold no NUL and at most 255 bytes."""
BAD_NAME = "bots[2].name: a name is 1 to 60 letters"
BAD_NAMES = (
    *("", " ", "-a", "a/b", "../x", "a\\\\b", "<script>", "=1+1", "x" * 61),
    *("a\\nb", "a\\u0000", "a\\u001bb", "a\\u202eb"),
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # unknown keys, at each level
        (TWO_BOTS + "round = 2", "round: unknown key; did you mean 'rounds'?"),
        (TWO_BOTS + "zzz = 2", f"zzz: unknown key; there are {KEYS}"),
        (TWO_BOTS + "[time]\nmoves_s = 2", "time.moves_s: unknown key; did you mean 'move_s'?"),
        ('bots = ["greedy", {bot = "greedy", nmae = "g"}]', "bots[2].nmae: unknown key; did you mean 'name'"),
        (TWO_BOTS + '[sandbox]\nmodus = "off"', "sandbox.modus: unknown key; did you mean 'mode'?"),
        (TWO_BOTS + "[limits]\nmemory = 1", "limits.memory: unknown key; did you mean 'memory_mb'?"),
        # missing
        ("", "bots: is missing"),
        ('bots = ["greedy", {name = "g"}]', "bots[2].bot: is missing"),
        ("bots = []", "bots: needs at least 2 bots"),
        ('bots = ["greedy"]', "bots: needs at least 2 bots"),
        # out of range
        ("bots = [" + '"x",' * (MAX_BOTS + 1) + "]", f"bots: at most {MAX_BOTS} bots, not {MAX_BOTS + 1}"),
        (TWO_BOTS + "rounds = 0", "rounds: must be greater than or equal to 1, not 0"),
        (TWO_BOTS + "rounds = 10001", "rounds: must be less than or equal to 10000, not 10001"),
        (TWO_BOTS + "concurrency = 0", "concurrency: must be greater than or equal to 1, not 0"),
        (TWO_BOTS + "concurrency = 257", "concurrency: must be less than or equal to 256, not 257"),
        (TWO_BOTS + "[time]\nmove_s = 0", "time.move_s: must be greater than 0, not 0"),
        (TWO_BOTS + "[time]\nmargin_s = -1", "time.margin_s: must be greater than or equal to 0, not -1"),
        (TWO_BOTS + "[time]\nmove_s = nan", "time.move_s: must be a finite number, not nan"),
        # values that there are not, or that do not fit together
        (TWO_BOTS + "[time]\nincrement_s = 1", "time: an increment needs a limit per game to be added to"),
        (TWO_BOTS + 'game = "kalha"', "game: no game 'kalha'; did you mean 'kalah'?; there are manchester, "),
        (TWO_BOTS + '[sandbox]\nmode = "of"', "sandbox.mode: must be one of required, auto, off, not 'of'"),
        (
            f'clock = "wall"\n{TWO_BOTS}[time]\nclock = "fair"',
            "clock is given twice, here and in [time], and ",
        ),
        (f'clock = "sand"\n{TWO_BOTS}', ""),
        (f'{TWO_BOTS}[time]\nclock = "sand"', "time: "),
        (f'ponder = "sand"\n{TWO_BOTS}', ""),
        (f'{TWO_BOTS}[time]\nponder = "sand"', "time: "),
        # bots
        ('bots = ["greedy", "greedy"]', "bots[2]: the name 'greedy' is taken already"),
        (
            'bots = ["greedy", {bot = "random", name = "greedy"}]',
            "bots[2]: the name 'greedy' is taken already",
        ),
        # their files would have the same names
        (
            'bots = ["minimax:2", {bot = "greedy", name = "minimax_2"}]',
            "bots[2]: the name 'minimax_2' is too",
        ),
        # the file
        ("bots: [greedy]\n", "this is not TOML: Expected '=' after a key in a key/value pair (at line 1"),
        *((f"{TWO_BOTS}[limits]\nend_grace_s = {value}", "limits.end_grace_s: must be ") for value in GRACES),
        *(
            (f"{TWO_BOTS}[limits]\n{key} = {least - 1}", f"limits.{key}: must be ")
            for key, least in LEAST.items()
        ),
        *(
            (f'untrusted = true\n{TWO_BOTS}[sandbox]\nmode = "{mode}"', UNTRUSTED % mode)
            for mode in NOT_REQUIRED
        ),
        *((f'bots = ["greedy", {entry}]', "bots[2]: must be ") for entry in ("5", "true", "[]", "2.5")),
        *((f'bots = ["greedy", "{bot}"]', "bots[2]: ") for bot in BAD_BOTS),
        *((f'bots = ["greedy", {{bot = "greedy", name = "{name}"}}]', BAD_NAME) for name in BAD_NAMES),
    ],
)
def test_one_mistake(tmp_path: Path, text: str, message: str) -> None:
    found = problem(tmp_path, text)
    assert found.startswith(message)
    assert len(found) < 400  # not a whole list


WRONG = {"text": '"x"', "number": "5", "fraction": "2.5", "truth": "true", "list": "[1]", "table": "{a = 1}"}
NUMBERS = {"number", "fraction"}
TAKES = {
    "name": {"text"},
    "game": {"text"},
    "rounds": {"number"},
    "concurrency": {"number"},
    "ranking": set(),
    "bots": set(),
    "time": set(),
    "bot": {"text"},
    "bot.name": {"text"},
    **{f"time.{key}_s": NUMBERS for key in ("move", "game", "increment", "margin", "start")},
}


@pytest.mark.parametrize("key", TAKES)
def test_values_of_a_wrong_type(tmp_path: Path, key: str) -> None:
    for value in (value for kind, value in WRONG.items() if kind not in TAKES[key]):
        bots = {"bot": f"{{bot = {value}}}", "bot.name": f'{{bot = "greedy", name = {value}}}'}
        second = bots.get(key, '"first_legal"')
        text = f'bots = ["greedy", {second}]\n' if key != "bots" else f"bots = {value}"
        if not key.startswith("bot"):
            text += f"{key} = {value}"
        where = {"bot": "bots[2].bot", "bot.name": "bots[2].name"}.get(key, key)
        found = problems(tmp_path, text)
        places = (f"{where}: ", f"{where}.a: ", f"{where}[1]: ")
        assert all(line.startswith(places) or key == "bots" for line in found), found
        assert all("must be " in line or "unknown key" in line or "at least" in line for line in found), found
        assert not any("Input should" in line or "pydantic" in line for line in found), found


@pytest.mark.parametrize("name", ["a", "x" * 60, "Größe 2.0 (neu)", "minimax:5", "O'Neill, Jr.", "7", "黒石"])
def test_valid_names(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, f'bots = ["greedy", {{bot = "greedy", name = "{name}"}}]').names[1] == name


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    program = tmp_path / "bot.sh"
    program.write_text("#!/bin/sh\n")
    found = problems(tmp_path, 'bots = ["gredy", "nowhere/bot.py", "minimax:99", "bot.sh"]')
    assert [line.partition(":")[0] for line in found] == [f"bots[{number}]" for number in (1, 2, 3, 4)]
    assert "did you mean 'greedy'?" in found[0]
    assert "no such bot: 'nowhere/bot.py' (looked for a sample bot" in found[1]
    assert str(tmp_path) in found[1]
    assert "minimax takes a depth" in found[2]
    assert found[3] == f"bots[4]: {program} is not executable: chmod +x {program}{OR_A_COMMAND}"
    text = (
        'rounds = "2"\ncolour = "red"\ngame = "chess"\nbots = ["a", {bto = "b"}]\ntime = {move_s = -1, x = 2}'
    )
    keys = ["bots[1]", "bots[2].bot", "bots[2].bto", "colour", "game", "rounds", "time.move_s", "time.x"]
    assert sorted(line.partition(":")[0] for line in problems(tmp_path, text)) == keys


@pytest.mark.parametrize("name", ["nothing.toml", ".", "latin.toml"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "latin.toml").write_bytes('name = "Größe"'.encode("latin-1"))
    reason = {"nothing.toml": "No such file or directory", ".": "Is a directory"}.get(
        name, "it is not UTF-8 text"
    )
    with pytest.raises(ConfigError) as raised:
        load_tournament(tmp_path / name)
    assert str(raised.value) == f"{tmp_path / name}: cannot be read: {reason}"


def test_the_identity_depends_on_everything_that_changes_results(tmp_path: Path) -> None:
    one = load(tmp_path, TWO_BOTS + "[limits]\nmemory_mb = 512").identity()
    for harmless in ("rounds = 7", "concurrency = 3", 'ranking = "wins-then-speed"', 'name = "other"'):
        assert load(tmp_path, harmless + "\n" + TWO_BOTS).with_memory_of(one).identity() == one, harmless
    for other in (
        TWO_BOTS + 'game = "bga"',
        TWO_BOTS + "[time]\nmove_s = 3",
        TWO_BOTS + "[time]\nmargin_s = 0.06",
        'bots = ["first_legal", "minimax"]',
        'bots = ["first_legal", "greedy", "random"]',
    ):
        assert load(tmp_path, other).with_memory_of(one).identity() != one, other


def test_only_a_default_memory_limit_becomes_that_of_earlier_results(tmp_path: Path) -> None:
    named = load(tmp_path, TWO_BOTS + "[limits]\nmemory_mb = 700")
    assert not named.has_default_memory
    assert named.with_memory_of({"limits": {"memory_mb": 512}}).limits.memory_mb == 700
    default = load(tmp_path, TWO_BOTS)
    assert default.with_memory_of(None) == default.with_memory_of({}) == default
    assert default.with_memory_of({"limits": {"memory_mb": 96}}).limits == Limits(memory_mb=96)


def test_untrusted_bots_require_the_sandbox(tmp_path: Path) -> None:
    tournament = load(tmp_path, f"untrusted = true\n{TWO_BOTS}")
    assert (tournament.untrusted, tournament.sandbox_mode) == (True, "required")


def test_clock_and_ponder_may_be_at_the_top(tmp_path: Path) -> None:
    control = load(tmp_path, f'clock = "wall"\nponder = "suspend"\n{TWO_BOTS}').control
    assert (control.clock, control.ponder) == ("wall", "suspend")
    assert load(tmp_path, f'clock = "wall"\n{TWO_BOTS}[time]\nclock = "wall"').control.clock == "wall"


def test_an_untrusted_bot_that_could_read_other_files_is_refused(tmp_path: Path) -> None:
    for folder in ("all", "all/mine", "mine"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "bot.py").write_text("input()")
    text = 'bots = ["../all", "../all/mine"]'
    assert problem(tmp_path / "cup", "untrusted = true\n" + text) == (
        f"bots[1]: all could read all of {tmp_path / 'all'}, and with it mine: put its files into a "
        "directory of their own, with a bot.toml that says how to start it"
    )
    assert problem(tmp_path / "cup", text + '\n[sandbox]\nmode = "required"').startswith("bots[1]: all could")
    path = write_tournament(tmp_path / "cup", text)
    with pytest.raises(ConfigError, match="all could read all of"):
        load_tournament(path, "required")
    load_tournament(path)
    (tmp_path / "bot.py").write_text("input()")
    found = problem(tmp_path / "cup", 'untrusted = true\nbots = ["greedy", ".."]')
    assert found.startswith(f"bots[2]: {tmp_path.name} could read all of {tmp_path}: put its files")
    mode = '\n[sandbox]\nmode = "required"'
    assert load_tournament(write_tournament(tmp_path / "cup", f'bots = ["..", "greedy"]{mode}'), "off").bots
    # Files and directories beside the tournament's file are allowed.
    load(tmp_path, 'untrusted = true\nbots = ["bot.py", "mine", "greedy", {bot = "greedy", name = "too"}]')

"""Tournament files: what they mean, and every way to get them wrong."""

from pathlib import Path

import pytest

import tournaments
from referee.judge.clock import TimeControl
from referee.judge.limits import LEAST, Limits
from referee.sandbox.host_resources import default_memory_here
from tests.builders import write_tournament
from tournaments.config.load import ConfigError, load_tournament
from tournaments.config.tournament import Tournament
from tournaments.config.tournament_file import MAX_BOTS

MARKS = "marks.toml"
"""Of the examples, the one that is no tournament."""
EXAMPLES = [
    path
    for path in sorted((Path(tournaments.__file__).parent / "examples").glob("*.toml"))
    if path.name != MARKS
]
TWO_BOTS = 'bots = ["first_legal", "greedy"]\n'

OR_A_COMMAND = ', or write the command that runs it, such as "node bot.js" or "java -cp . Bot"'


def load(folder: Path, text: str) -> Tournament:
    return load_tournament(write_tournament(folder, text))


def complaints(folder: Path, text: str) -> list[str]:
    """The lines of the error, without the path that each begins with."""
    path = write_tournament(folder, text)
    with pytest.raises(ConfigError) as raised:
        load_tournament(path)
    lines = str(raised.value).split("\n")
    assert all(line.startswith(f"{path}: ") for line in lines), lines
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_there_is_an_example() -> None:
    assert "demo.toml" in [path.name for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_load(path: Path) -> None:
    tournament = load_tournament(path)
    assert len(tournament.bots) >= 2
    assert len(set(tournament.names)) == len(tournament.names)


def test_demo_is_what_the_issue_asks_for() -> None:
    demo = load_tournament(EXAMPLES[[path.name for path in EXAMPLES].index("demo.toml")])
    assert len(demo.bots) >= 4
    assert demo.game == "manchester"


def test_defaults(tmp_path: Path) -> None:
    tournament = load(tmp_path, TWO_BOTS)
    assert tournament.name == "cup"
    assert tournament.game == "manchester"
    assert tournament.rounds == 1
    assert tournament.ranking == "points"
    assert tournament.concurrency is None
    assert tournament.control == TimeControl(move_s=10.0)
    assert tournament.names == ["first_legal", "greedy"]
    assert (tournament.control.clock, tournament.control.ponder) == ("fair", "measure")
    assert (tournament.untrusted, tournament.sandbox_mode) == (False, "auto")
    assert tournament.limits == Limits(memory_mb=default_memory_here())
    assert tournament.has_default_memory


def test_every_key(tmp_path: Path) -> None:
    tournament = load(
        tmp_path,
        """
        name = "Grand Prix"
        game = "bga(6,6)+pie"
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
    assert tournament.name == "Grand Prix"
    assert tournament.game == "bga(6,6)+pie"
    assert tournament.rounds == 3
    assert tournament.ranking == "wins-then-speed"
    assert tournament.concurrency == 2
    assert tournament.names == ["greedy", "R2-D2 (old)", "random:2"]
    assert tournament.control == TimeControl(1, 60, 0.5, 0.1, 5, clock="wall", ponder="suspend")
    assert tournament.sandbox_mode == "required"
    assert tournament.limits == Limits(16, 1, 1, 1, 1024, 16, 4096, 0.0)
    assert not tournament.untrusted


def test_a_limit_per_game_alone_sets_none_per_move(tmp_path: Path) -> None:
    tournament = load(tmp_path, TWO_BOTS + "[time]\ngame_s = 60")
    assert tournament.control == TimeControl(None, 60)


def test_the_game_is_kept_in_its_canonical_form(tmp_path: Path) -> None:
    assert load(tmp_path, TWO_BOTS + 'game = " manchester(7,7) +pie"').game == "manchester"


def test_paths_are_taken_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "cup" / "mine").mkdir(parents=True)
    script = tmp_path / "cup" / "mine" / "bot.py"
    script.write_text("input()")
    tournament = load(tmp_path / "cup", 'bots = ["mine", "greedy"]')
    assert tournament.bots[0].command[-1] == str(script)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        # unknown keys, at each level
        (TWO_BOTS + "round = 2", "round: unknown key; did you mean 'rounds'?"),
        (TWO_BOTS + "[time]\nmoves_s = 2", "time.moves_s: unknown key; did you mean 'move_s'?"),
        (
            'bots = ["greedy", {bot = "greedy", nmae = "g"}]',
            "bots[2].nmae: unknown key; did you mean 'name'?",
        ),
        (
            TWO_BOTS + "zzz = 2",
            "zzz: unknown key; there are name, game, rounds, openings, format, seed, ranking, rating, "
            "concurrency, own_core, untrusted, keep_files, clock, ponder, time, sandbox, limits, "
            "cluster, bots",
        ),
        (TWO_BOTS + '[sandbox]\nmodus = "off"', "sandbox.modus: unknown key; did you mean 'mode'?"),
        (TWO_BOTS + "[limits]\nmemory = 1", "limits.memory: unknown key; did you mean 'memory_mb'?"),
        (TWO_BOTS + "[time]\npondering = 1", "time.pondering: unknown key; did you mean 'ponder'?"),
        (TWO_BOTS + "untrust = true", "untrust: unknown key; did you mean 'untrusted'?"),
        # missing
        ("", "bots: is missing"),
        ('bots = ["greedy", {name = "g"}]', "bots[2].bot: is missing"),
        ("bots = []", "bots: needs at least 2 bots"),
        ('bots = ["greedy"]', "bots: needs at least 2 bots"),
        # out of range
        (TWO_BOTS + "rounds = 0", "rounds: must be greater than or equal to 1, not 0"),
        (TWO_BOTS + "rounds = 10001", "rounds: must be less than or equal to 10000, not 10001"),
        (TWO_BOTS + "concurrency = 0", "concurrency: must be greater than or equal to 1, not 0"),
        (TWO_BOTS + "concurrency = 257", "concurrency: must be less than or equal to 256, not 257"),
        (
            TWO_BOTS + 'ranking = "elo"',
            "ranking: must be one of points, wins-then-speed, swiss, rating, score, swiss-match, or a list "
            "of criteria, not 'elo'",
        ),
        # time controls that make no sense
        (TWO_BOTS + "[time]\nmove_s = 0", "time.move_s: must be greater than 0, not 0"),
        (TWO_BOTS + "[time]\nmargin_s = -1", "time.margin_s: must be greater than or equal to 0, not -1"),
        (TWO_BOTS + "[time]\nincrement_s = 1", "time: an increment needs a limit per game to be added to"),
        (TWO_BOTS + "[time]\nmove_s = nan", "time.move_s: must be a finite number, not nan"),
        # games
        (
            TWO_BOTS + 'game = "kalha"',
            "game: no game 'kalha'; did you mean 'kalah'?; there are manchester, bga, kalah, kalamala "
            "(`kalarena games` lists their options)",
        ),
    ],
)
def test_one_thing_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaints(tmp_path, text) == [complaint]


WRONG = {"text": '"x"', "number": "5", "fraction": "2.5", "truth": "true", "list": "[1]", "table": "{a = 1}"}
TAKES = {
    "name": {"text"},
    "game": {"text"},
    "rounds": {"number"},
    "ranking": set(),
    "concurrency": {"number"},
    "bots": set(),
    "time": set(),
    "time.move_s": {"number", "fraction"},
    "time.game_s": {"number", "fraction"},
    "time.increment_s": {"number", "fraction"},
    "time.margin_s": {"number", "fraction"},
    "time.start_s": {"number", "fraction"},
    "bot": {"text"},
    "bot.name": {"text"},
}


@pytest.mark.parametrize(
    ("key", "kind"), [(key, kind) for key, good in TAKES.items() for kind in WRONG if kind not in good]
)
def test_a_value_of_the_wrong_type(tmp_path: Path, key: str, kind: str) -> None:
    value = WRONG[kind]
    bots = '"greedy", "first_legal"'
    if key == "bot":
        bots = f'"greedy", {{bot = {value}}}'
    elif key == "bot.name":
        bots = f'"greedy", {{bot = "greedy", name = {value}}}'
    text = f"bots = [{bots}]\n"
    if key == "bots":
        text = f"bots = {value}"
    elif not key.startswith("bot"):
        text += f"{key} = {value}"
    where = {"bot": "bots[2].bot", "bot.name": "bots[2].name"}.get(key, key)
    found = complaints(tmp_path, text)
    assert all(
        line.startswith((f"{where}: ", f"{where}.a: ", f"{where}[1]: ")) or key == "bots" for line in found
    )
    assert all("must be " in line or "unknown key" in line or "at least" in line for line in found), found
    assert not any("Input should" in line or "pydantic" in line for line in found), found


@pytest.mark.parametrize("entry", ["5", "true", "[]", "2.5"])
def test_a_bot_of_the_wrong_type(tmp_path: Path, entry: str) -> None:
    (found,) = complaints(tmp_path, f'bots = ["greedy", {entry}]')
    assert found.startswith("bots[2]: must be ")


def test_more_bots_than_there_may_be(tmp_path: Path) -> None:
    (found,) = complaints(tmp_path, "bots = [" + '"x",' * (MAX_BOTS + 1) + "]")
    assert found.startswith("bots: ")
    assert str(MAX_BOTS) in found
    assert len(found) < 200  # not the whole list


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            "-a",
            "a/b",
            "../x",
            "a\\\\b",
            "<script>",
            "=1+1",
            "a\\nb",
            "a\\u0000",
            "a\\u001bb",
            "a\\u202eb",
        ),
        "x" * 61,
    ],
)
def test_names_that_are_refused(tmp_path: Path, name: str) -> None:
    (found,) = complaints(tmp_path, f'bots = ["greedy", {{bot = "greedy", name = "{name}"}}]')
    assert found.startswith("bots[2].name: a name is 1 to 60 letters")


@pytest.mark.parametrize("name", ["a", "x" * 60, "Größe 2.0 (neu)", "minimax:5", "O'Neill, Jr.", "7", "黒石"])
def test_names_that_are_taken(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, f'bots = ["greedy", {{bot = "greedy", name = "{name}"}}]').names[1] == name


@pytest.mark.parametrize(
    "bots",
    [
        '"greedy", "greedy"',
        '{bot = "greedy", name = "one"}, {bot = "first_legal", name = "one"}',
        '{bot = "greedy", name = "a b"}, {bot = "first_legal", name = "a_b"}',  # the same files
    ],
)
def test_names_that_are_too_like_each_other(tmp_path: Path, bots: str) -> None:
    (found,) = complaints(tmp_path, f"bots = [{bots}]")
    assert found.startswith("bots[2]: the name ")
    assert "too like" in found or "taken already" in found


def test_bots_that_are_not_there(tmp_path: Path) -> None:
    found = complaints(tmp_path, 'bots = ["gredy", "nowhere/bot.py", "minimax:99"]')
    assert [line.partition(":")[0] for line in found] == ["bots[1]", "bots[2]", "bots[3]"]
    assert "did you mean 'greedy'?" in found[0]
    assert "nowhere/bot.py" in found[1]
    assert str(tmp_path) in found[1]
    assert "minimax takes a depth" in found[2]


def test_a_bot_that_is_not_executable(tmp_path: Path) -> None:
    program = tmp_path / "bot.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)
    (found,) = complaints(tmp_path, 'bots = ["greedy", "bot.sh"]')
    assert found == f"bots[2]: {program} is not executable: chmod +x {program}{OR_A_COMMAND}"


@pytest.mark.parametrize(
    "bot", ["a\\u0000b", "~nosuchuser-here/bot", "y" * 300, "no-program -c '" + "z" * 5000 + "'"]
)
def test_texts_that_the_system_does_not_like(tmp_path: Path, bot: str) -> None:
    """A file name may hold no NUL and at most 255 bytes; a missing program is an error like any other."""
    (found,) = complaints(tmp_path, f'bots = ["greedy", "{bot}"]')
    assert found.startswith("bots[2]: ")


def test_all_errors_at_once(tmp_path: Path) -> None:
    found = complaints(
        tmp_path,
        """
        rounds = "many"
        colour = "red"
        game = "chess"
        bots = ["greedy", "nobody-has-this-bot"]
        [time]
        move_s = -1
        mvoe_s = 2
        """,
    )
    keys = sorted(line.partition(":")[0] for line in found)
    assert keys == ["bots[2]", "colour", "game", "rounds", "time.move_s", "time.mvoe_s"]


def test_all_errors_of_one_kind_at_once(tmp_path: Path) -> None:
    found = complaints(tmp_path, 'rounds = 0\nrnds = 1\nbots = ["a", {bto = "b"}]\n[time]\nmoves = 1')
    assert sorted(line.partition(":")[0] for line in found) == [
        *("bots[1]", "bots[2].bot", "bots[2].bto", "rnds", "rounds", "time.moves")
    ]
    found = complaints(tmp_path, 'game = "x"\nbots = ["no-1", "no-2"]\n[time]\nmove_s = 0')
    assert [line.partition(":")[0] for line in found] == ["game", "time.move_s", "bots[1]", "bots[2]"]


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, why in [
        (tmp_path / "nothing.toml", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
    ]:
        with pytest.raises(ConfigError) as raised:
            load_tournament(path)
        assert str(raised.value) == f"{path}: {why}"


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes('name = "Größe"'.encode("latin-1"))
    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        load_tournament(path)


def test_not_toml(tmp_path: Path) -> None:
    (found,) = complaints(tmp_path, "bots: [greedy]\n")
    assert found.startswith("this is not TOML: ")
    assert "line 1" in found


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    """Some editors on Windows put one at the beginning."""
    assert load(tmp_path, "\ufeff" + TWO_BOTS).names == ["first_legal", "greedy"]


def test_identity_notices_what_changes_results_and_nothing_else(tmp_path: Path) -> None:
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


def test_a_memory_limit_that_is_named_is_not_that_of_earlier_results(tmp_path: Path) -> None:
    named = load(tmp_path, TWO_BOTS + "[limits]\nmemory_mb = 700")
    assert not named.has_default_memory
    assert named.with_memory_of({"limits": {"memory_mb": 512}}).limits.memory_mb == 700
    default = load(tmp_path, TWO_BOTS)
    assert default.with_memory_of(None) == default.with_memory_of({}) == default
    assert default.with_memory_of({"limits": {"memory_mb": 96}}).limits == Limits(memory_mb=96)


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_untrusted_bots_need_a_sandbox_that_holds(tmp_path: Path, mode: str) -> None:
    (complaint,) = complaints(tmp_path, f'untrusted = true\n{TWO_BOTS}[sandbox]\nmode = "{mode}"')
    assert complaint == (
        f"untrusted = true needs a sandbox that holds, and [sandbox] says mode = '{mode}': leave that out"
    )


def test_untrusted_alone_requires_the_sandbox(tmp_path: Path) -> None:
    tournament = load(tmp_path, f"untrusted = true\n{TWO_BOTS}")
    assert (tournament.untrusted, tournament.sandbox_mode) == (True, "required")


def test_a_sandbox_mode_that_there_is_not(tmp_path: Path) -> None:
    (complaint,) = complaints(tmp_path, TWO_BOTS + '[sandbox]\nmode = "of"')
    assert complaint.startswith("sandbox.mode: ")
    assert "must be one of required, auto, off, not 'of'" in complaint


@pytest.mark.parametrize("name", LEAST)
def test_a_limit_below_its_least(tmp_path: Path, name: str) -> None:
    (complaint,) = complaints(tmp_path, f"{TWO_BOTS}[limits]\n{name} = {LEAST[name] - 1}")
    assert complaint.startswith(f"limits.{name}: ")
    assert str(LEAST[name]) in complaint


@pytest.mark.parametrize("value", ["-0.1", "60.1", "nan", "inf"])
def test_a_grace_out_of_range(tmp_path: Path, value: str) -> None:
    (complaint,) = complaints(tmp_path, f"{TWO_BOTS}[limits]\nend_grace_s = {value}")
    assert complaint.startswith("limits.end_grace_s: ")


def test_clock_and_ponder_may_stand_at_the_top(tmp_path: Path) -> None:
    control = load(tmp_path, f'clock = "wall"\nponder = "suspend"\n{TWO_BOTS}').control
    assert (control.clock, control.ponder) == ("wall", "suspend")
    (complaint,) = complaints(tmp_path, f'clock = "wall"\n{TWO_BOTS}[time]\nclock = "fair"')
    assert "clock is given twice" in complaint
    load(tmp_path, f'clock = "wall"\n{TWO_BOTS}[time]\nclock = "wall"')


@pytest.mark.parametrize("key", ["clock", "ponder"])
def test_a_clock_that_there_is_not(tmp_path: Path, key: str) -> None:
    assert len(complaints(tmp_path, f'{key} = "sand"\n{TWO_BOTS}')) == 1
    assert len(complaints(tmp_path, f'{TWO_BOTS}[time]\n{key} = "sand"')) == 1


def test_an_untrusted_bot_that_could_read_another(tmp_path: Path) -> None:
    (tmp_path / "all" / "mine").mkdir(parents=True)
    (tmp_path / "all" / "bot.py").write_text("input()")
    (tmp_path / "all" / "mine" / "bot.py").write_text("input()")
    text = 'bots = ["../all", "../all/mine"]'
    (complaint,) = complaints(tmp_path / "cup", "untrusted = true\n" + text)
    assert complaint == (
        f"bots[1]: all could read all of {tmp_path / 'all'}, and with it mine: put its files into a "
        "directory of their own, with a bot.toml that says how to start it"
    )
    load(tmp_path / "cup", text)


def test_an_untrusted_bot_that_could_read_what_lies_beside_the_tournament(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("input()")
    (complaint,) = complaints(tmp_path / "cup", 'untrusted = true\nbots = ["greedy", ".."]')
    assert complaint.startswith(f"bots[2]: {tmp_path.name} could read all of {tmp_path}: put its files")
    # What lies beside it, each file and directory of its own, is as it should be.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bot.py").write_text("input()")
    load(tmp_path, 'untrusted = true\nbots = ["bot.py", "mine", "greedy", {bot = "greedy", name = "too"}]')

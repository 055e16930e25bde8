"""Kalah's spec texts: the presets, the options, and the canonical form.

The canonical form keeps the preset's name, gives the board unless it is the preset's own, and the
options that differ from the preset's, in the order of OPTIONS.
"""

from dataclasses import dataclass
from typing import Any

from referee.games.kalah import MAX_PITS, MAX_SEEDS, EndRule, Kalah
from referee.games.spec import Spec, SpecError, did_you_mean


@dataclass(frozen=True)
class Preset:
    """A named set of rules."""

    about: str
    """One line for ``kalarena games``."""
    board: tuple[int, int] | None
    """Default (pits, seeds); None if the spec text must give them."""
    rules: dict[str, Any]
    """Field of Kalah -> value."""


@dataclass(frozen=True)
class Option:
    """A rule that a spec text can change."""

    field: str
    """The field of Kalah."""
    values: dict[str, Any]
    """Text -> value; an option given without a value means ``yes``."""
    about: str
    """One line for ``kalarena games``."""


_YES_NO = {"yes": True, "no": False}

OPTIONS = {
    "pie": Option("pie", _YES_NO, "K8: the second player's first reply may be SWAP"),
    "first-move-repeats": Option(
        "first_move_repeats", _YES_NO, "K9: a first sowing that ends in the store gives another turn"
    ),
    "end": Option(
        "end",
        {rule.value: rule for rule in EndRule},
        "K5: the game ends when either side is empty after a sowing, or when the player on turn has no seeds",
    ),
    "majority-end": Option(
        "majority_end", _YES_NO, "K6: more than half of all seeds in a store ends the game"
    ),
    "empty-capture": Option(
        "empty_capture", _YES_NO, "K4: the last seed alone is captured when the opposite pit is empty"
    ),
}

_PLAIN = {
    "pie": False,
    "first_move_repeats": True,
    "end": EndRule.EITHER,
    "majority_end": False,
    "empty_capture": False,
}

PRESETS = {
    "manchester": Preset(
        "the Manchester course: pie rule, one first move, the end as its engine decides it",
        (7, 7),
        {**_PLAIN, "pie": True, "first_move_repeats": False},
    ),
    "bga": Preset(
        "Board Game Arena: +pie and +empty-capture are its options",
        (6, 4),
        {**_PLAIN, "end": EndRule.ON_TURN, "majority_end": True},
    ),
    "kalah": Preset("plain Kalah on a board that you give", None, _PLAIN),
}


def build(spec: Spec) -> Kalah:
    """Return the rule book of a spec whose name is one of PRESETS.  Raises SpecError."""
    preset = PRESETS[spec.name]
    board = spec.board or preset.board
    if board is None:
        raise SpecError(f"{spec.text!r}: {spec.name} needs a board, for example {spec.name}(6,4)")
    if len(board) != 2:
        raise SpecError(f"{spec.text!r}: a board is (PITS,SEEDS), for example {spec.name}(6,4)")
    pits, seeds = board
    if not (1 <= pits <= MAX_PITS and 1 <= seeds <= MAX_SEEDS):
        raise SpecError(
            f"{spec.text!r}: no such board: pits a side are 1 to {MAX_PITS}, seeds a pit 1 to {MAX_SEEDS}"
        )
    rules = dict(preset.rules)
    for key, text in spec.options.items():
        option = OPTIONS.get(key)
        if option is None:
            raise SpecError(
                f"{spec.text!r}: no option {key!r} for {spec.name}{did_you_mean(key, OPTIONS)}; "
                f"there are {', '.join(OPTIONS)}"
            )
        value = "yes" if text is None else text
        if value not in option.values:
            raise SpecError(
                f"{spec.text!r}: option {key} takes {' or '.join(option.values)}, "
                + (f"not {text!r}" if text is not None else f"for example +{key}={next(iter(option.values))}")
            )
        rules[option.field] = option.values[value]
    return Kalah(_canonical(spec.name, (pits, seeds), rules), pits, seeds, **rules)


def _canonical(name: str, board: tuple[int, int], rules: dict[str, Any]) -> str:
    preset = PRESETS[name]
    text = name if board == preset.board else f"{name}({board[0]},{board[1]})"
    for key, option in OPTIONS.items():
        value = rules[option.field]
        if value != preset.rules[option.field]:
            word = next(word for word, meaning in option.values.items() if meaning == value)
            text += f"+{key}" if word == "yes" else f"+{key}={word}"
    return text

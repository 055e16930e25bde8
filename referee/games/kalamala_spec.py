"""Kalamala's spec texts: ``kalamala[+ko=superko|basic|none][+cap=N]``."""

from referee.games.kalamala import DEFAULT_CAP, MAX_CAP, Kalamala, Ko
from referee.games.spec import Spec, SpecError, did_you_mean

NAME = "kalamala"
ABOUT = "Kalamala, by Daniel Sherlock and Salih Kadri: groups of stones push and pull each other on 8 x 8"
OPTIONS = (
    ("ko", f"{'|'.join(Ko)}, default {Ko.SUPERKO}", "rule 8: which positions may not come again"),
    ("cap", f"1 to {MAX_CAP}, default {DEFAULT_CAP}", "house rule: turns after which the stones left decide"),
)


def build(spec: Spec) -> Kalamala:
    """Return the rule book of a spec.  Raises SpecError."""
    if spec.board is not None:
        raise SpecError(f"{spec.text!r}: the board of {NAME} is always 8 x 8; leave {spec.board} out")
    ko, cap = Ko.SUPERKO, DEFAULT_CAP
    for key, value in spec.options.items():
        if key == "ko":
            if value not in list(Ko):
                raise SpecError(f"{spec.text!r}: option ko takes {', '.join(Ko)}, for example +ko={Ko.BASIC}")
            ko = Ko(value)
        elif key == "cap":
            if value is None or not (value.isascii() and value.isdigit() and len(value) <= len(str(MAX_CAP))):
                raise SpecError(f"{spec.text!r}: option cap takes a number, for example +cap={DEFAULT_CAP}")
            cap = int(value)
            if not 1 <= cap <= MAX_CAP:
                raise SpecError(f"{spec.text!r}: option cap takes a number from 1 to {MAX_CAP}")
        else:
            known = [name for name, _, _ in OPTIONS]
            hint = did_you_mean(key, known)
            raise SpecError(
                f"{spec.text!r}: no option {key!r} for {NAME}{hint}; there are {', '.join(known)}"
            )
    name = NAME
    if ko is not Ko.SUPERKO:
        name += f"+ko={ko}"
    if cap != DEFAULT_CAP:
        name += f"+cap={cap}"
    return Kalamala(name, ko, cap)

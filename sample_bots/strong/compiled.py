"""Kernels: the inner loops of the strong player, compiled by numba where that is installed.

Theory of operation.  A kernel is a function of numbers and flat arrays that both numba and plain Python can
run: no objects, no tuples of changing length, no numpy functions.  There is one text of each kernel and two
ways to run it. Compiled, arrays are numpy's; in plain Python, where indexing those is slow, they are lists.
Integers of plain Python have no width, so a kernel must not rely on overflow: hashes are combined with ``^``
and cut by ``&``.

Compiling takes seconds, so the machine code is kept in a directory (``NUMBA_CACHE_DIR``), which kernels.py
prepares before a game.  With KALARENA_PURE set to anything, plain Python is used although numba is there.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sample_bots.options import PURE_VARIABLE
from sample_bots.strong import kernels

F = TypeVar("F", bound=Callable[..., Any])

try:
    if os.environ.get(PURE_VARIABLE):
        raise ImportError(f"{PURE_VARIABLE} is set")
    # numba reads this when it is imported.  Who did not prepare kernels keeps them apart, by the same digest:
    # numba itself would not notice that a constant from another file, or a called kernel, has changed.
    if kernels.can_compile():
        os.environ.setdefault(kernels.CACHE_VARIABLE, str(kernels.own_directory()))
    import numba
    import numpy

    COMPILED = True
except ImportError:
    COMPILED = False
"""Whether kernels are compiled in this process."""

Array = Any
"""A flat array of integers: numpy's if COMPILED, else a list."""


_KERNELS: list[Any] = []
"""All compiled kernels of this process."""


def kernel(function: F) -> F:
    """Compile a function when it is first called; leave it as it is in plain Python.

    Compiled, it runs without the interpreter's lock: another thread can stop it by writing to an array that
    it reads.

    A kernel that calls itself must be given no literal argument, neither by itself nor by another kernel:
    numba would compile it for the literal's type apart, and that crashes when it is loaded from the cache
    (numba's issue 6713).
    """
    if not COMPILED:
        return function
    compiled: Any = numba.njit(cache=True, nogil=True)(function)
    _KERNELS.append(compiled)
    return cast("F", compiled)


def zeros(length: int, kind: str) -> Array:
    """An array of zeros; ``kind`` is a numpy type's name, int8 to int64 or uint64, without meaning in plain
    Python."""
    if COMPILED:
        return numpy.zeros(length, dtype=kind)
    return [0] * length


def array_of(numbers: list[int], kind: str) -> Array:
    """An array that holds these numbers."""
    if COMPILED:
        return numpy.array(numbers, dtype=kind)
    return list(numbers)


def compiled_now() -> int:
    """How many kernels this process had to compile, since no machine code of them was kept."""
    return sum(1 for each in _KERNELS if each.stats.cache_misses)


def how() -> str:
    """How kernels run in this process, for people."""
    if not COMPILED:
        asked = bool(os.environ.get(PURE_VARIABLE))
        why = (
            f"{PURE_VARIABLE} is set" if asked else "numba is not installed (pip install 'kalarena[strong]')"
        )
        return f"in plain Python, slowly: {why}"
    now = compiled_now()
    return f"compiled by numba {numba.__version__}" + (
        f"; {now} kernels had to be compiled now" if now else ""
    )

"""Kernels: the inner loops of the strong player, compiled by numba if it is installed.

Theory of operation.  A kernel is a function of numbers and flat arrays that both numba and plain Python can
run: without objects, tuples of changing length, or numpy functions.  Compiled kernels use numpy's arrays.  In
plain Python, where indexing these is slow, arrays are lists.  Integers of plain Python have no width, so a
kernel must not rely on overflow: hashes are combined with ``^`` and cut by ``&``.

Compiling takes seconds, so the machine code is kept in a directory (``NUMBA_CACHE_DIR``), which kernels.py
prepares before a game.  If KALARENA_PURE is set, plain Python is used although numba is installed.
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
    # numba reads this when it is imported.  The directory is named by a digest: numba itself does not detect
    # changes of a constant from another file, or of a called kernel.
    if kernels.can_compile():
        os.environ.setdefault(kernels.CACHE_VARIABLE, str(kernels.shared_directory()))
    import numba
    import numpy

    COMPILED = True
except ImportError:
    COMPILED = False
"""True if kernels are compiled in this process."""

Array = Any
"""Flat array of integers: numpy's if COMPILED, else a list."""

_KERNELS: list[Any] = []
"""All compiled kernels of this process."""


def kernel(function: F) -> F:
    """Compile a function at its first call; return it unchanged in plain Python.

    A compiled kernel runs without the interpreter's lock: another thread can stop it by writing to an array
    that the kernel reads.

    Never pass a literal to a kernel that calls itself: numba would compile another version for the literal's
    type, and crash when it loads this version from the cache (numba's issue 6713).
    """
    if not COMPILED:
        return function
    compiled: Any = numba.njit(cache=True, nogil=True)(function)
    _KERNELS.append(compiled)
    return cast("F", compiled)


def zeros(length: int, kind: str) -> Array:
    """Return an array of zeros.

    ``kind`` is the name of a numpy type, int8 to int64 or uint64; it is ignored in plain Python.
    """
    if COMPILED:
        return numpy.zeros(length, dtype=kind)
    return [0] * length


def array_of(numbers: list[int], kind: str) -> Array:
    """Return an array of these numbers."""
    if COMPILED:
        return numpy.array(numbers, dtype=kind)
    return list(numbers)


def compiled_now() -> int:
    """Return the number of kernels that this process had to compile, not finding their machine code."""
    return sum(1 for each in _KERNELS if each.stats.cache_misses)


def execution_mode() -> str:
    """Return a description for people how kernels run in this process."""
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

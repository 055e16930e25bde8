"""Chooses its move with a native library that is loaded by a relative path (ctypes)."""

import ctypes

import kalah

LIBRARY = ctypes.CDLL("./libkalah.so")


def choose(own, other):
    return LIBRARY.choose_hole((ctypes.c_int * len(own))(*own), len(own) - 1)


kalah.play(choose)

"""Searches in a multiprocessing pool with a process for each core."""

import multiprocessing
import os

import kalah


def value(job):
    seeds, distance = job
    work = sum(i * i for i in range(20_000))
    return -1 if seeds == 0 else 200 if seeds == distance else seeds + work % 2


def main():
    with multiprocessing.Pool(os.cpu_count()) as pool:

        def choose(own, other):
            pits = len(own) - 1
            values = pool.map(value, [(own[i], pits - i) for i in range(pits)])
            return values.index(max(values)) + 1

        kalah.play(choose)


if __name__ == "__main__":
    main()

"""Starts a helper process and asks it for each move through pipes."""

import subprocess
import sys

import kalah

helper = subprocess.Popen(
    [sys.executable, "helper.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
)


def choose(own, other):
    helper.stdin.write(" ".join(map(str, own)) + "\n")
    helper.stdin.flush()
    return int(helper.stdout.readline())


kalah.play(choose)
helper.stdin.close()
helper.wait()

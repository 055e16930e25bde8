"""A bot that plays its first legal move at once, beside a program that computes in all its other threads."""

import os
import subprocess

from first_legal import main  # type: ignore[import-not-found]

subprocess.Popen(["./spin"])
main()
os._exit(0)

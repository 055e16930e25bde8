"""Tests in a virtual machine with a real kernel: control groups, kernel settings, power cuts.

Start with ``machine.py``, which boots it.  The programs that run inside are in ``guest*.py``; each prints its
results as lines of JSON, which the tests of the host judge one by one.
"""

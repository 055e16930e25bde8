"""Reads an opening book of 3 MB, logs over a submitted log.txt, needs the user's locale and local time."""

import locale
import logging
import time

import kalah

locale.setlocale(locale.LC_ALL, "")
logging.basicConfig(filename="log.txt", filemode="w", level=logging.DEBUG, format="%(asctime)s %(message)s")
with open("book.txt") as book:
    lines = {line.rstrip(): number for number, line in enumerate(book)}
logging.info("%d lines, %s, %s", len(lines), time.strftime("%x %X", time.localtime()), time.tzname)


def choose(own, other):
    hole = kalah.best_hole(own, other)
    logging.debug("own %s, other %s: %d; %s", own, other, hole, locale.format_string("%.2f", 12.5))
    return hole


kalah.play(choose)

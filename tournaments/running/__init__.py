"""Running a tournament: ``runner`` plays the due games, ``result_writer`` stores each game as it ends.

Begin at ``runner.open_run`` and ``runner.play_all``.  May import the layers up to ``engines``.
"""

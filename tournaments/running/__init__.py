"""Running a tournament: ``runner`` plays what is due, ``result_writer`` stores each game as it ends."""

"""The judge of a game, without input, output or a clock: timed events in, effects and a verdict out.

Begin at ``match.Match``.  ``clock`` charges time, ``results`` has reasons and records, ``verdict_text`` the
sentences of verdicts, ``faults`` finds the causes of a bot's end, and ``replay_check`` judges a stored game
again.  May import ``referee.games`` and ``protocol``.
"""

"""The judge of a game, without input, output or a clock: timed events in, actions and a verdict out.

Begin at ``match.Match``.  ``clock`` charges time, ``results`` has reasons and records, ``verdict_text`` puts
verdicts into sentences, ``replay_check`` judges a stored game again.  Imports: protocol, referee.games.
"""

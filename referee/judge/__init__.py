"""The judge of a game, without input, output or a clock: timed events in, effects and a verdict out.

Begin at ``match.Match``.  ``clock`` charges time, ``results`` has reasons and records, ``verdict_text`` the
sentences of verdicts, ``runtime_failure`` finds causes in the messages of a bot's runtime, and
``replay_check`` judges a stored game again.  Imports: protocol, referee.games.
"""

"""Results for people and programs: tables, the report's pages, marks, exports, verification.

Begin at ``tournament_results.TournamentResults``, the store's contents in all forms of output.  May import
the layers up to ``running``.
"""

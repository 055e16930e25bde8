"""Mark sheets: rules in marks.toml, their application to a tournament, and the sheet.

Begin at ``plan``, which fits a rules file to a tournament and makes the sheet.  May import what
``tournaments.reporting`` may.
"""

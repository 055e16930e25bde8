"""Mark sheets: rules in marks.toml, their application to a table, and the sheet."""

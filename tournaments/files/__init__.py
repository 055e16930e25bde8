"""Files: tables of spreadsheets, clear errors in TOML files, locks, and writes that survive a kill."""

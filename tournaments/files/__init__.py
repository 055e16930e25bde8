"""Files in the formats that people write: TOML with clear errors, tables of spreadsheets."""

"""Data of pages: competitions as a viewer may see them, rows of tables, cached."""

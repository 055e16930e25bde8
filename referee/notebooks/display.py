"""HTML of game records in notebooks.

This package draws nothing.  An installed distribution that draws games declares a function from a record to
HTML as an entry point with the name ``GameRecord`` in the group ``kalarena.notebook``.  Kalarena's own
function is ``tournaments.reporting.site.notebook.record_html``.
"""

ENTRY_POINT_GROUP = "kalarena.notebook"


def html_of(record: object) -> str | None:
    """Return the HTML of a record; None if no installed distribution draws records of this class."""
    from importlib import metadata  # slow to import, and needed in notebooks alone

    for point in metadata.entry_points(group=ENTRY_POINT_GROUP, name=type(record).__name__):
        html: str = point.load()(record)
        return html
    return None

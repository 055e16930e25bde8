"""E-mail of a course: addresses, the outbox, and the texts of events, which the feeds have, too.

Begin at ``outbox``; a server's ``tournaments.server.mail`` sends what is in it.  May import what
``tournaments.course`` may, without ``course``.
"""

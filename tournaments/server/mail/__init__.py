"""Sending of the course's mails by SMTP, which is off unless server.toml has a table ``[mail]``.

Begin at ``mailer``, the task that empties the outbox (``tournaments.course.mail.outbox``); ``smtp`` delivers
one mail.  May import what ``tournaments.server`` may.
"""

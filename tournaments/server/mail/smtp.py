"""Delivery of mails to a mail server by SMTP (RFC 5321).  All functions block."""

import contextlib
import smtplib
import ssl
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from urllib.parse import urlsplit

from referee.judge.verdict_text import visible
from tournaments.course.model import CHOSEN_KINDS, Mail
from tournaments.server.mail.mail_table import Mailing, MailTable, sender_of

TIMEOUT_S = 30.0
"""Seconds for each answer of the mail server.  RFC 5321 allows minutes; a slower server is tried again."""
ACCOUNT_PAGE = "/account#mail"
SHUTTING_DOWN = 421
"""Reply to any command with which the mail server ends the connection."""


class MailServerError(Exception):
    """No mail can be delivered now, whichever it is; the message gives the reason."""


class RefusedError(Exception):
    """The mail server has not accepted this mail; the message is its answer."""

    def __init__(self, answer: str, *, is_final: bool) -> None:
        super().__init__(answer)
        self.is_final = is_final
        """True if the same mail would be refused again (5yz in RFC 5321)."""


def message_of(mailing: Mailing, mail: Mail) -> EmailMessage:
    """Return a mail as a message of plain text.

    Its ``Message-ID`` is the same for each attempt, so that a mailbox can recognize a second copy.
    """
    site, account = mailing.site, f"{mailing.site}{ACCOUNT_PAGE}"
    message = EmailMessage(policy=SMTP)
    message["From"] = sender_of(mailing.table.sender)
    message["To"] = Address(addr_spec=mail.address)
    message["Subject"] = visible(mail.subject)  # nothing in it can begin another header
    message["Date"] = mail.created_at
    host = urlsplit(site).hostname
    message["Message-ID"] = f"<kalarena.{mail.id}.{mail.created_at:%Y%m%d%H%M%S%f}@{host}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic reply
    text = f"{visible(mail.body)}\n\n{site}{mail.path}\n\n-- \n{site}\n"
    if mail.kind in CHOSEN_KINDS:
        message["List-Unsubscribe"] = f"<{account}>"
        text += f"Choose which mails come, or none: {account}\n"
    message.set_content(text, cte="quoted-printable")
    return message


def deliver(table: MailTable, message: EmailMessage, address: str) -> str:
    """Deliver a message to an address over a connection of its own, and return the mail server's answer.

    Raises RefusedError for this message; MailServerError if the reason does not depend on the message.
    """
    try:
        smtp = _connect(table)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise MailServerError(f"{name_of(table)}: {_sentence(error)}") from error
    try:
        answer = _send(smtp, table, message, address)
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.quit()
        return answer
    finally:
        smtp.close()


def _connect(table: MailTable) -> smtplib.SMTP:
    """Connect and sign in.  Raises OSError, SMTPException; ValueError if the password cannot be read."""
    password = table.password()
    try:
        context = ssl.create_default_context(cafile=table.ca_file)
    except OSError as error:  # ssl.SSLError, too
        why = "it has no certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"mail.ca_file: {table.ca_file} cannot be used: {why}") from error
    smtp: smtplib.SMTP
    if table.security == "tls":
        smtp = smtplib.SMTP_SSL(table.host, table.port_used, timeout=TIMEOUT_S, context=context)
    else:
        smtp = smtplib.SMTP(table.host, table.port_used, timeout=TIMEOUT_S)
    try:
        if table.security == "starttls":
            smtp.starttls(context=context)  # an error if the server does not offer it
        if table.username is not None:
            smtp.login(table.username, password)
        else:
            smtp.ehlo_or_helo_if_needed()
    except BaseException:
        smtp.close()
        raise
    return smtp


def _send(smtp: smtplib.SMTP, table: MailTable, message: EmailMessage, address: str) -> str:
    def accepted(code: int, text: bytes, *, is_about_sender: bool = False) -> str:
        answer = _answer(code, text)
        if 200 <= code < 300:
            return answer
        if is_about_sender or code == SHUTTING_DOWN:
            raise MailServerError(f"{name_of(table)}: {answer}")
        raise RefusedError(answer, is_final=code >= 500)

    try:
        accepted(*smtp.mail(sender_of(table.sender).addr_spec), is_about_sender=True)
        accepted(*smtp.rcpt(address))
        try:
            return accepted(*smtp.data(message.as_bytes()))
        except smtplib.SMTPDataError as error:
            return accepted(error.smtp_code, _bytes(error.smtp_error))
    except (OSError, smtplib.SMTPException) as error:
        # It may be this message at which the server gives up: others must not wait for it for ever.
        raise RefusedError(_sentence(error), is_final=False) from error


def name_of(table: MailTable) -> str:
    """Return the mail server's name for messages."""
    return f"mail server {table.host}:{table.port_used}"


def _answer(code: int, text: bytes) -> str:
    return " ".join(f"{code} {text.decode('utf-8', 'replace')}".split())


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _sentence(error: Exception) -> str:
    """Return an error of a connection as a sentence, with the server's answer if there is one."""
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted: {error.verify_message}; mail.ca_file can name the "
                "certificate of another authority"
            )
        case smtplib.SMTPResponseException():
            return _answer(error.smtp_code, _bytes(error.smtp_error))
        case TimeoutError():
            return f"no answer within {TIMEOUT_S:g} s"
        case OSError() if error.strerror:
            return error.strerror
    return str(error) or type(error).__name__

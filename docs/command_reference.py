"""MkDocs hook that writes the reference of all commands from the click commands themselves."""

import re
from collections.abc import Iterator
from html import escape
from typing import Any

import click

from tournaments.cli.main import main

PAGE = "reference/cli.md"
WIDTH = 100
"""Columns of a usage line."""


def on_page_markdown(markdown: str, *, page: Any, **_others: Any) -> str:
    """Append the reference to its page; called by MkDocs for every page."""
    if page.file.src_uri != PAGE:
        return markdown
    return markdown + "\n" + "\n".join(_command(click.Context(main, info_name="kalarena"), depth=2))


def _command(context: click.Context, depth: int) -> Iterator[str]:
    """Yield the lines of a command and of its subcommands.

    Descriptions and options are HTML, because their brackets and stars are not Markdown.
    """
    command, path = context.command, context.command_path
    yield f"{'#' * depth} {path} {{ #{path.replace(' ', '-')} data-toc-label='{context.info_name}' }}\n"
    for paragraph in (command.help or "").replace("\b", "").split("\n\n"):
        yield f"<p>{_html(paragraph.strip())}</p>\n"
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"```text\n{click.formatting.wrap_text(usage, WIDTH, subsequent_indent='    ')}\n```\n"
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    records = [option.get_help_record(context) for option in options]
    rows = [
        f"<tr><td><code>{escape(names)}</code></td><td>{_html(text)}</td></tr>"
        for names, text in filter(None, records)
    ]
    yield "\n".join(
        ["<table><thead><tr><th>Option</th><th>Meaning</th></tr></thead><tbody>", *rows, "</tbody></table>\n"]
    )
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from _command(click.Context(subcommand, parent=context, info_name=name), depth + 1)


def _html(text: str) -> str:
    """Return a help text as HTML, with `texts` in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))

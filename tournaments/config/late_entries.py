"""Bots that join a tournament after its first game, and their storage in the journal."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from referee.judge.results import Player
from tournaments.bots.errors import BotError
from tournaments.bots.manifest import NAME, NAME_RULE
from tournaments.bots.resolve import resolve_bot
from tournaments.config.load import ConfigError, build_sandbox, too_wide
from tournaments.config.tournament import CANNOT_TAKE_OPENINGS, BotSource, Tournament, name_clash
from tournaments.results.journal import Action, Entry, withdrawn_bots


def late_bot(text: str, base: Path, name: str | None, game: str, *, strict: bool) -> Player:
    """Return the player that a text names.  ``strict``: bots must be confined, and so must their builds.

    Raises BotError.
    """
    bot = resolve_bot(text, base, name, game, build_in=build_sandbox(strict=strict))
    if not NAME.fullmatch(bot.name):
        raise BotError(f"{bot.name!r} cannot be the name of a bot: give it one with --name ({NAME_RULE})")
    return bot


def note_of(bot: Player, text: str, base: str, replaces: str | None) -> dict[str, Any]:
    """Return the journal's data on a bot that joins; ``base`` is the folder of relative paths."""
    return {"bot": text, "base": base, "digest": bot.digest, "replaces": replaces}


def with_late_bots(tournament: Tournament, journal: Sequence[Entry], folder: Path) -> Tournament:
    """Return the tournament with all bots that have joined according to the journal.

    A bot that has withdrawn plays no game: its files are not needed, and it is added without a command.

    ``folder`` is that of the tournament's file.  Raises ConfigError, with all problems.
    """
    added: list[Player] = []
    sources = dict(tournament.sources)
    problems: list[str] = []
    strict = tournament.must_confine
    gone = withdrawn_bots(journal)
    for entry in journal:
        if entry.action is not Action.ADD:
            continue
        try:
            if entry.subject in gone:
                added.append(Player(entry.subject, (), "", entry.data["digest"]))
                continue
            bot = late_bot(
                entry.data["bot"], Path(entry.data["base"]), entry.subject, tournament.game, strict=strict
            )
        except BotError as error:
            problems.append(f"{entry.subject}, added {entry.at}: {error}")
            continue
        except (LookupError, TypeError) as error:
            raise ConfigError(f"entry {entry.number} of the journal is damaged: {error!r}") from error
        if bot.digest != entry.data["digest"]:
            problems.append(
                f"the files of {entry.subject} have changed since it was added, {entry.at}: bring them back, "
                "or withdraw it and add the changed bot under another name"
            )
        others = [*tournament.names, *(other.name for other in added)]
        problems += unfit(bot, others, openings=bool(tournament.openings))
        added.append(bot)
        sources[bot.name] = BotSource(entry.data["bot"], Path(entry.data["base"]))
    playing = [bot for bot in added if bot.name not in gone]
    if strict and playing:  # the file's own bots were compared when it was read
        problems += [problem for _, problem in too_wide(folder, [*tournament.bots, *playing])]
    if problems:
        raise ConfigError("\n".join(problems))
    return tournament.model_copy(update={"added": tuple(added), "sources": sources})


def unfit(bot: Player, names: Sequence[str], *, openings: bool) -> Iterator[str]:
    """Yield the reasons why a bot cannot join those of these names; ``openings``: games have openings."""
    clash = name_clash(bot.name, names)
    if clash is not None:
        how = "taken already" if clash == bot.name else f"too like {clash!r}"
        yield f"the name {bot.name!r} is {how}: give it another with --name"
    if openings and "openings" not in bot.capabilities:
        yield f"{bot.name} {CANNOT_TAKE_OPENINGS}"

"""Where the settings are kept."""

import json
from typing import Any

from sqlalchemy import insert, select, update

from tournaments.course.schema import setting
from tournaments.course.settings import Settings, SettingsError, settings_of
from tournaments.course.transactions import Transactions
from tournaments.database.errors import StoreError

_ONLY = 1


class SettingsTable:
    """The settings of the course."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def load(self) -> Settings:
        """What was saved last; the defaults if nothing was.

        Raises StoreError if this program cannot make anything of it.
        """
        with self._transactions.reading() as connection:
            kept = connection.execute(select(setting.c.content)).scalar_one_or_none()
            values = {} if kept is None else json.loads(kept)
        try:
            return settings_of(values)
        except SettingsError as error:
            raise StoreError(f"the course's settings cannot be used: {error}", is_ours=True) from error

    def save(self, settings: Settings) -> None:
        """Keep all settings."""
        values = {"content": settings.model_dump_json()}
        with self._transactions.writing() as connection:
            if connection.execute(select(setting.c.id)).first() is None:
                connection.execute(insert(setting).values(id=_ONLY, **values))
            else:
                connection.execute(update(setting).values(**values))

    def change(self, **values: Any) -> Settings:
        """Change some of the settings, whatever somebody else does to the others at the same moment.

        Raises SettingsError with all that is wrong.
        """
        with self._transactions.writing():
            changed = settings_of({**self.load().model_dump(), **values})
            self.save(changed)
        return changed

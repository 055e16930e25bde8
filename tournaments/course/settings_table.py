"""Storage of the settings."""

import json
from typing import Any

from sqlalchemy import insert, select, update

from tournaments.course.schema import setting
from tournaments.course.settings import Settings, SettingsError, settings_of
from tournaments.course.transactions import Transactions
from tournaments.database.errors import StoreError

_ONLY = 1


class SettingsTable:
    """Table with the course's settings."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def load(self) -> Settings:
        """Return the stored settings, or the defaults if there are none.

        Raises StoreError if the stored settings are invalid.
        """
        with self._transactions.reading() as connection:
            kept = connection.execute(select(setting.c.content)).scalar_one_or_none()
            values = {} if kept is None else json.loads(kept)
        try:
            return settings_of(values)
        except SettingsError as error:
            raise StoreError(f"the course's settings cannot be used: {error}", is_ours=True) from error

    def begin(self, memory_mb: int) -> None:
        """Store the memory limit of a new course; change nothing if settings are stored already."""
        with self._transactions.writing() as connection:
            if connection.execute(select(setting.c.id)).first() is None:
                content = json.dumps({"memory_mb": memory_mb})
                connection.execute(insert(setting).values(id=_ONLY, content=content))

    def save(self, settings: Settings) -> None:
        """Store all settings."""
        values = {"content": settings.model_dump_json()}
        with self._transactions.writing() as connection:
            if connection.execute(select(setting.c.id)).first() is None:
                connection.execute(insert(setting).values(id=_ONLY, **values))
            else:
                connection.execute(update(setting).values(**values))

    def change(self, **values: Any) -> Settings:
        """Change some of the settings, without overwriting simultaneous changes of others.

        Raises SettingsError with all problems.
        """
        with self._transactions.writing():
            changed = settings_of({**self.load().model_dump(), **values})
            self.save(changed)
        return changed

"""A folder with a bot that is built, and the files around the bot."""

import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from referee.sandbox.bubblewrap import Sandbox
from tests.support.processes import living_with
from tournaments.bots.build import build
from tournaments.bots.errors import BuildError

MAKES = "printf '#!/bin/sh\\nexit 0\\n' > engine && chmod +x engine\n"
SECRET = "the-secret-of-another"


def _may_change(name: str, products: list[str]) -> bool:
    """Return whether a build may change a file: products, class files, and their directories."""
    path = Path(name)
    if path.suffix == ".class" and any(product.endswith(".class") for product in products):
        return True
    return any(
        path.is_relative_to(made) or made.is_relative_to(path)
        for made in (Path("bot", product) for product in products)
    )


@dataclass(frozen=True)
class BuildFolder:
    """A folder with a bot that is built, and the files around the bot."""

    base: Path
    mark: str

    @property
    def bot(self) -> Path:
        return self.base / "bot"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    def write(self, script: str, name: str = "make.sh") -> list[str]:
        """Write the program of an attack; return the command that runs it."""
        text = script.replace("{outside}", str(self.outside)).replace("{bot}", str(self.bot))
        (self.bot / name).write_text(text)
        return ["python3" if name.endswith(".py") else "sh", name, self.mark]

    def files(self) -> dict[str, tuple[int, str]]:
        """Return the mode, and the content or target, of each file."""
        found = {}
        for path in sorted(self.base.rglob("*")):
            mode = path.lstat().st_mode
            content = ""
            if stat.S_ISLNK(mode):
                content = str(path.readlink())
            elif stat.S_ISREG(mode):
                content = path.read_text(errors="replace")
            found[str(path.relative_to(self.base))] = (mode, content)
        return found

    def made_by(self, command: list[str], products: list[str], sandbox: Sandbox) -> set[str]:
        """Build; return the names of the new and changed files."""
        before = self.files()
        try:
            build(self.bot, command, products, sandbox)
        finally:
            after = self.files()
            assert before.keys() <= after.keys(), "something was removed"
            changed = {name for name, what in after.items() if before.get(name) != what}
            assert not [name for name in changed if not _may_change(name, products)]
            assert living_with(self.mark) == []
        return changed


def refused(folder: BuildFolder, command: list[str], sandbox: Sandbox, *products: str) -> str:
    with pytest.raises(BuildError) as caught:
        folder.made_by(command, list(products or ["engine"]), sandbox)
    return str(caught.value)

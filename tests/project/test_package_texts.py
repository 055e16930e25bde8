"""The text of each package: a module to begin with, which exists, and what the package may import."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY_ROOT

PACKAGES = [
    path.parent
    for name in ("protocol", "referee", "sample_bots", "tournaments")
    for path in sorted((REPOSITORY_ROOT / name).rglob("__init__.py"))
]


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda path: str(path.relative_to(REPOSITORY_ROOT)))
def test_a_package_names_a_module_to_begin_with_and_its_imports(folder: Path) -> None:
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    text = " ".join((ast.get_docstring(tree) or "").split())
    begin = re.search(r"Begin at ``([\w.]+)``", text)
    assert begin, f"{folder}: the text names no module to begin with"
    names = begin[1].split(".")
    modules = [folder.joinpath(*names[:length]).with_suffix(".py") for length in (1, 2)]
    module = next((path for path in modules if path.is_file()), None)
    assert module, f"{folder}: there is no module {begin[1]}"
    if names[-1] != module.stem:
        code = module.read_text(encoding="utf-8")
        assert re.search(rf"^(async def|class|def) {names[-1]}\b", code, re.MULTILINE), begin[1]
    assert "May import " in text, f"{folder}: the text does not say what the package may import"

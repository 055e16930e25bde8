"""Each file of the repository has a licence, whose text is in LICENSES (reuse.software)."""

import re
import subprocess
import tomllib

from tests.support.paths import REPOSITORY_ROOT

LICENCES = REPOSITORY_ROOT / "LICENSES"


def pattern_of(path: str) -> re.Pattern[str]:
    """Return the pattern of a path in REUSE.toml, in which ``**`` matches slashes and ``*`` does not."""
    words = [re.escape(word) if word.strip("*") else word for word in re.split(r"(\*+)", path)]
    return re.compile("".join({"*": "[^/]*", "**": ".*"}.get(word, word) for word in words))


def licence_of_each() -> dict[str, str]:
    """Return the licence of each tracked file, by path; the last annotation that matches counts."""
    annotations = tomllib.loads((REPOSITORY_ROOT / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    command = ["git", "-C", str(REPOSITORY_ROOT), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, str] = {}
    for annotation in annotations:
        assert annotation["SPDX-FileCopyrightText"]
        paths = annotation["path"] if isinstance(annotation["path"], list) else [annotation["path"]]
        for path in paths:
            matched = [file for file in listed.split("\0") if file and pattern_of(path).fullmatch(file)]
            assert matched, f"REUSE.toml: no file is {path}"
            found |= dict.fromkeys(matched, annotation["SPDX-License-Identifier"])
    assert set(listed.split("\0")) - {""} == set(found), "files without a licence"
    return found


def test_each_file_has_a_licence_with_its_text() -> None:
    texts = {path.stem for path in LICENCES.iterdir()}
    assert set(licence_of_each().values()) == texts


def test_the_licence_of_our_own_work_is_that_of_the_packages() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert licence_of_each()["README.md"] == project["license"]
    own = (REPOSITORY_ROOT / "LICENSE").read_text(encoding="utf-8")
    assert (LICENCES / f"{project['license']}.txt").read_text(encoding="utf-8") == own


def test_files_that_the_notice_names_have_no_licence_of_ours() -> None:
    notice = (REPOSITORY_ROOT / "NOTICE").read_text(encoding="utf-8")
    others = {path for path, licence in licence_of_each().items() if licence != "MIT"}
    named = set(re.findall(r"tests/data/[\w./]*\w", notice))
    assert named
    assert all(any(f"{path}/".startswith(f"{name}/") for name in named) for path in others)
    assert all(any(f"{path}/".startswith(f"{name}/") for path in others) for name in named)

"""The commands of docs/cluster.md for lab machines work as written."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.engines.lab_machines import machine, printed_command
from tests.project.test_docs import TEXTS
from tests.support.builders import write_tournament

CUP = 'name = "Cup"\ngame = "kalah(1,1)"\nbots = ["first_legal", "greedy"]\n[cluster]\nhost = "127.0.0.1"\n'


@pytest.mark.cluster
@pytest.mark.any_database
async def test_lab_machines(tmp_path: Path) -> None:
    section = TEXTS["cluster.md"].partition("## Lab machines in ten minutes\n")[2].partition("\n## ")[0]
    commands = [shlex.split(line) for line in re.findall(r"^    kalarena (.*)$", section, re.MULTILINE)]
    on_the_head, in_the_lab = commands
    head_folder, lab_folder = tmp_path / "head", tmp_path / "lab"
    write_tournament(head_folder, CUP)
    async with machine(head_folder, "head", on_the_head) as head:
        _, _, address, *_ = printed_command(await head.says("waiting for workers"))
        shutil.copytree(head_folder / "results/cluster/credentials", lab_folder / "credentials")
        arguments = [address if word == "tls://HEAD:PORT" else word for word in in_the_lab]
        assert address in arguments
        async with machine(lab_folder, "lab", arguments) as lab:
            assert await head.ends() == 0, head.said
            assert await lab.ends() == 0, lab.said
    assert "Cup: 2 of 2 games\n" in head.said

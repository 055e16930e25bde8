"""What docs/cluster.md tells to type, typed."""

import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_tournament
from tests.lab_machines import machine, printed_command
from tournaments.config.cluster_table import ClusterTable, ServerClusterTable

TEXT = (Path(__file__).parent.parent / "docs" / "cluster.md").read_text(encoding="utf-8")
CUP = 'name = "Cup"\ngame = "kalah(1,1)"\nbots = ["first_legal", "greedy"]\n[cluster]\nhost = "127.0.0.1"\n'

pytestmark = pytest.mark.any_database


def commands(section: str) -> list[list[str]]:
    """The arguments of `kalarena` in the lines that stand alone in a section."""
    text = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [shlex.split(line) for line in re.findall(r"^    kalarena (.*)$", text, re.MULTILINE)]


def table(section: str) -> dict[str, Any]:
    """``[cluster]`` of the file that a section shows."""
    text = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    found: dict[str, Any] = tomllib.loads(block)["cluster"]
    return found


@pytest.mark.slow
async def test_lab_machines(tmp_path: Path) -> None:
    on_the_head, in_the_lab = commands("Lab machines in ten minutes")
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


def test_slurm() -> None:
    assert commands("Slurm in ten minutes") == [
        ["tournament", "run", "cup.toml", "--out", "results", "--engine", "slurm"]
    ]
    settings = ClusterTable.model_validate(table("Slurm in ten minutes"))
    assert (settings.queue, settings.cores, settings.walltime_s) == ("students", 4, 3600)


def test_the_server() -> None:
    settings = ServerClusterTable.model_validate(table("The server's tournaments"))
    assert (settings.engine, settings.port, settings.minimum) == ("dask", 8786, 8)

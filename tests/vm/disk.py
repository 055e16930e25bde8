"""Disks of the virtual machine, which lose what was not flushed when the power fails.

A disk has a cache, from which it writes in any order; what the guest has flushed (fsync) is safe.  None of
qemu's cache modes shows that: a killed qemu leaves all its completed writes in the host's page cache, flushed
or not.  So qemu's filter ``blklogwrites`` logs each write and flush (the format is that of dm-log-writes of
Linux), and after a cut the image is made from the log: of the writes after the last flush, each block is
there or not, by chance.  What is still in the page cache of the guest is lost with the guest.
"""

import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.vm.machine import MachineError, find_program

SECTOR = 512
BLOCK = 4096
"""The unit that a disk writes as a whole, in bytes."""
ENTRY = struct.Struct("<QQQQ")
"""Sector, number of sectors, flags, and length of data (include/linux/dm-log-writes of the kernel)."""
SUPER = struct.Struct("<QQQI")
"""Magic, version, number of entries, bytes of a sector."""
MAGIC = 0x6A736677736872
FLUSH, DISCARD = 1, 4
REPLAYED = 1
"""Highest exit status of ``e2fsck -p`` for a file system without damage, whose journal is to be replayed."""


@dataclass(frozen=True)
class Write:
    """A logged write; without data a flush."""

    offset: int
    data: bytes
    is_flush: bool


@dataclass(frozen=True)
class Loss:
    """The blocks of a disk around a cut."""

    flushed: int
    """Number of blocks that were flushed."""
    kept: int
    """Number of blocks that were not flushed, and are there by chance."""
    lost: int


class Disk:
    """An image with a file system, ext4.

    Args:
        image: The file; it changes when the machine was cut off, by ``cut``.
    """

    def __init__(self, image: Path) -> None:
        self.image = image
        self._running = image.with_suffix(".running")
        self._log = image.with_suffix(".log")

    @classmethod
    def make(cls, image: Path, size_mb: int, content: Path) -> "Disk":
        """Make a disk with the files of a folder."""
        image.unlink(missing_ok=True)
        with image.open("wb") as file:
            file.truncate(size_mb << 20)
        _run("mkfs.ext4", "-q", "-F", "-b", str(BLOCK), "-d", str(content), str(image))
        return cls(image)

    def options(self, name: str) -> list[str]:
        """Return qemu's options for this disk, for a new start of the machine."""
        shutil.copyfile(self.image, self._running)
        self._log.write_bytes(b"")
        words = [
            *("driver=blklogwrites", f"node-name={name}", f"log-sector-size={SECTOR}"),
            *("file.driver=file", f"file.filename={self._running}"),
            *("log.driver=file", f"log.filename={self._log}"),
        ]
        return ["-blockdev", ",".join(words), "-device", f"virtio-blk-pci,drive={name}"]

    def cut(self, chance: random.Random) -> Loss:
        """Change the image to what is on the disk after a power cut.  The machine must have ended."""
        writes = list(_logged(self._log))
        flushed = max((number for number, write in enumerate(writes) if write.is_flush), default=-1)
        counts = {"flushed": 0, "kept": 0, "lost": 0}
        with self.image.open("r+b") as image:
            for number, write in enumerate(writes):
                for at in range(0, len(write.data), BLOCK):
                    kind = "flushed" if number < flushed else chance.choice(("kept", "lost"))
                    counts[kind] += 1
                    if kind != "lost":
                        image.seek(write.offset + at)
                        image.write(write.data[at : at + BLOCK])
        return Loss(**counts)

    def copy_files(self, folder: Path) -> None:
        """Copy all files of the disk into a new folder, as they are for a system that mounts it."""
        folder.mkdir()
        copy = self.image.with_suffix(".copy")
        shutil.copyfile(self.image, copy)
        _run("e2fsck", "-p", str(copy), most=REPLAYED)
        _run("e2fsck", "-f", "-n", str(copy))
        _run("debugfs", "-R", f"rdump / {folder}", str(copy))
        copy.unlink()


def _logged(path: Path) -> Iterator[Write]:
    with path.open("rb") as log:
        head = log.read(SECTOR)
        if not head:
            return
        magic, _, _, sector_bytes = SUPER.unpack_from(head)
        if (magic, sector_bytes) != (MAGIC, SECTOR):
            raise MachineError(f"{path} is no log of writes")
        while len(head := log.read(SECTOR)) == SECTOR:
            sector, sectors, flags, _ = ENTRY.unpack_from(head)
            if not sectors and not flags:  # a write whose entry was still missing at the kill
                return
            data = b"" if flags & DISCARD else log.read(sectors * SECTOR)
            if not flags & DISCARD and len(data) < sectors * SECTOR:
                return
            yield Write(sector * SECTOR, data, bool(flags & FLUSH))


def _run(tool: str, *arguments: str, most: int = 0) -> None:
    program = find_program(tool) or tool
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode > most:
        raise MachineError(
            f"{tool} {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )

"""A disk that keeps after a power cut only what was synced: ext4 on a loop device, mounted in a namespace.

With the options below the kernel writes next to nothing by itself within minutes, and a file that was renamed
without fsync may be empty. What the image holds at the moment of the cut is what the next boot finds.
Without a journal a file is synced alone: what was done before it, names in directories too, may be missing.
"""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tests.testbed.namespaces import run_in

SIZE = "256M"
OPTIONS = "loop,noauto_da_alloc,noatime"
REPAIRED = 1
"""Exit status of e2fsck (e2fsck(8)): errors were corrected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One disk, mounted at a directory of a namespace."""

    image: Path
    directory: str
    switch: int
    """First process of the namespace."""
    has_journal: bool
    cuts: int = 0

    def mount(self) -> None:
        """Mount it where it belongs."""
        options = f"{OPTIONS},data=writeback,commit=600" if self.has_journal else OPTIONS
        run_in(self.switch, ["mkdir", "-p", self.directory])
        run_in(self.switch, ["mount", "-t", "ext4", "-o", options, str(self.image), self.directory])

    def sync(self) -> None:
        """Bring all that was written so far to the disk."""
        run_in(self.switch, ["sync", "--file-system", self.directory])

    def record(self) -> "Disk":
        """Return the disk as it is at this moment, without what waits in memory. Nobody may write to it."""
        image = self.image.with_suffix(f".{self.cuts + 1}")
        subprocess.run(["cp", "--sparse=always", str(self.image), str(image)], check=True)
        return replace(self, image=image, cuts=self.cuts + 1)

    def change_for(self, recorded: "Disk") -> None:
        """Mount what was recorded in its place, checked as by every boot."""
        run_in(self.switch, ["umount", self.directory])
        self.image.unlink()
        checked = subprocess.run(["e2fsck", "-fy", str(recorded.image)], capture_output=True, check=False)
        if checked.returncode > REPAIRED:
            message = f"testbed: {recorded.image} cannot be repaired: {checked.stdout!r}"
            raise RuntimeError(message)
        recorded.mount()


def make_disk(folder: Path, name: str, directory: str, switch: int, *, has_journal: bool = True) -> Disk:
    """Make an empty disk and mount it."""
    image = folder / f"{name}.disk"
    feature = "has_journal" if has_journal else "^has_journal"
    command = ["mkfs.ext4", "-q", "-F", "-O", feature, "-m", "0", str(image), SIZE]
    subprocess.run(command, check=True, capture_output=True)
    disk = Disk(image=image, directory=directory, switch=switch, has_journal=has_journal)
    disk.mount()
    return disk

"""Copies tuner, and what its bill of materials names, out of the environment of the Python that runs this.

Usage: ENVIRONMENT/bin/python .ci/debian/bundle.py BILL FOLDER

Left behind is what nothing imports: the tests of packages, their licenses (copyright.py has them), and what
pip notes of where it found and put them.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackagePath, distribution
from pathlib import Path

OF_METADATA = {"METADATA", "entry_points.txt"}
"""What programs ask of an installed package: its version, what it requires and what it provides."""


def distributions_of(bill: Path) -> list[Distribution]:
    """Find the installed packages that a bill names, the one that it is of first."""
    described = json.loads(bill.read_text(encoding="utf-8"))
    components = [described["metadata"]["component"], *described["components"]]
    # Of some packages it names several versions, each for other versions of Python: one is installed.
    return [distribution(name) for name in dict.fromkeys(each["name"] for each in components)]


def files_of(package: Distribution) -> Iterator[PackagePath]:
    """Find the files of a package that it needs to run."""
    for file in package.files or ():
        top, *folders = file.parts[:-1] or ("",)
        is_metadata = top.endswith(".dist-info")
        if ".." in file.parts or "tests" in folders or (is_metadata and file.name not in OF_METADATA):
            continue
        yield file


def copy(package: Distribution, folder: Path) -> None:
    """Copy the files of a package."""
    for file in files_of(package):
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(str(file.locate()), place)


if __name__ == "__main__":
    for each in distributions_of(Path(sys.argv[1])):
        copy(each, Path(sys.argv[2]))

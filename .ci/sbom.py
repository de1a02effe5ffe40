"""Prints what a version of tuner is installed with, as a CycloneDX bill of materials, from a lock file.

Usage: python .ci/sbom.py requirements/run.txt VERSION

The format: https://cyclonedx.org/docs/1.6/json/. The same lock file gives the same bytes on the same
SOURCE_DATE_EPOCH.
"""

import json
import os
import re
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

OWN = "servertuner"
ASKED_BY_PYPROJECT = f"{OWN} (pyproject.toml)"
"""How uv writes that the project itself asks for a package; of a group, its name follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One entry of the lock file."""

    requirement: Requirement
    hashes: tuple[str, ...]
    """SHA-256 of each file that it may be installed from."""
    asked_by: tuple[str, ...]

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")

    @property
    def purl(self) -> str:
        """Return its address (github.com/package-url/purl-spec)."""
        return f"pkg:pypi/{self.requirement.name}@{self.version}"


def read_lock(text: str) -> list[Package]:
    """Read the entries of a lock file that `uv pip compile --generate-hashes` wrote."""
    entries = re.split(r"\n(?=\w)", text.strip())
    return [
        Package(
            requirement=Requirement(entry.partition(" \\\n")[0]),
            hashes=tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)),
            asked_by=tuple(re.findall(r"^    #\s+(?:via )?(\w.*)$", entry, re.MULTILINE)),
        )
        for entry in entries
    ]


def is_run_with(package: Package, packages: list[Package]) -> bool:
    """Return whether a package is there when tuner runs on Linux; others only build it."""
    marker, seen, asking = package.requirement.marker, set(), set(package.asked_by)
    while asking - seen:
        seen |= asking
        asking = {by for each in packages if each.requirement.name in seen for by in each.asked_by}
    on_windows_alone = marker is not None and "sys_platform == 'win32'" in str(marker).replace('"', "'")
    return ASKED_BY_PYPROJECT in seen and not on_windows_alone


def describe(package: Package) -> dict[str, object]:
    """Return a package as a component."""
    marker = package.requirement.marker
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.requirement.name,
        "version": package.version,
        "purl": package.purl,
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
        **({"properties": [{"name": "python:marker", "value": str(marker)}]} if marker else {}),
    }


def make_bill(lock: str, version: str) -> dict[str, object]:
    """Return the bill of materials of a version."""
    everything = read_lock(lock)
    packages = [each for each in everything if is_run_with(each, everything)]
    own = f"pkg:pypi/{OWN}@{version}"
    made = time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    asks = {own: ASKED_BY_PYPROJECT, **{each.purl: each.requirement.name for each in packages}}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + lock)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", made),
            "component": {
                "type": "application", "bom-ref": own, "name": OWN, "version": version, "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
            },
        },
        "components": [describe(each) for each in packages],
        "dependencies": [
            {"ref": ref, "dependsOn": [each.purl for each in packages if name in each.asked_by]}
            for ref, name in asks.items()
        ],
    }  # fmt: skip


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    sys.stdout.write(json.dumps(make_bill(text, sys.argv[2]), indent=1) + "\n")

"""Read php-fpm's files: what they say of each pool, and in which order (sapi/fpm/fpm/fpm_conf.c).

A section that is opened again goes on where it was, so that a later file adds to a pool and wins.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.kit.config_files import matching
from tuner.ports import Files

_SECTION = re.compile(r"\[([^\]]*)\]")
_ENTRY = re.compile(r"""([^=;\s]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^;]*))""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line `key = value`."""

    section: str
    """`global`, or the name of a pool."""
    key: str
    value: str
    path: PurePosixPath
    line: int


def read_entries(files: Files, main: PurePosixPath) -> Iterator[Entry]:
    """Yield all entries in the order in which they are read; the last one of a key counts."""
    yield from _read(files, main, ())


def _read(files: Files, path: PurePosixPath, within: tuple[PurePosixPath, ...]) -> Iterator[Entry]:
    section = "global"
    for number, line in enumerate(files[path].decode(errors="replace").splitlines(), start=1):
        if opened := _SECTION.match(line.strip()):
            section = opened[1].strip()
        elif found := _ENTRY.match(line.strip()):
            key, double, single, bare = found.groups()
            value = double or single or (bare or "").strip()
            if key != "include":
                yield Entry(section=section, key=key, value=value, path=path, line=number)
                continue
            for included in matching(files, path.parent / value):
                if included not in (*within, path):
                    yield from _read(files, included, (*within, path))


def included_directories(files: Files, main: PurePosixPath) -> list[PurePosixPath]:
    """Name the directories in which a file called *.conf would be read, the last first."""
    lines = files[main].decode(errors="replace").splitlines()
    found = (_ENTRY.match(line.strip()) for line in lines)
    patterns = [each[2] or each[3] or each[4].strip() for each in found if each and each[1] == "include"]
    return [
        main.parent / PurePosixPath(each).parent for each in reversed(patterns) if each.endswith("/*.conf")
    ]

"""Read php-fpm's files: what they say of each pool, and in which order (sapi/fpm/fpm/fpm_conf.c).

A section that is opened again goes on where it was, so that a later file adds to a pool and wins. An include
is read where it stands, and what comes after it belongs to the section that was opened last.
"""

import re
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.kit.config_files import matching
from tuner.ports import Files

GLOBAL = "global"
INCLUDE = "include"
_SECTION = re.compile(r"\[([^\]]*)\]")
_ENTRY = re.compile(r"""([^=;\s]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^;]*))""")
_ADDRESS = re.compile(r"(?:(.*):)?(\d+)")
_ANY_ADDRESS = frozenset({"*", "0.0.0.0", "[::]"})  # noqa: S104 - names that are read, not bound
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line `key = value`."""

    section: str
    """`global`, or the name of a pool."""
    key: str
    value: str
    path: PurePosixPath
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one php-fpm has its files, and the pool that is tuned."""

    main: PurePosixPath
    prefix: PurePosixPath
    """Where a relative include begins."""
    pools: Mapping[str, str]
    """Every pool, with the address or socket where it listens."""
    pool: str = ""
    """Empty where it is not clear which is meant."""

    def read_entries(self, files: Files) -> list[Entry]:
        """Return all entries in the order in which they are read; the last one of a key counts."""
        return list(_read(files, self.main, self.prefix, GLOBAL, ()))


def _read(
    files: Files, path: PurePosixPath, prefix: PurePosixPath, section: str, within: tuple[PurePosixPath, ...]
) -> Generator[Entry, None, str]:
    """Yield the entries of a file and of what it includes; return the section that is open at its end."""
    for number, line in enumerate(files[path].decode(errors="replace").splitlines(), start=1):
        if opened := _SECTION.match(line.strip()):
            name = opened[1].strip()
            section = GLOBAL if name.lower() == GLOBAL else name
        elif found := _ENTRY.match(line.strip()):
            key, double, single, bare = found.groups()
            value = double or single or (bare or "").strip()
            yield Entry(section=section, key=key, value=value, path=path, line=number)
            for included in matching(files, prefix / value) if key == INCLUDE else ():
                if included not in (*within, path):
                    section = yield from _read(files, included, prefix, section, (*within, path))
    return section


def find_pool(pools: Mapping[str, str], addresses: Iterable[str]) -> str | None:
    """Return the pool that listens at one of these addresses; None where none does.

    Args:
        pools: each with its address: `9000`, `127.0.0.1:9000`, a path.
        addresses: as a web server names them: `127.0.0.1:9000`, `unix:/run/php-fpm.sock`.
    """
    fits = [(_fit(address, listen), name) for address in addresses for name, listen in pools.items()]
    best = max(fits, default=(0, ""), key=lambda each: each[0])
    return best[1] if best[0] else None


def _fit(address: str, listen: str) -> int:
    """Tell how well an address fits a pool: 0 for not at all, a name that may be this host's for little."""
    if listen.startswith("/"):
        asked = address.removeprefix("unix:")
        return 3 * (_without_link(asked) == _without_link(listen))
    found, own = _ADDRESS.fullmatch(address), _ADDRESS.fullmatch(listen)
    if found is None or own is None or found[2] != own[2]:
        return 0
    if found[1] == own[1] or {found[1], own[1]} <= _LOOPBACK:
        return 3
    if own[1] is None or own[1] in _ANY_ADDRESS:
        return 2
    return int(not re.fullmatch(r"[\d.]+|\[.*\]", found[1]))


def _without_link(path: str) -> str:
    return path.replace("/var/run/", "/run/", 1)

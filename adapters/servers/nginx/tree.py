"""Put the files of an nginx configuration together, as its includes do."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.syntax import ENCODING, Directive, Word, read_directives
from tuner.errors import TargetError
from tuner.kit.config_files import has_wildcard, matches
from tuner.ports import Files, Installation

_WILD = re.compile(r"[*?\[]")


def read_tree(installation: Installation) -> Directive:
    """Read an installed configuration whole: a block without a name that holds what `main` holds."""
    return join_files(find_main_file(installation), installation.files)


def find_main_file(installation: Installation) -> PurePosixPath:
    """Name the file that nginx is started with, which the check ends with."""
    if installation.service is None or not installation.service.check:
        raise TargetError("nginx: the installation names no configuration file. Run the command again.")
    return PurePosixPath(installation.service.check[-1])


def join_files(main: PurePosixPath, files: Files) -> Directive:
    """Read the main file, and in the place of each include the files that it names.

    Raises TargetError for a file that includes itself, and for one that is not nginx's syntax.
    """
    nameless = Word(text="", begin=0, end=0)
    return Directive(path=main, words=(nameless,), end=0, children=_Joined(main.parent, files).read(main))


class _Joined:
    """Files of one configuration, each parsed once however often it is included."""

    def __init__(self, prefix: PurePosixPath, files: Files) -> None:
        """What is relative begins at the prefix, where the main file is."""
        self._prefix, self._files = prefix, files
        self._in_folder: dict[PurePosixPath, list[PurePosixPath]] = {}
        for path in sorted(files, key=str):  # as glob(3) sorts them
            self._in_folder.setdefault(path.parent, []).append(path)
        self._parsed: dict[PurePosixPath, tuple[Directive, ...]] = {}
        self._open: list[PurePosixPath] = []

    def read(self, path: PurePosixPath) -> tuple[Directive, ...]:
        if path in self._open:
            raise TargetError(
                f"{path}: this file includes itself. Correct the file until `nginx -t` accepts it."
            )
        if path not in self._parsed:
            self._open.append(path)
            written = read_directives(self._files[path].decode(ENCODING), path)
            self._parsed[path] = self._expand(written)
            self._open.pop()
        return self._parsed[path]

    def _expand(self, directives: tuple[Directive, ...]) -> tuple[Directive, ...]:
        found: list[Directive] = []
        for each in directives:
            if each.name == "include" and each.arguments:
                for path in self._name_files(self._prefix / each.arguments[0]):
                    found += self.read(path)
            elif each.children:
                found.append(replace(each, children=self._expand(each.children)))
            else:
                found.append(each)
        return tuple(found)

    def _name_files(self, pattern: PurePosixPath) -> list[PurePosixPath]:
        if pattern in self._files:
            return [pattern]
        folders = [pattern.parent]
        if has_wildcard(pattern.parent):
            folders = [folder for folder in self._in_folder if matches(folder, pattern.parent)]
        # Only names that begin as the pattern does: hundreds of sites may each look into one folder.
        begin = _WILD.split(pattern.name, maxsplit=1)[0]
        named = (
            path for folder in folders for path in _beginning_with(begin, self._in_folder.get(folder, []))
        )
        return sorted((path for path in named if matches(path, pattern)), key=str)


def _beginning_with(begin: str, paths: Sequence[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Yield those of sorted paths of one folder whose names begin so."""
    first = bisect_left(paths, begin, key=lambda path: path.name)
    return takewhile(lambda path: path.name.startswith(begin), islice(paths, first, None))

"""Put the files of an nginx configuration together, as its includes do."""

from dataclasses import replace
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.syntax import ENCODING, Directive, Word, read_directives
from tuner.errors import TargetError
from tuner.kit.config_files import matches
from tuner.ports import Files, Installation


def read_tree(installation: Installation) -> Directive:
    """Read an installed configuration whole: a block without a name that holds what `main` holds."""
    return join_files(find_main_file(installation), installation.files)


def find_main_file(installation: Installation) -> PurePosixPath:
    """Name the file that nginx is started with, which the check ends with."""
    if installation.service is None or not installation.service.check:
        raise TargetError("nginx: the installation names no configuration file. Find it again.")
    return PurePosixPath(installation.service.check[-1])


def join_files(main: PurePosixPath, files: Files) -> Directive:
    """Read the main file, and in the place of each include the files that it names.

    Raises TargetError for a file that includes itself, and for one that is not nginx's syntax.
    """
    # As glob(3) sorts them.
    names = tuple(sorted(files, key=str))
    nameless = Word(text="", begin=0, end=0)
    children = _read(main, main.parent, names, files, ())
    return Directive(path=main, words=(nameless,), end=0, children=children)


def _read(
    path: PurePosixPath,
    prefix: PurePosixPath,
    names: tuple[PurePosixPath, ...],
    files: Files,
    above: tuple[PurePosixPath, ...],
) -> tuple[Directive, ...]:
    if path in above:
        raise TargetError(f"{path}: this file includes itself. Correct it until `nginx -t` accepts it.")

    def expand(directives: tuple[Directive, ...]) -> tuple[Directive, ...]:
        found: list[Directive] = []
        for each in directives:
            if each.name == "include" and each.arguments:
                # What is relative begins where the main file is.
                pattern = prefix / each.arguments[0]
                for name in names:
                    if matches(name, pattern):
                        found += _read(name, prefix, names, files, (*above, path))
            else:
                found.append(replace(each, children=expand(each.children)))
        return tuple(found)

    return expand(read_directives(files[path].decode(ENCODING), path))

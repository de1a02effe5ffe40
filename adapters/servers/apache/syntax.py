"""Read an installed Apache's configuration as the program reads it: files, sections, conditions, variables.

What is done here server/config.c and server/util.c do: lines are joined at a backslash, names are the same
in upper and lower case, the last of several equal directives counts. <IfModule>, <IfDefine> and <IfVersion>
are decided; what stands in any other section is given with that section's name.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tuner.errors import UsageError
from tuner.kit.config_files import inside, matching
from tuner.ports import Files

_WORD = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|(\S+))""")
_NAME = re.compile(r"(\S+)\s*(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VERSION = re.compile(r"(!?)(<=|>=|==|=|<|>|~)?\s*(.+)")
# Modules whose source file is not called mod_NAME.c: STANDARD20_MODULE_STUFF takes the file's own name.
_SOURCE_FILES = {"core.c": "core", "http_core.c": "http", "event.c": "mpm_event", "worker.c": "mpm_worker",
                 "prefork.c": "mpm_prefork"}  # fmt: skip
_COMPARED: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "": operator.eq, "=": operator.eq, "==": operator.eq, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """One line that counts: its conditions hold."""

    name: str
    """In lower case."""
    words: tuple[str, ...]
    """Arguments without their quotes, variables replaced."""
    written: str
    """The name as it stands there."""
    where: str
    """File and line, for messages."""
    sections: tuple[str, ...]
    """Names of the sections around it, in lower case; none for the server itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files of a configuration, and what its conditions ask for."""

    files: Files
    main: PurePosixPath
    modules: frozenset[str]
    version: tuple[int, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment that the server is started with."""
    defined: frozenset[str] = frozenset()
    """Names given with -D."""


def read_directives(tree: Tree) -> Iterator[Directive]:
    """Yield what counts, in the order in which the program comes across it."""
    yield from _Reader(tree).read(tree.main, (), ())


def module_name(word: str) -> str:
    """Give one name to a module: `status` for status_module and for mod_status.c."""
    source = word.removeprefix("mod_").removesuffix(".c")
    return _SOURCE_FILES.get(word, word.removesuffix("_module") if word.endswith("_module") else source)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, joined where one ends with a backslash."""
    joined, first = "", 1
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        yield first, (joined + line).strip()
        joined, first = "", number + 1
    if joined:
        yield first, joined.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A section that is open: a condition that holds or not, or a container with a name."""

    name: str
    holds: bool = True
    container: str = ""


class _Reader:
    """Goes through the files; Define, UnDefine and ServerRoot change what comes after them."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._root = tree.main.parent
        self._defined = set(tree.defined)
        self._variables = dict(tree.variables)

    def read(
        self, path: PurePosixPath, around: tuple[str, ...], within: tuple[PurePosixPath, ...]
    ) -> Iterator[Directive]:
        """Read one file and what it includes.

        Args:
            path: the file.
            around: sections that are open where it is included.
            within: the files that include it.
        """
        opened: list[_Section] = []
        for number, line in logical_lines(self._tree.files[path].decode(errors="replace")):
            found = _NAME.match(line)
            if found is None or line.startswith("#"):
                continue
            written, rest = found.groups()
            is_read = all(section.holds for section in opened)
            if written.startswith("</"):
                _close(opened, written[2:].rstrip(">").lower())
            elif written.startswith("<"):
                opened.append(self._open(written[1:].rstrip(">").lower(), rest, is_read=is_read))
            elif is_read:
                directive = Directive(
                    name=written.lower(),
                    words=self._words(rest),
                    written=written,
                    where=f"{path}:{number}",
                    sections=(*around, *(section.container for section in opened if section.container)),
                )
                yield from self._follow(directive, (*within, path))

    def _follow(self, directive: Directive, within: tuple[PurePosixPath, ...]) -> Iterator[Directive]:
        """Do what a directive does to the reading itself, or yield it."""
        words = directive.words
        match directive.name:
            case "include" | "includeoptional" if words:
                for path in self._included(words[0]):
                    if path not in within:
                        yield from self.read(path, directive.sections, within)
            case "define" if words:
                self._defined.add(words[0])
                self._variables[words[0]] = words[1] if len(words) > 1 else ""
            case "undefine" if words:
                self._defined.discard(words[0])
                self._variables.pop(words[0], None)
            case "serverroot" if words:
                self._root = PurePosixPath(words[0])
            case _:
                yield directive

    def _included(self, pattern: str) -> list[PurePosixPath]:
        """Find the files that a pattern means, in the order of their names; of a directory all."""
        meant = self._root / pattern
        return matching(self._tree.files, meant) or inside(self._tree.files, meant)

    def _open(self, name: str, rest: str, *, is_read: bool) -> _Section:
        condition = self._replace(rest.rstrip().removesuffix(">").strip().strip("\"'"))
        if not is_read:
            return _Section(name=name, holds=False)
        match name:
            case "ifmodule":
                wanted = module_name(condition.removeprefix("!"))
                return _Section(name=name, holds=(wanted in self._tree.modules) != condition.startswith("!"))
            case "ifdefine":
                is_defined = condition.removeprefix("!") in self._defined
                return _Section(name=name, holds=is_defined != condition.startswith("!"))
            case "ifversion":
                return _Section(name=name, holds=_is_version(condition, self._tree.version))
            case _:
                return _Section(name=name, container=name)

    def _words(self, text: str) -> tuple[str, ...]:
        found = _WORD.findall(self._replace(text))
        return tuple(re.sub(r"\\(.)", r"\1", double or single) or bare for double, single, bare in found)

    def _replace(self, text: str) -> str:
        """Put in variables; one that is not defined stays as it is written (ap_resolve_env)."""
        return _VARIABLE.sub(lambda found: self._variables.get(found[1], found[0]), text)


def _close(opened: list[_Section], name: str) -> None:
    if opened and opened[-1].name == name:
        opened.pop()


def _is_version(condition: str, version: tuple[int, ...]) -> bool:
    """Decide an <IfVersion> (mod_version.c): numbers are compared part by part, `~` and /…/ as texts."""
    found = _VERSION.fullmatch(condition)
    if found is None:
        return False
    negation, comparison, wanted = found[1], found[2] or "", found[3].strip()
    if comparison == "~" or wanted.startswith("/"):
        holds = re.search(wanted.strip("/"), ".".join(map(str, version))) is not None
    else:
        numbers = tuple(int(part) for part in re.findall(r"\d+", wanted))
        holds = _COMPARED[comparison](_three(version), _three(numbers))
    return holds != bool(negation)


def _three(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:3]


def quote(path: PurePosixPath) -> str:
    """Refuse a path that Apache would read as syntax between double quotes."""
    if bad := [character for character in str(path) if character in '"\\\n$%{}']:
        raise UsageError(f"apache: the path {str(path)!r} contains {bad[0]!r}. Use a folder without it.")
    return str(path)

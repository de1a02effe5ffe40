"""Read an installed Apache's configuration as the program reads it: files, sections, conditions, variables.

What is done here server/config.c and server/util.c do: lines are joined at a backslash, names are the same
in upper and lower case, the last of several equal directives counts. Conditions that Apache decides while it
reads are decided here, and macros expanded; what stands in any other section is given with its name.
"""

import operator
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from tuner.errors import UsageError
from tuner.kit.config_files import inside, matching
from tuner.ports import Files

_WORD = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|(\S+))""")
_NAME = re.compile(r"(\S+)\s*(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_VERSION = re.compile(r"(<=|>=|==|=|<|>|~)?\s*(.+)")
_LOADED = re.compile(rb"""^\s*LoadModule\s+["']?([^\s"']+)""", re.IGNORECASE | re.MULTILINE)
# Modules whose source file is not called mod_NAME.c: STANDARD20_MODULE_STUFF takes the file's own name.
_SOURCE_FILES = {"core": "core.c", "http": "http_core.c", "mpm_event": "event.c", "mpm_worker": "worker.c",
                 "mpm_prefork": "prefork.c", "mpm_itk": "mpm_itk.c", "ldap": "util_ldap.c"}  # fmt: skip
_COMPARED: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "": operator.eq, "=": operator.eq, "==": operator.eq, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Section(NamedTuple):
    """A section that holds for a part of the server."""

    name: str
    """In lower case."""
    argument: str
    where: str


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
    sections: tuple[Section, ...]
    """The sections around it; none for the server itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files of a configuration, and what its conditions ask for."""

    files: Files
    main: PurePosixPath
    modules: frozenset[str]
    """Those that are loaded in the end, as `module_name` gives them."""
    version: tuple[int, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment that the server is started with."""
    defined: frozenset[str] = frozenset()
    """Names given with -D."""
    answers: Mapping[str, bool] = field(default_factory=dict)
    """What the host said of conditions that the files alone do not decide, as `find_questions` asks them."""


def read_directives(tree: Tree) -> Iterator[Directive]:
    """Yield what counts, in the order in which the program comes across it."""
    yield from _Reader(tree).read(tree.main, (), ())


def find_questions(tree: Tree) -> frozenset[str]:
    """Return the conditions that only the host decides and that have no answer yet.

    `iffile PATH`: is it there; `ifmodule FILE.c`: has a module this source file; `ifdirective NAME`: is it
    known, sections with their `<`.
    """
    reader = _Reader(tree)
    for _ in reader.read(tree.main, (), ()):
        pass
    return frozenset(reader.questions)


def module_name(identifier: str) -> str:
    """Return the short name of a module: `status` for status_module."""
    return identifier.removesuffix("_module")


def _names_of(module: str) -> tuple[str, str]:
    """Return both names by which a condition finds a module: its identifier and its source file."""
    # mod_shib is an identifier without the usual end.
    identifier = module if module.startswith("mod_") else f"{module}_module"
    return identifier, _SOURCE_FILES.get(module, f"mod_{module}.c")


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
class _Open:
    """A section that is open: a condition that holds or not, or a part of the server."""

    name: str
    holds: bool = True
    part: Section | None = None


class _Macro(NamedTuple):
    """What <Macro> defines: parameters, and the lines of its body with their places."""

    parameters: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]

    def expand(self, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the body with arguments for parameters, the longest first (next_substitution)."""
        given = dict(zip(self.parameters, arguments, strict=False))
        names = "|".join(map(re.escape, sorted(given, key=len, reverse=True)))
        for where, line in self.lines:
            yield where, re.sub(names, lambda found: given[found[0]], line) if names else line


class _Reader:
    """Goes through the files; LoadModule, Define, UnDefine and ServerRoot change what comes after them."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._root = tree.main.parent
        self._defined = set(tree.defined)
        self._variables = ChainMap[str, str]({}, dict(tree.variables))
        self._macros: dict[str, _Macro] = {}
        loaded = (name for text in tree.files.values() for name in _LOADED.findall(text))
        self._modules = set(tree.modules - {module_name(name.decode(errors="replace")) for name in loaded})
        self.questions: set[str] = set()

    def read(
        self, path: PurePosixPath, around: tuple[Section, ...], within: tuple[str, ...]
    ) -> Iterator[Directive]:
        """Read one file and what it includes.

        Args:
            path: the file.
            around: sections that are open where it is included.
            within: the files and macros that it is read in.
        """
        text = self._tree.files[path].decode(errors="replace")
        lines = ((f"{path}:{number}", line) for number, line in logical_lines(text))
        yield from self._read_lines(lines, around, (*within, str(path)))

    def _read_lines(
        self, lines: Iterator[tuple[str, str]], around: tuple[Section, ...], within: tuple[str, ...]
    ) -> Iterator[Directive]:
        opened: list[_Open] = []
        for where, line in lines:
            found = _NAME.match(line)
            if found is None or line.startswith("#"):
                continue
            written, rest = found.groups()
            is_read = all(section.holds for section in opened)
            if written.startswith("</"):
                _close(opened, written[2:].rstrip(">").lower())
            elif written.lower() == "<macro" and is_read:
                self._define_macro(rest, lines)
            elif written.startswith("<"):
                opened.append(self._open(written[1:].rstrip(">").lower(), rest, where, is_read=is_read))
            elif is_read:
                directive = Directive(
                    name=written.lower(),
                    words=self._words(rest),
                    written=written,
                    where=where,
                    sections=(*around, *(section.part for section in opened if section.part)),
                )
                yield from self._follow(directive, within)

    def _follow(self, directive: Directive, within: tuple[str, ...]) -> Iterator[Directive]:
        """Read what a directive puts in its place, or yield it."""
        words = directive.words
        match directive.name:
            case "include" | "includeoptional" if words:
                for path in self._included(words[0]):
                    if str(path) not in within:
                        yield from self.read(path, directive.sections, within)
            case "use" if words and (name := words[0].lower()) in self._macros and name not in within:
                lines = self._macros[name].expand(words[1:])
                yield from self._read_lines(lines, directive.sections, (*within, name))
            case _:
                self._note(directive.name, *words)
                yield directive

    def _note(self, name: str, word: str = "", *more: str) -> None:
        """Take what changes how later lines are read."""
        match name:
            case "define":
                self._defined.add(word)
                if more:
                    self._variables[word] = more[0]
            case "undefine":
                self._defined.discard(word)
                self._variables.pop(word, None)
            case "undefmacro":
                self._macros.pop(word.lower(), None)
            case "serverroot":
                self._root = PurePosixPath(word)
            case "loadmodule":
                self._modules.add(module_name(word))

    def _included(self, pattern: str) -> list[PurePosixPath]:
        """Find the files that a pattern means, in the order of their names; of a directory all."""
        meant = self._root / pattern
        return matching(self._tree.files, meant) or inside(self._tree.files, meant)

    def _define_macro(self, rest: str, lines: Iterator[tuple[str, str]]) -> None:
        """Take the body of a macro out of the lines; it is read where it is used."""
        name, *parameters = self._words(rest.rpartition(">")[0] or rest) or ("",)
        body: list[tuple[str, str]] = []
        depth = 1
        for where, line in lines:
            first = next(iter(line.split()), "").rstrip(">").lower()
            depth += (first == "<macro") - (first == "</macro")
            if not depth:
                break
            body.append((where, line))
        self._macros[name.lower()] = _Macro(tuple(parameters), tuple(body))

    def _open(self, name: str, rest: str, where: str, *, is_read: bool) -> _Open:
        if not is_read:
            return _Open(name=name, holds=False)
        condition = self._replace(rest.rpartition(">")[0] or rest).strip()
        if (decide := self._conditions().get(name)) is None:
            return _Open(name=name, part=Section(name, condition, where))
        is_negated = condition.startswith("!")
        return _Open(name=name, holds=decide(condition.removeprefix("!").strip()) != is_negated)

    def _conditions(self) -> Mapping[str, Callable[[str], bool]]:
        return {
            "ifmodule": self._has_module,
            "ifdefine": lambda text: self._word(text) in self._defined,
            "ifversion": lambda text: _is_version(text.strip("\"'"), self._tree.version),
            "iffile": lambda text: self._ask(f"iffile {self._root / self._word(text)}"),
            "ifdirective": lambda text: self._ask(f"ifdirective {self._word(text).lower()}"),
            "ifsection": lambda text: self._ask(f"ifdirective <{self._word(text).lower()}"),
        }

    def _has_module(self, text: str) -> bool:
        name = self._word(text)
        known = {each for module in self._tree.modules for each in _names_of(module)}
        if name.endswith(".c") and name not in known:
            return self._ask(f"ifmodule {name}")
        return any(name in _names_of(module) for module in self._modules)

    def _ask(self, question: str) -> bool:
        if question not in self._tree.answers:
            self.questions.add(question)
        return self._tree.answers.get(question, False)

    def _word(self, text: str) -> str:
        """Return the first word of a condition, without quotes."""
        return next(iter(self._words(text)), "")

    def _words(self, text: str) -> tuple[str, ...]:
        found = _WORD.findall(self._replace(text))
        return tuple(re.sub(r"\\(.)", r"\1", double or single) or bare for double, single, bare in found)

    def _replace(self, text: str) -> str:
        """Put in variables; one that is not defined stays as it is written (ap_resolve_env)."""
        return _VARIABLE.sub(lambda found: self._variables.get(found[1], found[0]), text)


def _close(opened: list[_Open], name: str) -> None:
    if opened and opened[-1].name == name:
        opened.pop()


def _is_version(condition: str, version: tuple[int, ...]) -> bool:
    """Decide an <IfVersion> (mod_version.c): numbers are compared part by part, `~` and /…/ as texts."""
    found = _VERSION.fullmatch(condition)
    if found is None:
        return False
    comparison, wanted = found[1] or "", found[2].strip()
    if comparison == "~" or wanted.startswith("/"):
        return re.search(wanted.strip("/"), ".".join(map(str, version))) is not None
    numbers = tuple(int(part) for part in re.findall(r"\d+", wanted))
    return _COMPARED[comparison](_three(version), _three(numbers))


def _three(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0)[:3]


def quote(path: PurePosixPath) -> str:
    """Refuse a path that Apache would read as syntax between double quotes."""
    if bad := [character for character in str(path) if character in '"\\\n$%{}']:
        raise UsageError(
            f"apache: the path {str(path)!r} contains {bad[0]!r}. Use a folder without this character."
        )
    return str(path)

"""Find an installed Apache, whoever built it."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import PurePosixPath

from tuner.adapters.servers.apache.builds import BUILDS, CONTROLS, SYSCONFIG, ApacheBuild, find_build
from tuner.adapters.servers.apache.drop_in import find_place
from tuner.adapters.servers.apache.mpm import MPMS, Mpm, name_forbidden
from tuner.adapters.servers.apache.passing import find_programs
from tuner.adapters.servers.apache.settings import find_withheld, in_force, read_settings
from tuner.adapters.servers.apache.syntax import (
    Directive,
    Section,
    Tree,
    find_questions,
    module_name,
    read_directives,
)
from tuner.errors import TargetError
from tuner.kit import programs
from tuner.kit.services import describe_service, name_service, probe_service
from tuner.kit.sites import write_site
from tuner.ports import Argv, Command, Completed, Facts, Files, Host, Installation, SentRequest

_PORT = re.compile(r":(\d+)$")
PROGRAMS = tuple(
    dict.fromkeys(path for each in BUILDS for path in ((each.control,) if each.control else each.programs))
)
ENVVARS = "envvars"
DUMP_TIMEOUT_S = 30.0
_DUMP: Argv = ("-t", "-D", "DUMP_RUN_CFG", "-D", "DUMP_MODULES", "-D", "DUMP_INCLUDES")
_INCLUDED = re.compile(r"^\s*\((?:\*|\d+)\) (.+)$", re.MULTILINE)
_MODULE = re.compile(r"^ (\S+) \((?:static|shared)\)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^(<?\w+) \((\S+)\)$", re.MULTILINE)
_WARNING = re.compile(r"^(?:\[.*?\] )*(AH\d{5}: WARNING: .*)$", re.MULTILINE)
_SYNTAX_ERROR = re.compile(r"^.*(Syntax error on line \d+ of .*(?:(?<=:)\n.*)?)", re.MULTILINE)
_HARMLESS = re.compile(r"AH00558")
_PID_FILE = re.compile(r'^PidFile: "(.*)"', re.MULTILINE)
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$", re.MULTILINE)
_SHELL_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PORTS_FOR_TLS = frozenset({443, 8443})


def list_sites(directives: Sequence[Directive], port: int | None) -> tuple[str, ...]:
    """Return the URL of each virtual host by its ServerName, if that is a plain name.

    Args:
        directives: of the whole server.
        port: that of a virtual host for any port.
    """
    names: dict[Section, str] = {}
    with_tls: set[Section] = set()
    for each in directives:
        host = next((part for part in each.sections if part.name == "virtualhost"), None)
        if host is None or not each.words:
            continue
        if each.name == "servername":
            names[host] = each.words[0].rpartition("://")[2].partition(":")[0]
        elif each.name == "sslengine" and each.words[0].lower() != "off":
            with_tls.add(host)
    found: dict[str, None] = {}
    for host, name in names.items():
        for address in host.argument.split():
            given = _PORT.search(address)
            own = int(given[1]) if given else port
            if own is not None:
                found |= dict.fromkeys(write_site("https" if host in with_tls else "http", name, own))
    return tuple(found)


def find_apache(host: Host, package: str, mpm: str, *, named: str = "") -> Installation:
    """Find the service, its files and what is active; of the program that the study names, if it names one.

    Raises TargetError when it cannot be tuned, or when another MPM than this one is loaded.
    """
    controls = {str(program): control for control, program in CONTROLS.items()}
    control, asked = programs.find_program(
        host, PROGRAMS, "-V", package=package, named=controls.get(named, named)
    )
    program = CONTROLS.get(control, PurePosixPath(control))
    options = _options(host.read(SYSCONFIG).content) if control not in CONTROLS else ()
    build, _ = find_build(host, programs.decode(asked))
    service = name_service(host, build.services)
    dump = Command(argv=(control, *options, *_DUMP), timeout_s=DUMP_TIMEOUT_S, as_root=True, may_fail=True)
    dumped, *probed = host.run_all((dump, *probe_service(service)))
    printed = programs.decode(dumped)
    included = [PurePosixPath(path) for path in _INCLUDED.findall(printed)]
    if dumped.returncode != 0 or not included:
        said = programs.quote_check(read_refusals(dumped), dumped)
        raise TargetError(f"{host.name}: `{control} -t` refuses the installed configuration: {said}")
    modules = frozenset(map(module_name, _MODULE.findall(printed)))
    _refuse_other_mpm(host, modules, build, MPMS[mpm])
    wanted = dict.fromkeys((*included, included[0].parent / ENVVARS, SYSCONFIG))
    look = host.look((*wanted, programs.ONLINE_CPUS))
    files = {path: content for path in wanted if (content := look.read(path).content) is not None}
    facts = Facts(
        version=read_version(asked, host), program=program, modules=modules, build=build,
        cores=programs.read_online_cpus(look),
    )  # fmt: skip
    tree = answer_questions(_make_tree(files, facts), host, (control, *options, "-L"))
    find_place(tree)
    directives = tuple(read_directives(tree))
    found, port = read_settings(directives, facts), _find_port(directives)
    return Installation(
        facts=replace(facts, current=in_force(found, facts), withheld=find_withheld(found)),
        files=files,
        layout=tree,
        service=describe_service(
            service,
            probed,
            check=(control, *options, "-t"),
            start=(control, *options, "-k", "start"),
            reload=(control, *options, "-k", "graceful"),
            title=program.name,
            pid_file=PurePosixPath(*_PID_FILE.findall(printed)[:1]),
        ),
        port=port,
        log=_find_log(printed),
        sites=list_sites(directives, port),
    )


def aim_installation(installation: Installation, requests: Sequence[SentRequest]) -> Installation:
    """Return the installation with the programs that answer these requests."""
    directives = tuple(read_directives(tree_of(installation)))
    found = [program for each in requests for program in find_programs(directives, each)]
    return replace(installation, passes_to=tuple(dict.fromkeys(found)))


def tree_of(installation: Installation) -> Tree:
    """Return what was read of an installation."""
    if not isinstance(installation.layout, Tree):
        raise TypeError(installation.layout)
    return installation.layout


def answer_questions(tree: Tree, host: Host, list_directives: Argv) -> Tree:
    """Let the host decide the conditions that it has to be asked for, until none is left.

    Those that hold may have others in them.
    """
    while questions := sorted(find_questions(tree)):
        listing = Command(argv=list_directives, timeout_s=DUMP_TIMEOUT_S, as_root=True, may_fail=True)
        paths = [each.partition(" ")[2] for each in questions if each.startswith("iffile ")]
        tests = (Command(argv=("test", "-e", path), as_root=True, may_fail=True) for path in paths)
        listed, *tested = host.run_all((listing, *tests))
        known = {f"iffile {path}" for path, done in zip(paths, tested, strict=True) if done.returncode == 0}
        for name, source in _DIRECTIVE.findall(programs.decode(listed)):
            known |= {f"ifdirective {name.lower()}", f"ifmodule {source}"}
        tree = replace(tree, answers={**tree.answers, **{each: each in known for each in questions}})
    return tree


def read_refusals(checked: Completed) -> tuple[str, ...]:
    """Return the warnings and errors of a test of the configuration, each with its file and line."""
    printed = programs.decode(checked)
    errors = (text.replace("\n", " ") for text in _SYNTAX_ERROR.findall(printed))
    found = (*_WARNING.findall(printed), *errors)
    return tuple(dict.fromkeys(text.strip() for text in found if not _HARMLESS.search(text)))


def _make_tree(files: Files, facts: Facts) -> Tree:
    """Put together what decides how the files are read; the first of them is the main one."""
    main = next(iter(files))
    variables = _read_assignments(files.get(main.parent / ENVVARS))
    arguments = (*_split(variables.get("APACHE_ARGUMENTS", "")), *_options(files.get(SYSCONFIG)))
    return Tree(
        files=files, main=main, modules=facts.modules, version=facts.version, variables=variables,
        defined=frozenset(_defined(arguments)),
    )  # fmt: skip


def read_version(printed: Completed, host: Host) -> tuple[int, ...]:
    """Read the version out of what `-v` or `-V` printed. Raises TargetError when there is none."""
    return programs.read_version(printed, "Server version: Apache/", host, package="Apache")


def _refuse_other_mpm(host: Host, modules: frozenset[str], build: ApacheBuild, wanted: Mpm) -> None:
    loaded = sorted(modules & {f"mpm_{name}" for name in MPMS})
    if loaded == [f"mpm_{wanted.name}"]:
        return
    remedy = f"Change the MPM ({_switch(build, wanted.name)})"
    if forbidden := name_forbidden(wanted.name, modules):
        remedy += f", replace what does not work with it ({', '.join(forbidden)}),"
    if there := [each.server for each in MPMS.values() if loaded == [f"mpm_{each.name}"]]:
        remedy = f"Tune the MPM that runs (`tuner init {there[0]}`). Or c{remedy[1:]}"
    raise TargetError(
        f"{host.name}: Apache runs with {' and '.join(loaded) or 'no MPM'}, and {wanted.server} is Apache "
        f"with mpm_{wanted.name}. {remedy} and start it again."
    )


def _switch(build: ApacheBuild, mpm: str) -> str:
    """Say how an administrator changes the MPM."""
    if build.mpm_file:
        return f"name mpm_{mpm}_module in {build.mpm_file}"
    others = " ".join(f"mpm_{other}" for other in MPMS if other != mpm)
    return f"a2dismod {others}; a2enmod mpm_{mpm}"


def _find_port(directives: Iterable[Directive]) -> int | None:
    """Take the first port on which it listens, one for HTTP if there is one."""
    listens = [each.words for each in directives if each.name == "listen" and each.words]
    ports = [(words[1:] == ("https",), int(words[0].rpartition(":")[2])) for words in listens]
    ports.sort(key=lambda each: each[0] or each[1] in _PORTS_FOR_TLS)
    return ports[0][1] if ports else None


def _find_log(printed: str) -> PurePosixPath | None:
    """Find the error log, unless it goes to a program or to syslog."""
    found = re.search(r'^Main ErrorLog: "(/.*)"', printed, re.MULTILINE)
    return PurePosixPath(found[1]) if found else None


def _read_assignments(content: bytes | None) -> dict[str, str]:
    """Read the variables that a shell file sets; what a shell would have to compute becomes empty."""
    variables: dict[str, str] = {}
    for name, value in _ASSIGNMENT.findall((content or b"").decode(errors="replace")):
        text = " ".join(_split(value))
        variables[name] = _SHELL_VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), text)
    return variables


def _options(sysconfig: bytes | None) -> Argv:
    return _split(_read_assignments(sysconfig).get("OPTIONS", ""))


def _split(text: str) -> Argv:
    try:
        return tuple(shlex.split(text, comments=True))
    except ValueError:  # quotes that do not match: no shell would read it either
        return ()


def _defined(arguments: Argv) -> Iterator[str]:
    """Find the names given with -D, as one word or two."""
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if word.startswith("-D"):
            yield word[2:] or following

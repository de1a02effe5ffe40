"""Writes a commented study file for a server that is installed here."""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tuner import plugins
from tuner.commands.candidates import choose_generator, find_page
from tuner.commands.logged_load import FOLDER, USUAL_CONNECTIONS, LoggedLoad
from tuner.commands.virtual_hosts import MANNER, OWN, ProposedLoad, find_page_at, propose_load
from tuner.deploy.discovery import LOCAL, address_of, find_installed, read_page
from tuner.errors import TargetError, UsageError
from tuner.hosts.url import parse_url
from tuner.kit.packages import say_install
from tuner.ports import FASTCGI, HTTP, WEBSOCKET, Facts, Host, PrivateServer, Server
from tuner.shell_words import quote_word, write_command
from tuner.space import describe_space, describe_spaces
from tuner.study.loads.builtin_loads import BUILTIN_LOADS, INDEX, PROGRAM, find_builtin_load
from tuner.study.named_studies import find_named
from tuner.study.settings import LoadSettings

SCHEMA = Path(__file__).parents[1] / "search_spaces" / "study.schema.json"
"""Of this very installation: an editor needs no network for it, and it changes when tuner does."""
MODELINE = f"# yaml-language-server: $schema={SCHEMA.as_uri()}\n"
"""By which editors find the schema of a file (github.com/redhat-developer/yaml-language-server)."""
INTRO = """\
# A study: what to tune, under which load, for how long. Check it with `tuner check {path}{trust}`,
# run it with `tuner run {path}`.{detected}
"""
HEAD = """\
study: {name}
servers: [{servers}]
{application}
# Search spaces: names (`tuner spaces`) or paths; later entries refine earlier ones.
#   - {{only: [a, b]}}             tune only these
#   - {{set: {{a: 1}}}}              keep a at 1
#   - {{allow: [semantic, risky]}}  also tune what changes behaviour or may hurt
space:
{spaces}

"""
PRIVATE = """\
# A private instance in a network namespace of its own; the installed service is not touched.
# To tune the installed service, here or on another host: {{host: "ssh://user@web1", mode: managed}}
target: {{host: local, mode: sandbox}}

load:
  generator: {generator}          # {generators}
  {asked}
  connections: {connections}
  keepalive: {keepalive}
  {tls}
  # protocol: h2           # HTTP/2 over TLS, or h2c for HTTP/2 in the clear; `check` says which generator can
  # streams: 10            # requests at once on each connection, over HTTP/2
  # accept_encoding: gzip  # clients accept compressed pages

content: {content}
"""
MANAGED = """\
# A run changes the installed service while it measures, and restores it. For another host:
# {{host: "ssh://user@web1", mode: managed}}. `tuner check {path} --plan` shows what a run would change.
target: {{host: {target}, mode: managed}}

load:
  generator: {generator}          # {generators}
  {asked}
  connections: {connections}
  keepalive: {keepalive}
"""
TAIL = """\
{checks}
{goal}
budget: {{preset: standard}}   # quick (5 minutes), standard (about 75), thorough
storage: sqlite           # results are in {folder}/, next to this file
seed: 1

# optimizer: noisy-gp     # or tpe, gp, random, qmc, cmaes, or an Optuna sampler as module:Class
# line_price: 0.01        # gain that keeps a setting in the winner: 1 %, or a tenth of the whole gain
# warm_start: [old.yaml]  # earlier studies of the same server, whose best settings are tried first
"""

FASTEST = """\
# For two objectives, write: [maximize goodput_rps, minimize latency_p99_ms].
# With `load: rate`, the objective is: minimize latency_p99_ms.
# In both lines, you can write cpu_us_per_request or memory_mib instead of latency_p99_ms.
objective: maximize goodput_rps
constraints: [failure_rate <= default]   # no more failed requests than now; up to 0.1 % is always allowed
# Also possible: latency_p99_ms <= default (or <= 20 ms), for the slowest 1 % of responses.
"""
RIGHT_SIZE = """\
# The right size: least memory of the server's processes (memory_mib) at the rate above.
objective: minimize memory_mib
# Your SLO at this rate. With `unlike default`, the current configuration may break the SLO.
constraints: [failure_rate <= 0.1 % unlike default, latency_p99_ms <= 500 ms unlike default]
"""

TLS_OFFERED = "# tls: true              # HTTP over TLS, with a certificate that tuner makes for each trial"
OWN_CONTENT = "builtin          # or the path of a document root, in which `load: path:` is a page"

NO_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
"""Words that are no text in YAML 1.1 (yaml.org/type)."""


class TuningKind(StrEnum):
    """How a server can be tuned here."""

    PRIVATE = "as a private instance"
    INSTALLED = "as an installed service"
    SETTINGS = "while another one serves"
    BEHIND = "as a private instance behind another one"
    BEFORE = "as a private instance before another one"


ALONE = (TuningKind.PRIVATE, TuningKind.INSTALLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Behind:
    """What stands behind the server, and what is sent because of it."""

    servers: tuple[str, ...] = ()
    """Names of the servers behind it."""
    tuned: tuple[str, ...] = ()
    """Those of them that are tuned as well; others run as their packages ship them."""
    application: str = ""
    generator: str = ""
    """Empty where any will do."""
    page: str = INDEX
    keepalive: bool | None = None
    """None where the server decides."""


def write_study(  # noqa: PLR0913 - what `init` is told
    server: str, path: Path, *, url: str | None = None, content: str | None = None,
    backend: str | None = None, managed: bool = False, logged: LoggedLoad | None = None,
    target: str = LOCAL, is_right_size: bool = False, note: Callable[[str], None] = lambda _: None,
) -> Path:  # fmt: skip
    """Detect the server and write a study file for it.

    Args:
        server: the adapter's name.
        path: the file.
        url: a page that the server makes, for one that is tuned as an installed service.
        content: name of the built-in content to ask for; with `logged`, the document root.
        backend: the server, or the application, that it passes requests to.
        managed: whether the installed service is tuned where a private instance could be, too.
        logged: the load that access logs show.
        target: host of the installed service; on another one than this, no private instance is tuned.
        is_right_size: whether the study looks for the least memory at twice the peak of the logs.
        note: takes what a user has to know about the proposed page.

    Raises:
        UsageError: no such adapter, no space for it, the page or the content is not known, it cannot pass
            requests to that backend, or the file is there already.
        TargetError: the server is not installed or does not run, the page does not answer, nothing is
            installed that serves meanwhile, or the file cannot be written.
    """
    if not path.name:
        raise UsageError(f"{path}: this is a folder. Give the name of a file with -o.")
    here, adapter, is_here = plugins.make_host(LOCAL), plugins.make_server(server), target == LOCAL
    if skeleton := getattr(adapter, "skeleton", ""):
        options = (url, content, backend, logged, None if is_here else target)
        return _write_skeleton(skeleton, server, path, here, given=options)
    host = here if is_here else plugins.make_host(target)
    facts = adapter.detect(host)
    kind = TuningKind.INSTALLED if managed or not is_here else _kind_of(adapter, facts, url)
    for option, given in (("--backend", backend), ("--content", content)):
        if kind is TuningKind.INSTALLED and given is not None:
            raise UsageError(
                f"{option}: an installed {server} keeps its own configuration. Leave this option out."
            )
    if logged is not None:
        _refuse_logged(logged, server, kind, content=content, backend=backend)
    if kind is TuningKind.INSTALLED and not adapter.package:  # the kernel's, which any server's page shows
        url = url or _see_from_here(find_page(host) or "", target) or None
    load = None
    if kind is TuningKind.INSTALLED:
        load = _propose_load(host, adapter, url, target, note=lambda said: note(f"{path}: {said}"))
    elif url is not None:
        raise UsageError(
            f"--url: {server} is tuned as a private instance, which has its own page. Leave --url out, or "
            "tune the installed service with --managed."
        )
    serving, facts_serving = (server, facts) if kind in ALONE else _find_serving(host, server, facts)
    behind = _find_backend(host, server, facts, backend) if backend else _Behind()
    named = (server, *behind.servers)
    servers = (*named, serving) if kind is TuningKind.BEFORE else (serving, *named)
    front = facts if kind is TuningKind.BEFORE else facts_serving
    page = PROGRAM if kind is TuningKind.BEHIND else behind.page
    keepalive = _keeps_connections(behind, front)
    mix = () if load is None else load.requests
    if logged is not None:
        mix, keepalive = logged.mix, keepalive if logged.keepalive is None else logged.keepalive
    rate_rps = _find_rate(logged) if is_right_size else None
    shape = LoadSettings(keepalive=keepalive, requests=mix, rate_rps=rate_rps)
    generator = behind.generator or choose_generator(here, shape)
    version = ".".join(map(str, facts.version))
    # The right size may be a server with less capacity than there is now.
    spaces = [*map(space_for, (server, *behind.tuned)), *(["{allow: [capacity]}"] if is_right_size else [])]
    text = MODELINE + (INTRO + HEAD + (MANAGED if kind is TuningKind.INSTALLED else PRIVATE) + TAIL).format(
        path=quote_word(path),
        trust="",
        name=_name_after(path, server),
        server=server,
        servers=", ".join(dict.fromkeys(servers)),
        asked=_ask_for(server, page, content, load, logged, is_at_rate=is_right_size),
        goal=RIGHT_SIZE if is_right_size else FASTEST,
        target=LOCAL if is_here else json.dumps(target),
        application=f"backend: {behind.application}\n" if behind.application else "",
        spaces="\n".join(f"  - {each}" for each in spaces),
        detected=f" Found {'here' if is_here else f'on {target}'}: {server} {version}." if version else "",
        generator=generator,
        generators=", ".join(plugins.generators_of(plugins.load_generator_speaks(generator))),
        connections=USUAL_CONNECTIONS if logged is None else logged.say_connections(),
        keepalive=_say_keepalive(keepalive=keepalive, logged=logged),
        tls=TLS_OFFERED if logged is None else logged.say_tls() or TLS_OFFERED,
        content=OWN_CONTENT if logged is None else _say_content(path, content, logged),
        checks="" if logged is None else logged.check_loads_as_yaml(),
        folder=quote_word(path.with_suffix(".study").name),
    )
    return write_new(path, text)


def _write_skeleton(skeleton: str, server: str, path: Path, host: Host, *, given: Collection[object]) -> Path:
    """Write the example of a server that its study describes. Raises UsageError for other options."""
    if any(each is not None for each in given):
        raise UsageError(
            f"--url, --content, --backend, --from, --host: the study of {server} itself describes the "
            "server. Leave these options out."
        )
    generator = choose_generator(host, LoadSettings())
    text = MODELINE + (INTRO + skeleton + TAIL).format(
        path=quote_word(path), trust=" --trust", detected="", name=_name_after(path, server),
        generator=generator, generators=", ".join(plugins.generators_of(HTTP)),
        folder=quote_word(path.with_suffix(".study").name), checks="",
        goal=FASTEST,
    )  # fmt: skip
    return write_new(path, text)


def copy_study(name: str, path: Path) -> Path:
    """Write the file of a study that comes with tuner.

    Raises:
        UsageError: there is no such study, or the file is there already.
        TargetError: the file cannot be written.
    """
    return write_new(path, MODELINE + find_named(name).read_text(encoding="utf-8"))


def refuse_present(path: Path) -> None:
    """Raise UsageError for a study file that is there already."""
    if path.exists():
        raise _present(path)


def _present(path: Path) -> UsageError:
    return UsageError(f"{path}: this file already exists. Give another path with -o, or remove the file.")


def write_new(path: Path, text: str) -> Path:
    """Write a file that is not there yet. Raises UsageError when it is, TargetError when it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with _removed_unless_whole(path), os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise _present(path) from error
    except OSError as error:
        raise TargetError(
            f"{path}: cannot be written ({error.strerror}). Give another path with -o."
        ) from error
    return path


@contextmanager
def _removed_unless_whole(path: Path) -> Iterator[None]:
    """Remove a new file that could not be written: what is there already is not written again."""
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _keeps_connections(behind: _Behind, facts: Facts) -> bool:
    return not facts.has_thread_per_connection if behind.keepalive is None else behind.keepalive


def _say_keepalive(*, keepalive: bool, logged: LoggedLoad | None) -> str:
    said = "true" if keepalive else "false"
    return said if logged is None else f"{said}          # {logged.say_keepalive()}"


def _say_content(path: Path, content: str | None, logged: LoggedLoad) -> str:
    """Return the document root as it stands in the study, relative to which it is."""
    if logged.stand_ins:
        folder = path.with_suffix(".study").name
        return f'"{folder}/{FOLDER}"  # files as long as those of the log'
    return json.dumps(str(Path(content or ".").resolve()))


def _refuse_logged(
    logged: LoggedLoad, server: str, kind: TuningKind, *, content: str | None, backend: str | None
) -> None:
    """Raise UsageError where the load of a log has no site that answers it."""
    if kind is TuningKind.INSTALLED:
        if logged.stand_ins:
            raise UsageError(f"--stand-in: the installed {server} serves its own site. Leave --stand-in out.")
        return
    if backend is not None or kind is TuningKind.BEHIND:
        raise UsageError(
            f"--from: tuner does not know the program behind {backend or server}. Tune the installed "
            f"{server} with --managed, or write the requests into a study with that program."
        )
    if not logged.stand_ins and (content is None or not Path(content).is_dir()):
        raise UsageError(
            f"--from: a private {server} needs a site to serve. Give a document root with --content, or make "
            "files of the logged sizes with --stand-in, or tune the installed service with --managed."
        )
    if logged.stand_ins and content is not None:
        raise UsageError(
            "--stand-in, --content: the first option makes files, and the second names existing files. Leave "
            "one of them out."
        )


def _find_backend(host: Host, server: str, facts: Facts, backend: str) -> _Behind:
    """Return what a study says of a backend. Raises UsageError for one that the server cannot ask."""
    applications = plugins.adapter_names(plugins.AdapterKind.BACKEND)
    speaks = _find_protocol(host, backend, applications)
    if speaks not in facts.passes_to:
        how = f" ({speaks})" if speaks else ", which answers no requests"
        raise UsageError(f"--backend: {server} cannot pass requests to {backend}{how}. Leave --backend out.")
    if backend in applications:
        is_tunnel = speaks == WEBSOCKET
        generator = next(iter(plugins.generators_of(speaks))) if is_tunnel else ""
        keepalive = True if is_tunnel else None
        return _Behind(application=backend, generator=generator, page="/", keepalive=keepalive)
    if speaks == FASTCGI:  # its processes and the front's connections depend on each other
        return _Behind(servers=(backend,), tuned=(backend,), page=PROGRAM)
    return _Behind(servers=(backend,))


def _find_protocol(host: Host, backend: str, applications: Collection[str]) -> str:
    """Return the protocol in which a backend is asked; empty when it answers nothing."""
    if backend in applications:
        return plugins.make_backend(backend).speaks
    servers = plugins.adapter_names(plugins.AdapterKind.SERVER)
    if backend in servers:
        facts = plugins.make_private_server(backend).detect(host)
        return "" if facts.port is None else facts.speaks
    known = ", ".join((*servers, *applications))
    raise UsageError(f"--backend: no backend has the name {backend!r}. Use one of: {known}.")


def _kind_of(adapter: Server, facts: Facts, url: str | None = None) -> TuningKind:
    """Return how a server can be tuned, by what its adapter can do; with the URL of a page, where it runs."""
    if not isinstance(adapter, PrivateServer) or (facts.speaks != HTTP and url is not None):
        return TuningKind.INSTALLED
    if facts.port is None:
        return TuningKind.SETTINGS
    if facts.needs_backend:
        return TuningKind.BEFORE
    return TuningKind.PRIVATE if facts.speaks == HTTP else TuningKind.BEHIND


def _find_rate(logged: LoggedLoad | None) -> float:
    """Return twice the peak of a log. Raises UsageError where there is none."""
    if logged is None or logged.arrivals.peak_rps is None:
        raise UsageError(
            "--for capacity: the rate to size the server for comes from a log with times. Name this log with "
            "--from."
        )
    return 2 * logged.arrivals.peak_rps


def _ask_for(
    server: str, page: str, content: str | None, load: ProposedLoad | None, logged: LoggedLoad | None, *,
    is_at_rate: bool,
) -> str:  # fmt: skip
    """Return the lines of the study file that say what is asked for. Raises UsageError."""
    if logged is not None:  # of an installed server, at the address and with the name of its first site
        site = [] if load is None else [replace(load, requests=load.requests[:1]).as_yaml(server)]
        return "\n  ".join([*site, logged.mix_as_yaml(is_at_rate=is_at_rate)])
    if load is not None:
        return load.as_yaml(server)
    if content is None:
        return f"path: {page}          # or content: NAME (`tuner loads`)"
    found = find_builtin_load(content, "--content")
    if found.is_program != (page == PROGRAM):
        does = "runs no programs" if found.is_program else "serves no files"
        fitting = ", ".join(
            each.name for each in BUILTIN_LOADS.values() if each.is_program != found.is_program
        )
        raise UsageError(f"--content: {server} {does}, and {content} is {found.title}. Use {fitting}.")
    return f"content: {content}          # {found.title}; others: `tuner loads`"


def _propose_load(
    host: Host, adapter: Server, url: str | None, target: str, *, note: Callable[[str], None]
) -> ProposedLoad:
    """Return what to ask an installed server for. Raises what `tuner check` would raise."""
    (found,) = find_installed(host, {adapter.name: plugins.make_installed_server(adapter.name)})
    if url is None:
        proposed = propose_load(host, found.installation)
    else:
        parse_url(url, where="--url")
        proposed = find_page_at(host, url)
    if proposed is None:
        raise UsageError(
            f"{adapter.name}: tuner tunes this service behind a web server, and knows no page of the "
            "service. Name a page: "
            f"{write_command('tuner', 'init', adapter.name, '--url', 'http://127.0.0.1/index.php')}"
        )
    proposed = proposed if url else replace(proposed, url=_see_from_here(proposed.url, target))
    if not proposed.requests and (url is not None or not proposed.trouble):
        read_page(host, proposed.url, manner=replace(MANNER, verifies=proposed.verifies), servers=(adapter,))
    if proposed.notes:
        note(" ".join(proposed.notes))
    return proposed


def _see_from_here(url: str, target: str) -> str:
    """Return the URL of a page that a target has found at its own address, as it is loaded from here."""
    return url.replace(OWN, f"http://{address_of(target)}", 1)


def _find_serving(host: Host, tuned: str, asked: Facts) -> tuple[str, Facts]:
    """Return an installed server that answers requests meanwhile, before the tuned one or behind it."""
    packages: list[str] = []
    for name in plugins.adapter_names(plugins.AdapterKind.SERVER):
        adapter = plugins.make_server(name)
        packages += [adapter.package] if adapter.package and isinstance(adapter, PrivateServer) else []
        try:
            facts = adapter.detect(host)
        except (TargetError, UsageError):  # it is not installed, or known by a study alone
            continue
        speaker, passing = (facts, asked) if asked.needs_backend else (asked, facts)
        fits = asked.port is None or speaker.speaks in passing.passes_to
        if _kind_of(adapter, facts) is TuningKind.PRIVATE and fits:
            return name, facts
    raise TargetError(
        f"{tuned}: this target serves no requests itself, and no web server is installed. Install one of "
        f"{', '.join(packages)}, for example: {say_install(host, packages[0])}"
    )


def _has_private(space: str) -> bool:
    """Return whether a space has settings that a sandbox has of its own."""
    return any(row["scope"] != "host" for row in describe_space(space))


def _name_after(path: Path, server: str) -> str:
    """Return a study's name after its file, with the letters that a name may have.

    A word that YAML takes for something else than text comes after the server's name.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).lstrip("._-")[:64]
    if not name:
        return server
    return f"{server}-{name}"[:64] if name.lower() in NO_TEXT else name


def space_for(server: str) -> str:
    """Return the name of a server's first space of which a sandbox leaves something to tune, or of the first.

    Raises UsageError when there is none.
    """
    names = [row["name"] for row in describe_spaces() if row["server"] == server]
    if names:
        return next((name for name in names if _has_private(name)), names[0])
    raise UsageError(
        f"{server}: tuner has no search space for this server. Write a search space and name its path in the "
        "study file."
    )

"""Writes a commented study file for a server that is installed here."""

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tuner import plugins
from tuner.deploy.discovery import LOCAL, find_installed, read_page
from tuner.errors import TargetError, UsageError
from tuner.hosts.url import parse_url
from tuner.ports import FASTCGI, HTTP, WEBSOCKET, Facts, Host, PrivateServer, Server
from tuner.space import describe_spaces
from tuner.study.settings import DEFAULT_GENERATOR

HEAD = """\
# What to tune, under which load, for how long. Check it with `tuner check {path}`,
# run it with `tuner run {path}`. {detected}
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
# To tune what is installed, here or elsewhere: {{host: "ssh://user@web1", mode: managed}}
target: {{host: local, mode: sandbox}}

load:
  generator: {generator}          # {generators}
  path: {page}
  connections: 100
  keepalive: {keepalive}

content: builtin          # small pages, /index.html and /page.php; or the path of a document root
"""
MANAGED = """\
# The installed service is changed while a run measures, and is given back as it was; elsewhere:
# {{host: "ssh://user@web1", mode: managed}}. `tuner check {path} --plan` shows what a run would change.
target: {{host: local, mode: managed}}

load:
  generator: {generator}          # {generators}
  path: {url}             # a page that {server} makes
  connections: 100
  keepalive: {keepalive}
"""
TAIL = """\

# Or with what it costs: [maximize goodput_rps, minimize latency_p99_ms] (or cpu_us_per_request).
objective: maximize goodput_rps
constraints: [failure_rate <= default]   # no more of them than now; up to 0.1 % is always kept

budget: {{preset: standard}}   # quick (5 minutes), standard (about 75), thorough
storage: sqlite           # beside this file, in {folder}/
seed: 1

# optimizer: noisy-gp     # or tpe, gp, random, qmc, cmaes, or an Optuna sampler as module:Class
# line_price: 0.01        # what a changed setting must gain to be shipped: 1 %, or a tenth of the whole gain
# warm_start: [old.yaml]  # earlier studies of the same server, whose best settings are tried first
"""


NO_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
"""Words that are no text in YAML 1.1 (yaml.org/type)."""


class Kind(StrEnum):
    """How a server can be tuned here."""

    PRIVATE = "as a private instance"
    INSTALLED = "as an installed service"
    SETTINGS = "while another one serves"
    BEHIND = "as a private instance behind another one"


ALONE = (Kind.PRIVATE, Kind.INSTALLED)
PROGRAM_PAGE = "/page.php"
"""Of the built-in content: a page that a program makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What stands behind the server, and what is sent because of it."""

    servers: tuple[str, ...] = ()
    """Names of the servers behind it."""
    tuned: tuple[str, ...] = ()
    """Those of them that are tuned as well; others run as their packages ship them."""
    application: str = ""
    generator: str = DEFAULT_GENERATOR
    page: str = "/index.html"
    keepalive: bool | None = None
    """None where the server decides."""


def write_study(server: str, path: Path, *, url: str | None = None, backend: str | None = None) -> Path:
    """Detect the server and write a study file for it.

    Args:
        server: the adapter's name.
        path: the file.
        url: a page that the server makes, for one that is tuned as an installed service only.
        backend: the server, or the application, that it passes requests to.

    Raises:
        UsageError: no such adapter, no space for it, the page is not known, it cannot pass requests to that
            backend, or the file is there already.
        TargetError: the server is not installed or does not run, the page does not answer, nothing is
            installed that serves meanwhile, or the file cannot be written.
    """
    if not path.name:
        raise UsageError(f"{path}: this is a folder. Give the name of a file with -o.")
    host, adapter = plugins.make_host(LOCAL), plugins.make_server(server)
    facts = adapter.detect(host)
    kind = _kind_of(adapter, facts, url)
    if kind is Kind.INSTALLED:
        _refuse_what_a_check_would(host, adapter, url)
    elif url is not None:
        raise UsageError(
            f"--url: {server} is tuned as a private instance, which has its own page. Leave it out."
        )
    serving, facts_serving = (server, facts) if kind in ALONE else _find_serving(host, server, facts)
    asked = _find_backend(host, server, facts, backend) if backend else _Asked()
    named = (server, *asked.servers)
    spaces = [space_for(name) for name in (server, *asked.tuned)]
    version = ".".join(map(str, facts.version))
    text = (HEAD + (MANAGED if kind is Kind.INSTALLED else PRIVATE) + TAIL).format(
        path=path,
        name=_name_after(path, server),
        server=server,
        servers=", ".join(named if serving == server else (serving, *named)),
        application=f"backend: {asked.application}\n" if asked.application else "",
        page=PROGRAM_PAGE if kind is Kind.BEHIND else asked.page,
        url=json.dumps(url),
        spaces="\n".join(f"  - {space}" for space in spaces),
        detected=f"Found here: {server} {version}." if version else "",
        generator=asked.generator,
        generators=", ".join(plugins.generators_of(plugins.load_generator_speaks(asked.generator))),
        keepalive="true" if _keeps_connections(asked, facts_serving) else "false",
        folder=path.with_suffix(".study").name,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{path}: this file is there already. Give another with -o, or remove it."
        ) from error
    except OSError as error:
        raise TargetError(
            f"{path}: cannot be written ({error.strerror}). Give another path with -o."
        ) from error
    return path


def _keeps_connections(asked: _Asked, facts: Facts) -> bool:
    return not facts.has_thread_per_connection if asked.keepalive is None else asked.keepalive


def _find_backend(host: Host, server: str, facts: Facts, backend: str) -> _Asked:
    """Return what a study says of a backend. Raises UsageError for one that the server cannot ask."""
    applications = plugins.adapter_names(plugins.Kind.BACKEND)
    speaks = _find_protocol(host, backend, applications)
    if speaks not in facts.passes_to:
        how = f" ({speaks})" if speaks else ", which answers no requests"
        raise UsageError(f"--backend: {server} cannot pass requests to {backend}{how}. Leave it out.")
    if backend in applications:
        is_tunnel = speaks == WEBSOCKET
        generator = next(iter(plugins.generators_of(speaks))) if is_tunnel else DEFAULT_GENERATOR
        keepalive = True if is_tunnel else None
        return _Asked(application=backend, generator=generator, page="/", keepalive=keepalive)
    if speaks == FASTCGI:  # its processes and the front's connections depend on each other
        return _Asked(servers=(backend,), tuned=(backend,), page=PROGRAM_PAGE)
    return _Asked(servers=(backend,))


def _find_protocol(host: Host, backend: str, applications: Collection[str]) -> str:
    """Return the protocol in which a backend is asked; empty when it answers nothing."""
    if backend in applications:
        return plugins.make_backend(backend).speaks
    servers = plugins.adapter_names(plugins.Kind.SERVER)
    if backend in servers:
        facts = plugins.make_private_server(backend).detect(host)
        return "" if facts.port is None else facts.speaks
    known = ", ".join((*servers, *applications))
    raise UsageError(f"--backend: there is no {backend!r}. Use one of: {known}.")


def _kind_of(adapter: Server, facts: Facts, url: str | None = None) -> Kind:
    """Return how a server can be tuned, by what its adapter can do; with the URL of a page, where it runs."""
    if not isinstance(adapter, PrivateServer) or (facts.speaks != HTTP and url is not None):
        return Kind.INSTALLED
    if facts.port is None:
        return Kind.SETTINGS
    return Kind.PRIVATE if facts.speaks == HTTP else Kind.BEHIND


def _refuse_what_a_check_would(host: Host, adapter: Server, url: str | None) -> None:
    """Raise what `tuner check` would raise: no running service, no page of it."""
    find_installed(host, {adapter.name: plugins.make_installed_server(adapter.name)})
    if url is None:
        raise UsageError(
            f"{adapter.name}: it is tuned as the installed service behind a web server, and which page it "
            f"makes is not known. Name one: tuner init {adapter.name} --url http://127.0.0.1/index.php"
        )
    parse_url(url, where="--url")
    read_page(host, url, keepalive=True, servers=(adapter,))


def _find_serving(host: Host, tuned: str, asked: Facts) -> tuple[str, Facts]:
    """Return an installed server that answers requests meanwhile, of the tuned one where it can be asked."""
    packages: list[str] = []
    for name in plugins.adapter_names(plugins.Kind.SERVER):
        adapter = plugins.make_server(name)
        packages += [adapter.package] if adapter.package and isinstance(adapter, PrivateServer) else []
        try:
            facts = adapter.detect(host)
        except TargetError:  # it is not installed
            continue
        passes_on = asked.port is None or asked.speaks in facts.passes_to
        if _kind_of(adapter, facts) is Kind.PRIVATE and passes_on:
            return name, facts
    raise TargetError(
        f"{tuned}: it serves nothing itself, and no server is installed that could meanwhile. Install "
        f"one of {', '.join(packages)}, as with: apt-get install {packages[0]}"
    )


def _name_after(path: Path, server: str) -> str:
    """Return a study's name after its file, with the letters that a name may have.

    A word that YAML takes for something else than text comes after the server's name.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).lstrip("._-")[:64]
    if not name:
        return server
    return f"{server}-{name}"[:64] if name.lower() in NO_TEXT else name


def space_for(server: str) -> str:
    """Return the name of the first space of a server. Raises UsageError when there is none."""
    for row in describe_spaces():
        if row["server"] == server:
            return row["name"]
    raise UsageError(f"{server}: there is no space for it. Write one and name its path in the study file.")

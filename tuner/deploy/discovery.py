"""Finds the installed servers of a study on a host, where they answer, and with what page."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from tuner import plugins
from tuner.deploy.load_target import resolve
from tuner.deploy.manner import refuse_lost_manner
from tuner.deploy.readiness import (
    Answer,
    Manner,
    explain_wrong,
    is_right,
    read_answer,
    request,
    request_often,
    split_origin,
    waiting_request,
)
from tuner.deploy.systemd_limits import UNLIMITED, UnitLimits, ask_limits, read_limits
from tuner.errors import TargetError, UsageError
from tuner.hosts.file_cache import FileCache
from tuner.hosts.sudoers import RootCommandRecorder
from tuner.hosts.url import parse_url
from tuner.kit.programs import drop_lines, quote_check
from tuner.ports import (
    Argv,
    BackendServer,
    Command,
    Completed,
    Host,
    Installation,
    InstalledServer,
    PooledServer,
    RequestKind,
    SentRequest,
    Server,
    Service,
    SiteServer,
)
from tuner.restore.keeper import requests
from tuner.restore.recovery import describe_use
from tuner.study import Study

LOG_TAIL_BYTES = 2**16
QUOTED_LINES = 3


LOCAL = "local"
ANSWER_S = 5.0


def tail_command(log: PurePosixPath) -> Argv:
    """Return the command that prints the end of a log, which may be too long to be read whole."""
    return ("tail", f"--bytes={LOG_TAIL_BYTES}", "--", str(log))


def quote_words(sentences: Sequence[str], printed: bytes) -> str:
    """Return the sentences that explain, or else the last lines that were printed."""
    lines = sentences or [line for line in printed.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(line.strip() for line in lines[-QUOTED_LINES:]) or "the service printed nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredServer:
    """One installed server of a study, as it was found."""

    name: str
    adapter: InstalledServer
    installation: Installation
    known_refusals: frozenset[str] = frozenset()
    """What its own check says of the configuration as it was found, without numbers of lines: no trial is
    refused for that."""
    limits: UnitLimits = UNLIMITED
    """The limits of its systemd unit."""
    pid: int | None = None
    """Its first process as it was found; None for what needs no process."""

    def read_refusals(self, checked: Completed) -> tuple[str, ...]:
        """Return what its check says that it did not say of the configuration as it was found."""
        said = self.adapter.refusals(checked)
        return tuple(each for each in said if drop_lines(each) not in self.known_refusals)

    def quote_log(self, host: Host) -> str:
        """Return the lines of its log that explain a failure, or else the last ones."""
        if self.installation.log is None:
            return "it keeps no log."
        (tail,) = host.run_all([requests.log_tail(self.installation.log)])
        if tail.returncode != 0:
            return f"its log cannot be read: {quote_words((), tail.stderr)}"
        return quote_words(self.adapter.complaints(tail.stdout), tail.stdout)


def find_installed(host: Host, adapters: Mapping[str, InstalledServer]) -> tuple[DiscoveredServer, ...]:
    """Find every server of a study as an installed, running service.

    Raises TargetError when one is not installed, does not run, or its own configuration fails its check.
    """
    return tuple(_describe(host, name, each, each.find(host)) for name, each in adapters.items())


def find_services(host: Host, adapters: Iterable[InstalledServer]) -> tuple[Service, ...]:
    """Find the services of installed servers, whether they run or not.

    Raises TargetError when one is not installed, or what is installed cannot be read.
    """
    installations = [adapter.find(host) for adapter in adapters]
    return tuple(each.service for each in installations if each.service is not None)


def choose_url(settings: Study, servers: tuple[DiscoveredServer, ...]) -> str:
    """Return what the load requests: the study's own URL, or its path on the first server that speaks HTTP.

    Raises UsageError when no server of the study does.
    """
    path = settings.load.path
    if "://" in path:
        return path
    port = next((each.installation.port for each in servers if each.installation.port is not None), None)
    if port is None:
        names = ", ".join(each.name for each in servers)
        raise UsageError(
            f"{settings.path}: load.path: tuner knows no HTTP port of {names}, so the path {path!r} alone is "
            "not enough. Write the whole URL, such as http://web1:8080/index.html."
        )
    return f"http://{address_of(settings.target.host)}:{port}{path}"


def address_of(target: str) -> str:
    """Return the address of a target as it stands in the URL of a load."""
    address = "127.0.0.1" if target == LOCAL else urlsplit(target).hostname or ""
    return f"[{address}]" if ":" in address else address


def aim_servers(
    servers: Sequence[DiscoveredServer], requests: Sequence[SentRequest], host: Host
) -> tuple[DiscoveredServer, ...]:
    """Return the servers with the settings of those sites, paths and pools that answer the load."""
    aimed = tuple(
        replace(each, installation=each.adapter.aim(host, each.installation, requests))
        if isinstance(each.adapter, SiteServer)
        else each
        for each in servers
    )
    if not any(isinstance(each.adapter, PooledServer) for each in servers):
        return aimed
    fronts = [each.installation for each in aimed if isinstance(each.adapter, SiteServer)]
    passing = fronts or _find_fronts(host, requests)
    addresses = tuple(dict.fromkeys(address for each in passing for address in each.passes_to))
    return tuple(
        _describe(host, each.name, each.adapter, each.adapter.find_behind(host, addresses))
        if isinstance(each.adapter, PooledServer) and addresses
        else each
        for each in aimed
    )


def _find_fronts(host: Host, requests: Sequence[SentRequest]) -> Iterator[Installation]:
    """Yield the web servers that run on a host without being tuned, with what answers the load there.

    They are asked without root: nobody has allowed that for a server that is not tuned.
    """
    host = RootCommandRecorder(host)
    for name in plugins.adapter_names(plugins.AdapterKind.SERVER):
        with suppress(TargetError, UsageError):  # it is not installed, or not to be read
            adapter = plugins.make_server(name)
            if isinstance(adapter, SiteServer):
                found = adapter.find(host)
                if found.service and read_pid(host.run_all([first_process(found.service)])[0]):
                    yield adapter.aim(host, found, requests)


def leave_out_bounded(host: Host, servers: Sequence[DiscoveredServer]) -> tuple[DiscoveredServer, ...]:
    """Return the servers without those settings of which less is active than their files say.

    A file's value that the kernel never granted cannot be told from one that a trial did not get.
    """
    return tuple(_leave_out_bounded(host, each) for each in servers)


def _leave_out_bounded(host: Host, server: DiscoveredServer) -> DiscoveredServer:
    installation, service = server.installation, server.installation.service
    facts = installation.facts
    asked = {name: value for name, value in facts.current.items() if name in facts.bounded}
    if not asked or service is None:
        return server
    pid = read_pid(host.run_all([first_process(service)])[0]) or 0
    look = FileCache(host, trees=(pid,)).look()
    granted = server.adapter.in_force(host, look, asked, installation, pid)
    less = {name: value for name, value in granted.items() if value != asked[name]}
    reasons = {
        name: f"its file says {asked[name]}, but the kernel grants only {value}"
        for name, value in less.items()
    }
    facts = replace(facts, current={**facts.current, **less}, withheld={**facts.withheld, **reasons})
    return replace(server, installation=replace(installation, facts=facts))


def describe_requests(source: Host, text: str, kinds: Iterable[RequestKind]) -> tuple[SentRequest, ...]:
    """Return what reaches the servers: the requests of a mix, or one for the URL.

    Args:
        source: where the load comes from, which knows the address of the URL's host.
        text: the URL.
        kinds: the requests of the mix.
    """
    url = parse_url(text)
    addresses = (url.address,) if url.address else resolve(source, url.host)
    is_named = url.scheme == "https" and url.address is None
    sent = SentRequest(
        scheme=url.scheme, addresses=tuple(map(str, addresses)), port=url.port, host=url.host,
        server_name=url.host if is_named else "", path=url.rest,
    )  # fmt: skip
    mix = [
        replace(sent, path=kind.path, method=kind.method, host=_host_of(kind, sent.host)) for kind in kinds
    ]
    return tuple(mix) or (sent,)


def _host_of(kind: RequestKind, otherwise: str) -> str:
    """Return the host that a request names: that of its header, without the port, or else the URL's."""
    named = next((value for name, value in kind.headers.items() if name.lower() == "host"), otherwise)
    return named if named == otherwise else (urlsplit(f"//{named}").hostname or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingServices:
    """Asks installed services on their host as the load does."""

    host: Host
    url: str
    """Of the page that is waited for; every other path is at its origin."""
    manner: Manner
    servers: Sequence[Server] = ()

    def url_of(self, kind: RequestKind) -> str:
        return f"{split_origin(self.url)[0]}{kind.path}"

    def once(self, kind: RequestKind) -> Answer:
        """Ask for one request. Raises TargetError when a program of the servers failed."""
        url = self.url_of(kind)
        answer = request(self.host, url, kind=kind, manner=self.manner, timeout_s=ANSWER_S)
        _refuse_page_errors(self.host, url, answer.body, self.servers)
        return answer

    def often(self, kind: RequestKind, times: int, seconds: float) -> Sequence[Answer]:
        return request_often(
            self.host, self.url_of(kind), kind=kind, manner=self.manner, times=times, seconds=seconds
        )


def read_page(
    host: Host, url: str, *, manner: Manner, kind: RequestKind | None = None, servers: Iterable[Server] = ()
) -> Answer:
    """Request the page as the original configuration serves it.

    Raises TargetError when it answers otherwise than the study says, or shows that a program of the servers
    failed.
    """
    kind = kind or RequestKind(path=split_origin(url)[1])
    ask = waiting_request(url, manner=manner, timeout_s=ANSWER_S, kind=kind)
    (completed,) = host.run_all([ask])
    answer = read_answer(completed, host, protocol=manner.protocol)
    if not is_right(kind, answer):
        raise TargetError(f"{host.name}: tuner stopped before any change: {explain_wrong(kind, answer, url)}")
    _refuse_page_errors(host, url, answer.body, servers)
    return answer


def _refuse_page_errors(host: Host, url: str, page: bytes, servers: Iterable[Server]) -> None:
    for server in servers:
        errors = server.page_errors(host, page, b"") if isinstance(server, BackendServer) else ()
        if errors:
            raise TargetError(
                f"{host.name}: {url} answers 200, but the program behind it failed: "
                f"{quote_words(errors, b'')}. Correct the page first."
            )


def first_process(service: Service) -> Command:
    """Return the command that prints the id of a service's first process, or nothing."""
    if service.is_systemd:
        return Command(argv=("systemctl", "show", "--property=MainPID", "--value", "--", service.name))
    return Command(argv=("cat", "--", str(service.pid_file)), may_fail=True, as_root=True)


def read_pid(completed: Completed) -> int | None:
    """Parse what `first_process` printed; None when there is no process."""
    text = completed.stdout.decode(errors="replace").strip()
    # Nothing but what a kernel would say: int() refuses other digits, and thousands of them.
    is_id = re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) is not None
    return int(text) if completed.returncode == 0 and is_id and int(text) > 0 else None


def _describe_stopped(host: Host, service: Service) -> str:
    """Say that a service does not run, or that its pid file does not say as which process."""
    if used := " ".join(describe_use(host)):
        return f"{service.name} does not run. {used} Wait until that tuner has ended."
    # Only a title that no other command line begins with; in brackets it does not find who looks for it.
    has_title = ": " in service.title and not service.is_systemd
    look = ("pgrep", "-o", "-f", "--", f"^[{service.title[:1]}]{service.title[1:]}")
    pid = read_pid(host.run(look, timeout_s=ANSWER_S)) if has_title else None
    start = " ".join(service.start)
    if pid is None:
        return f"{service.name} does not run. Start the service first: {start}"
    return (
        f"{service.name} runs as process {pid}, but {service.pid_file} names no such process. End this "
        f"process and start the service: {start}"
    )


def _describe(
    host: Host, name: str, adapter: InstalledServer, installation: Installation
) -> DiscoveredServer:
    service = installation.service
    if service is None:
        return DiscoveredServer(name=name, adapter=adapter, installation=installation)
    if service.stays:
        raise TargetError(
            f"{host.name}: {service.name} cannot be restarted, because its start command would not return "
            f"({service.stays}). Run {service.name} as a daemon or under systemd, or tune a private instance "
            "(target: {mode: sandbox})."
        )
    pid = read_pid(host.run_all([first_process(service)])[0])
    if pid is None:
        raise TargetError(f"{host.name}: {_describe_stopped(host, service)}")
    if not service.is_systemd:
        refuse_lost_manner(host, service)
    refusals: tuple[str, ...] = ()
    if service.check is not None:
        checked = host.run(service.check, timeout_s=ANSWER_S * 4, as_root=True)
        refusals = adapter.refusals(checked)
        if checked.returncode != 0:
            raise TargetError(
                f"{host.name}: `{' '.join(service.check)}` refuses the installed configuration: "
                f"{quote_check(refusals, checked)}. Correct the configuration first."
            )
    limits = read_limits(host.run_all([ask_limits(service)])[0]) if service.is_systemd else UNLIMITED
    return DiscoveredServer(
        name=name,
        adapter=adapter,
        installation=installation,
        known_refusals=frozenset(map(drop_lines, refusals)),
        limits=limits,
        pid=pid,
    )

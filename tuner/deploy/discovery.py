"""Finds what is installed on a host: the servers of a study, where they answer, and with what."""

from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

from tuner.deploy.managed_server import Installed, ManagedServer, first_process, read_pid
from tuner.deploy.readiness import OK, Answer, Page, read_answer, waiting_request
from tuner.deploy.systemd_limits import UNLIMITED, ask_limits, read_limits
from tuner.errors import TargetError, UsageError
from tuner.ports import Host, InstalledServer, Server
from tuner.restore.recovery import describe_use
from tuner.study import Study

LOCAL = "local"
ASKED_TWICE = 2
ANSWER_S = 5.0


def find_installed(host: Host, servers: Mapping[str, Server]) -> tuple[Installed, ...]:
    """Find every server of a study as an installed, running service.

    Raises:
        UsageError: an adapter knows private instances only.
        TargetError: a server is not installed, does not run, or its own configuration fails its check.
    """
    return tuple(_find(host, name, server) for name, server in servers.items())


def choose_url(settings: Study, parts: tuple[Installed, ...]) -> str:
    """Say what the load requests: the study's own URL, or its path on the first server that speaks HTTP.

    Raises UsageError when no server of the study does.
    """
    path = settings.load.path
    if "://" in path:
        return path
    port = next((part.installation.port for part in parts if part.installation.port is not None), None)
    if port is None:
        names = ", ".join(part.name for part in parts)
        message = (
            f"{settings.path}: load.path: none of {names} is known to answer HTTP itself, so {path!r} is not "
            "enough. Write the whole URL, as http://web1:8080/index.html."
        )
        raise UsageError(message)
    address = "127.0.0.1" if settings.target.host == LOCAL else urlsplit(settings.target.host).hostname
    shown = f"[{address}]" if address and ":" in address else address
    return f"http://{shown}:{port}{path}"


def read_page(host: Host, url: str, *, keepalive: bool) -> Page:
    """Ask for the page as the original configuration gives it.

    Raises TargetError when it does not answer with 200.
    """
    ask = waiting_request(url, keepalive=keepalive, timeout_s=ANSWER_S)
    answers = [read_answer(completed) for completed in host.run_all([ask] * ASKED_TWICE)]
    if len(answers) < ASKED_TWICE:
        answers.append(Answer(status=0, body_bytes=0, response_bytes=0, said="it answered only once"))
    first, second = answers
    for answer in answers:
        if answer.status != OK:
            came = f"{answer.status}" if answer.status else f"no answer ({answer.said})"
            message = (
                f"{host.name}: {url} gives {came} before anything is changed, where 200 is needed. Correct "
                "load.path, or the server."
            )
            raise TargetError(message)
    is_same = first.body_bytes == second.body_bytes
    return Page(
        status=OK,
        body_bytes=first.body_bytes if is_same else None,
        response_bytes=first.response_bytes if first.response_bytes == second.response_bytes else None,
    )


def _find(host: Host, name: str, server: Server) -> Installed:
    if not isinstance(server, InstalledServer):
        message = f"servers: {name} is known as a private instance only. Write `mode: sandbox`."
        raise UsageError(message)
    managed = cast("ManagedServer", server)
    installation = managed.find(host)
    service = installation.service
    if service is None:
        return Installed(name=name, server=managed, installation=installation)
    pid = read_pid(host.run_all([first_process(service)])[0])
    if pid is None:
        used = " ".join(describe_use(host))
        remedy = f"{used} Wait for that to end." if used else f"Start it first: {' '.join(service.start)}"
        message = f"{host.name}: {service.name} does not run. {remedy}"
        raise TargetError(message)
    complained: tuple[str, ...] = ()
    if service.check is not None:
        checked = host.run(service.check, timeout_s=ANSWER_S * 4, as_root=True)
        complained = managed.refusals(checked)
        if checked.returncode != 0:
            message = (
                f"{host.name}: `{' '.join(service.check)}` refuses the configuration as it is installed: "
                f"{' / '.join(complained) or 'it says nothing'}. Correct it first."
            )
            raise TargetError(message)
    limits = read_limits(host.run_all([ask_limits(service)])[0]) if service.is_systemd else UNLIMITED
    return Installed(
        name=name,
        server=managed,
        installation=installation,
        complained=frozenset(complained),
        limits=limits,
    )

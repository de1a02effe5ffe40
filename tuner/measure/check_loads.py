"""Loads a deployed server as nothing was tuned: other connections, kept or not, slow clients, another mix."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tuner.deploy.deployment import Deployment
from tuner.deploy.sandbox import SandboxDeployment
from tuner.errors import NotReady, TargetError, UsageError
from tuner.hosts.connection_room import DEFAULT_PORTS
from tuner.measure.trial import Outcome
from tuner.measure.validity import RetryBudget
from tuner.measure.window import Load, example_workload, run_window
from tuner.ports import HTTP1, Failures, FileState, LoadShape, Process, RequestKind
from tuner.records import CheckLoad, Window
from tuner.study.loads.load_bounds import MOST_CONNECTIONS
from tuner.study.settings import NamedLoad

FACTOR = 4
"""A quarter of the study's connections, and four times as many."""
SLOW_CLIENTS = 60
WARM_UP_S = 0.5
"""The check loads come in the same order for both sides, so what a young server does meets both alike."""
READY_S = 4.0
POLL_S = 0.01
SPARE_S = 5.0
"""Slow clients go on for so long after their windows when nobody ends them: one may be measured again."""
SETTLING_WINDOWS = 4
"""Beside slow clients that have just come, at the most: Apache starts more processes once a second, twice as
many each time (server/mpm/worker/worker.c, perform_idle_server_maintenance)."""
SETTLED = 0.8
"""Of what the same server serves without slow clients; one that serves less may still be making room."""
RISING = 1.2
"""A server that serves no more than so many times what it served in the window before has made its room; one
that serves more may have made it in the middle of the window."""
AT_FIRST = " at first"
LEAST_FREE_PORTS = 2_000
TOOL = Path(__file__).with_name("slow_clients.py")
FIND_PYTHON = 'command -v "$1" || command -v python3'


def choose_check_loads(
    load: Load, mixes: Sequence[NamedLoad] = (), *, is_private: bool
) -> tuple[tuple[CheckLoad, ...], Mapping[str, str]]:
    """Return the check loads that this load generator can make, and those that it cannot, with the reason.

    Args:
        load: of the study.
        mixes: those that the study has for its robustness checks.
        is_private: whether the server is a private instance in a sandbox, which slow clients may hold up.
    """
    shape, check_loads, left_out = load.shape, [], {}
    mode = "Connection: close" if shape.keepalive else "keep-alive"
    fewer, more = max(1, shape.connections // FACTOR), shape.connections * FACTOR
    own = CheckLoad(name="", changes="", connections=shape.connections, keepalive=shape.keepalive)
    wanted = [
        replace(own, name=_count(fewer), changes="connections", connections=fewer),
        replace(own, name=_count(more), changes="connections", connections=more),
        replace(own, name=mode, changes="keepalive", keepalive=not own.keepalive),
        replace(own, name=f"{SLOW_CLIENTS} slow clients", changes="clients", slow_clients=SLOW_CLIENTS),
        *(
            replace(
                own, name=each.name, changes="requests", connections=each.load.connections,
                keepalive=each.load.keepalive,
            )
            for each in mixes
        ),
    ]  # fmt: skip
    requests = {each.name: each.load.requests for each in mixes}
    for each in wanted:
        reason = _why_not(load, each, requests.get(each.name, ()), is_private=is_private)
        if reason is None:
            check_loads.append(each)
        else:
            left_out[each.name] = reason
    return tuple(check_loads), left_out


def _count(connections: int) -> str:
    return f"{connections} connection" if connections == 1 else f"{connections} connections"


def _why_not(
    load: Load, check_load: CheckLoad, requests: tuple[RequestKind, ...], *, is_private: bool
) -> str | None:
    """Return why a check load cannot be made, or None."""
    if check_load.slow_clients:
        return None if is_private else "tuner tries slow clients only with private instances"
    if check_load.connections > min(MOST_CONNECTIONS, DEFAULT_PORTS - LEAST_FREE_PORTS):
        return "a load host has too few local ports for this load"
    own = example_workload(load.shape)
    other = replace(example_workload(shape_in(load.shape, check_load)), requests=requests)
    if own == other:
        return "this load is the study's own load"
    generator = load.generator
    try:
        sent = generator.command(other), generator.files(other)
    except UsageError:
        return f"{generator.name} cannot send this load"
    # A command of the user's own may have no place for what should change.
    if sent == (generator.command(own), generator.files(own)):
        return f"{generator.name} would send the same load as the study"
    return None


def shape_in(shape: LoadShape, check_load: CheckLoad) -> LoadShape:
    """Return the load of a study as a check load changes it; the requests of a mix have their own headers."""
    accepted = "" if check_load.changes == "requests" else shape.accept_encoding
    return replace(
        shape, connections=check_load.connections, keepalive=check_load.keepalive, accept_encoding=accepted
    )


def measure_check_loads(
    deployment: Deployment,
    load: Load,
    check_loads: Sequence[CheckLoad],
    window_s: float,
    retries: RetryBudget,
    keep: Callable[[Window], None],
) -> Outcome:
    """Load one deployed server under every check load; each window is handed to `keep` as soon as it is over.

    A window in which nothing was answered counts: that is what is looked for. So does one of a mix with a
    response that is not the correct one. There is none of a check load that could not be made. As long as a
    server makes room for slow clients that have just come, its windows bear another name.

    Raises:
        Crashed: the server ended by itself.
    """
    retries.begin_trial()
    load = replace(load, rate_rps=None)  # at a rate, all that keep up serve the same
    usual_rps = run_window(deployment, load, WARM_UP_S).goodput_rps
    for check_load in check_loads:
        try:
            measured, other = _under_check_load(deployment, load, check_load)
        except NotReady:
            keep(_fail(check_load, window_s))
            continue
        slow = check_load.slow_clients
        with slow_clients(deployment, slow, seconds=window_s, protocol=load.shape.protocol) as are_there:
            retries.begin_window()
            again, seen_rps = are_there, list[float]()
            while again:
                window = run_window(measured, other, window_s)
                settles = slow > 0 and _is_settling([*seen_rps, window.goodput_rps], usual_rps)
                keep(replace(window, check_load=name_settling(check_load) if settles else check_load.name))
                deployment.check_alive()
                again = settles or retries.allows_another(window.verdicts, at_s=time.monotonic())
                seen_rps.append(window.goodput_rps)
    return Outcome(steady=True, pruned=None)


def _fail(check_load: CheckLoad, window_s: float) -> Window:
    """Return the window of a server that does not answer a mix as it should."""
    failures = Failures(status=check_load.connections)
    return Window(
        started_s=time.time(), duration_s=window_s, correct=0, failures=failures, check_load=check_load.name
    )


def name_settling(check_load: CheckLoad) -> str:
    """Return what windows are called in which a server still makes room for what has just come."""
    return check_load.name + AT_FIRST


def _is_settling(seen_rps: Sequence[float], usual_rps: float) -> bool:
    """Return whether the last of these windows says nothing yet of how a server goes on."""
    *before, last = seen_rps
    if not before:
        return last < SETTLED * usual_rps
    return len(before) < SETTLING_WINDOWS and (last == 0 or last > RISING * before[-1])


def _under_check_load(deployment: Deployment, load: Load, check_load: CheckLoad) -> tuple[Deployment, Load]:
    """Return what is loaded, and with what; with other headers, a response has another length.

    Raises NotReady where a response to the mix of the check load is not the correct one.
    """
    other = replace(load, shape=shape_in(load.shape, check_load))
    if check_load.changes == "requests":
        return deployment.under_check_load(check_load.name), other
    if check_load.keepalive == load.shape.keepalive:
        return deployment, other
    return replace(deployment, load=replace(deployment.load, response_bytes=None)), other


@contextlib.contextmanager
def slow_clients(
    deployment: Deployment, count: int, *, seconds: float, protocol: str = HTTP1
) -> Iterator[bool]:
    """Keep slow clients beside a private server, on the load generator's CPUs; they end with the block.

    Yields whether they are there: not every target can run them.

    Args:
        deployment: what they are clients of.
        count: how many; none at all is fine anywhere.
        seconds: how long a window beside them lasts.
        protocol: what they speak.
    """
    process = _start(deployment, count, protocol=protocol, seconds=seconds) if count else None
    try:
        yield not count or (process is not None and _await_ready(process))
    finally:
        if process is not None:
            process.stop(timeout_s=2.0)


def _start(deployment: Deployment, count: int, *, protocol: str, seconds: float) -> Process | None:
    if not isinstance(deployment, SandboxDeployment):
        return None
    sandbox, (place, *_) = deployment.sandbox, deployment.load_places
    path = sandbox.directory / TOOL.name
    sandbox.write(path, FileState(content=TOOL.read_bytes()))
    lasting_s = READY_S + (SETTLING_WINDOWS + 3) * seconds + SPARE_S
    command = _command(deployment, path, count, protocol=protocol, seconds=lasting_s)
    try:
        return sandbox.start(command, cpus=place.cpus or None)
    except TargetError:  # without Python
        return None


def _await_ready(process: Process) -> bool:
    """Wait until all have sent something, or have had the time to; return whether they are still at it."""
    deadline_s = time.monotonic() + READY_S
    while b"ready" not in process.output() and time.monotonic() < deadline_s:
        if process.poll() is not None:
            return False
        time.sleep(POLL_S)
    return process.poll() is None


def _command(
    deployment: SandboxDeployment, path: PurePosixPath, count: int, *, protocol: str, seconds: float
) -> tuple[str, ...]:
    """Return the command of the slow clients: this Python where the target has it, otherwise its own."""
    found = deployment.sandbox.run(("sh", "-c", FIND_PYTHON, "find", sys.executable), timeout_s=5.0)
    python = found.stdout.decode(errors="replace").strip() or "python3"
    port = urlsplit(deployment.load.url).port or 80
    return (
        python, "-I", "-S", str(path),
        "--port", str(port), "--clients", str(count), "--seconds", f"{seconds:g}",
        *(("--certificate", str(deployment.certificate)) if deployment.certificate else ()),
        *(() if protocol == HTTP1 else ("--http2",)),
    )  # fmt: skip

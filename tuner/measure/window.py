"""Measures one window: sends load from all places, reads the counters around it, asks the checks."""

import os
import time
from dataclasses import dataclass, field, replace
from functools import partial

from tuner.deploy.deployment import Deployment
from tuner.errors import LoadFailed
from tuner.hosts.connection_room import DEFAULT_PORTS
from tuner.measure.addresses import spread
from tuner.measure.counters import SERVER, difference, find_quota, take
from tuner.measure.memory import read_memory_bytes
from tuner.measure.processes import find_interrupt_threads, find_own_process
from tuner.measure.sending import send, share_out, split_in_two
from tuner.measure.validity import HEALTHY, BaselineFacts, WindowFacts, judge
from tuner.ports import Failures, Host, LoadGenerator, LoadResult, LoadShape, Workload
from tuner.records import SERVER_MEMORY, Check, Window

MOST_REST = 2
"""So many lengths of a window are waited, at the most, for a slow application to answer what it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load generator with the workload that stays the same from window to window."""

    generator: LoadGenerator
    shape: LoadShape
    interrupt_threads: tuple[int, ...]
    tuner_pid: int = field(default_factory=os.getpid)
    """The process on the target that the tuner's own commands are children of."""
    rate_rps: float | None = None
    """Send at this rate instead of as fast as answers come."""
    keeps_rate: bool = False
    """Whether a window at the rate counts only if the generator has time to send when requests are due."""
    requests_total: int | None = None
    """Requests after which each counted window ends; None where windows have the plan's length."""
    time_limit_s: float = 60.0
    """Of a window that ends after so many requests."""
    response_s: float = 0.0
    """How long the default takes for a response, where that is long; 0 where nobody has to know."""
    timeout_s: float | None = None
    """After which a client without a response counts as failed; None: by the response time."""
    name: str = ""
    """Of several loads."""
    beside: tuple["Load", ...] = ()
    """The others of several loads, which every trial is measured under as well."""

    @classmethod
    def prepare(cls, generator: LoadGenerator, shape: LoadShape, target: Host) -> "Load":
        """Find once what every window needs."""
        return cls(
            generator=generator, shape=shape, interrupt_threads=find_interrupt_threads(target),
            tuner_pid=find_own_process(target),
        )  # fmt: skip


def run_window(
    deployment: Deployment,
    load: Load,
    duration_s: float,
    *,
    connections: int | None = None,
    requests_total: int | None = None,
    problems_before: int = 0,
    baseline: BaselineFacts = HEALTHY,
) -> Window:
    """Send load for one window and count what came back.

    Args:
        deployment: what is loaded.
        load: the generator and the workload.
        duration_s: length of the window; its time limit where it ends after so many requests.
        connections: instead of the workload's own.
        requests_total: requests after which the window ends.
        problems_before: windows right before this one in which the generator failed.
        baseline: what the default showed, for the validity checks.

    A generator that fails gives a window without a correct response; its verdicts say whose fault it was.
    """
    deployment = deployment.latest()
    workload = describe_workload(
        deployment, load, duration_s, connections=connections, requests_total=requests_total
    )
    places = deployment.load_places
    waiting = (place.session_pid for place in places if place.is_on_target)
    groups = {
        "server": tuple(deployment.server_pids.values()),
        "tuner": tuple({load.tuner_pid, *waiting}),
        "interrupts": load.interrupt_threads,
    }
    shares = spread(share_out(workload, places))
    quota = find_quota(deployment.host, groups["server"][0]) if groups["server"] else None
    # What the clients of the window before have asked for and nobody reads is still being answered.
    time.sleep(rest_s(load, duration_s))
    around = partial(take, deployment.host, namespace_pid=deployment.network_pid, groups=groups, quota=quota)
    started_s, began_s = time.time(), time.monotonic()
    before = around()
    sent = send(load.generator, shares)
    result = sent.result
    loaded_s = time.monotonic() - began_s if result is None else result.duration_s
    after = around()
    counters = difference(
        before, after, generator_cpu_s=sent.target_cpu_s, server_cpus=deployment.server_cpus
    )
    memory_bytes = read_memory_bytes(deployment.host, [pid for pid, _ in after.groups[SERVER]])
    if memory_bytes is not None:
        counters[SERVER_MEMORY] = float(memory_bytes)
    if len(shares) > 1:
        counters["load_skew_s"] = sent.skew_s
    counted = result or LoadResult(duration_s=loaded_s, correct=0, failures=Failures())
    window = Window(
        started_s=started_s, duration_s=loaded_s, correct=counted.correct, failures=counted.failures,
        bytes=counted.bytes, latency=counted.latency, connect_time=counted.connect_time,
        generator_cpu=sent.busy, counters=counters, sent=counted.sent,
    )  # fmt: skip
    facts = WindowFacts(
        asked_s=duration_s, result=result, counters=counters, generator_cpu=sent.busy, lost=sent.lost,
        problem=sent.problem, problems_in_row=problems_before + 1, baseline=baseline,
        not_effective=deployment.no_longer_effective(), requests_total=requests_total,
        rate_rps=load.rate_rps if load.keeps_rate else None,
        expected=deployment.load.expected,
        local_ports=DEFAULT_PORTS * len({share.workload.url for share in shares}),
    )  # fmt: skip
    verdicts = judge(facts)
    if any(verdict.check is Check.BODY for verdict in verdicts) and deployment.learn_again():
        verdicts = judge(replace(facts, is_page_replaced=True))
    return replace(window, verdicts=verdicts)


def rest_s(load: Load, duration_s: float) -> float:
    """Return how long a slow application is waited for before a window of so many seconds."""
    return min(load.response_s, MOST_REST * duration_s)


def run_counted_window(
    deployment: Deployment,
    load: Load,
    window_s: float,
    *,
    problems_before: int = 0,
    baseline: BaselineFacts = HEALTHY,
) -> Window:
    """Run a window as the study counts it: of so many requests where it says so, otherwise of `window_s`."""
    return run_window(
        deployment, load, window_s if load.requests_total is None else load.time_limit_s,
        requests_total=load.requests_total, problems_before=problems_before, baseline=baseline,
    )  # fmt: skip


def describe_workload(
    deployment: Deployment,
    load: Load,
    duration_s: float,
    *,
    connections: int | None = None,
    requests_total: int | None = None,
) -> Workload:
    """Return what is sent to a deployment for so long."""
    return Workload(
        url=deployment.load.url,
        connections=connections or load.shape.connections,
        keepalive=load.shape.keepalive,
        duration_s=duration_s,
        requests_total=requests_total,
        threads=load.shape.threads,
        rate_rps=load.rate_rps,
        protocol=load.shape.protocol,
        streams=load.shape.streams,
        accept_encoding=load.shape.accept_encoding,
        headers=load.shape.headers,
        certificate=deployment.certificate,
        verifies=deployment.verifies,
        requests=deployment.load.requests,
        body_bytes=deployment.load.body_bytes,
        body=deployment.load.body,
        response_bytes=deployment.load.response_bytes,
        response_s=load.response_s,
        timeout_s=load.timeout_s,
    )


def example_workload(shape: LoadShape) -> Workload:
    """Return a second of the load, to see which command a generator makes of it."""
    return Workload(
        url="http://127.0.0.1/", connections=shape.connections, keepalive=shape.keepalive, duration_s=1.0,
        threads=max(1, min(shape.threads, shape.connections)), protocol=shape.protocol,
        streams=shape.streams, accept_encoding=shape.accept_encoding, headers=shape.headers, body=shape.body,
    )  # fmt: skip


def send_beside(deployment: Deployment, load: Load, duration_s: float) -> float:
    """Run two generators in each place that share its connections; return all goodput together.

    Raises:
        LoadFailed: one of them cannot be understood, or a load host is lost.
    """
    workload = describe_workload(deployment, load, duration_s)
    shares = [half for share in share_out(workload, deployment.load_places) for half in split_in_two(share)]
    sent = send(load.generator, spread(shares))
    if sent.result is None:
        raise LoadFailed(sent.problem or sent.lost or "load: a generator gave no result.")
    return sent.result.goodput_rps

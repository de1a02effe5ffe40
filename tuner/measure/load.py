"""One window: run the load generator once, read the counters around it, judge what came out."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Protocol

from tuner.deployment import Deployment
from tuner.errors import LoadFailed
from tuner.measure.counters import difference, find_quota, take
from tuner.measure.gates import HEALTHY, ControlFacts, WindowFacts, judge
from tuner.measure.process_trees import find_interrupt_threads
from tuner.placement import Placement
from tuner.ports import Completed, Failures, FileState, Host, LoadGenerator, Workload
from tuner.records import Window

GRACE_S = 10.0
"""A generator that has not ended so long after its window is killed."""
SPARE_FILES = 64
"""Open files of a generator besides its connections."""


class LoadShape(Protocol):
    """What of a study's load section a window needs."""

    @property
    def connections(self) -> int: ...
    @property
    def keepalive(self) -> bool: ...
    @property
    def threads(self) -> int: ...
    @property
    def protocol(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load generator with the workload that stays the same from window to window."""

    generator: LoadGenerator
    shape: LoadShape
    placement: Placement
    interrupt_threads: tuple[int, ...]
    rate_rps: float | None = None
    """Send at this rate instead of as fast as answers come."""

    @classmethod
    def prepare(cls, generator: LoadGenerator, shape: LoadShape, placement: Placement, host: Host) -> "Load":
        """Find once what every window needs."""
        return cls(
            generator=generator, shape=shape, placement=placement,
            interrupt_threads=find_interrupt_threads(host),
        )  # fmt: skip


def run_window(
    deployment: Deployment,
    load: Load,
    duration_s: float,
    *,
    connections: int | None = None,
    rate_rps: float | None = None,
    problems_before: int = 0,
    control: ControlFacts = HEALTHY,
) -> Window:
    """Send load for one window and count what came back.

    Args:
        deployment: what is loaded.
        load: the generator and the workload.
        duration_s: length of the window.
        connections: instead of the workload's own.
        rate_rps: send at this rate instead of as fast as answers come.
        problems_before: windows right before this one in which the generator failed.
        control: what the default showed, for the validity gates.

    A generator that fails gives a window without a correct response; its verdicts say whose fault it was.
    """
    workload = describe_workload(deployment, load, duration_s, connections=connections, rate_rps=rate_rps)
    groups = {
        "server": list(deployment.server_pids.values()),
        "tuner": [os.getpid()],
        "interrupts": load.interrupt_threads,
    }
    started_s, began_s = time.time(), time.monotonic()
    quota = find_quota(deployment.host, groups["server"][0]) if groups["server"] else None
    before = take(deployment.host, namespace_pid=deployment.network_pid, groups=groups, quota=quota)
    result, problem, cpu_s = None, None, 0.0
    try:
        completed = _send(deployment, load, workload)
        cpu_s = completed.cpu_s
        result = load.generator.parse(completed, _read_outputs(deployment, load, workload), workload)
    except LoadFailed as failed:
        problem = str(failed)
    loaded_s = time.monotonic() - began_s if result is None else result.duration_s
    after = take(deployment.host, namespace_pid=deployment.network_pid, groups=groups, quota=quota)
    counters = difference(before, after, generator_cpu_s=cpu_s)
    window = Window(
        started_s=started_s,
        duration_s=loaded_s,
        correct=0 if result is None else result.correct,
        failures=Failures() if result is None else result.failures,
        bytes=0 if result is None else result.bytes,
        latency=None if result is None else result.latency,
        connect_time=None if result is None else result.connect_time,
        generator_cpu=cpu_s / (loaded_s or duration_s) / len(load.placement.generator_cpus),
        counters=counters,
    )
    facts = WindowFacts(
        asked_s=duration_s, result=result, counters=counters, generator_cpu=window.generator_cpu,
        problem=problem, problems_in_row=problems_before + 1, control=control,
        not_effective=deployment.no_longer_effective(),
    )  # fmt: skip
    return replace(window, verdicts=judge(facts))


def describe_workload(
    deployment: Deployment,
    load: Load,
    duration_s: float,
    *,
    connections: int | None = None,
    rate_rps: float | None = None,
) -> Workload:
    """Say what is sent to a deployment for so long."""
    return Workload(
        url=deployment.url,
        connections=connections or load.shape.connections,
        keepalive=load.shape.keepalive,
        duration_s=duration_s,
        threads=load.shape.threads,
        rate_rps=load.rate_rps if rate_rps is None else rate_rps,
        protocol=load.shape.protocol,
        body_bytes=deployment.body_bytes,
        response_bytes=deployment.response_bytes,
        directory=deployment.load_places[0].directory,
    )


def send_beside(deployment: Deployment, load: Load, duration_s: float) -> float:
    """Let two generators share the connections at the same time; give their goodput together.

    Raises:
        LoadFailed: one of them cannot be understood.
    """
    place = deployment.load_places[0].host
    half = max(1, load.shape.connections // 2)
    first = describe_workload(deployment, load, duration_s, connections=half)
    second = replace(first, directory=first.directory / "second")
    for path, content in load.generator.files(second).items():
        place.write(path, FileState(content=content))
    beside = place.start(
        load.generator.command(second), cpus=load.placement.generator_cpus, open_files=half + SPARE_FILES
    )
    completed = _send(deployment, load, first)
    results = [load.generator.parse(completed, _read_outputs(deployment, load, first), first)]
    deadline = time.monotonic() + GRACE_S
    while beside.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    status = beside.poll()
    ended = replace(
        completed, stdout=beside.output(), stderr=b"", returncode=-9 if status is None else status
    )
    beside.stop(timeout_s=1.0)
    results.append(load.generator.parse(ended, _read_outputs(deployment, load, second), second))
    return sum(result.goodput_rps for result in results)


def _send(deployment: Deployment, load: Load, workload: Workload) -> Completed:
    place, generator = deployment.load_places[0].host, load.generator
    for path, content in generator.files(workload).items():
        if place.read(path).content != content:
            place.write(path, FileState(content=content))
    return place.run(
        generator.command(workload),
        timeout_s=workload.duration_s + GRACE_S,
        cpus=load.placement.generator_cpus,
        open_files=workload.connections + SPARE_FILES,
    )


def _read_outputs(deployment: Deployment, load: Load, workload: Workload) -> dict[PurePosixPath, bytes]:
    outputs: dict[PurePosixPath, bytes] = {}
    for path in load.generator.outputs(workload):
        content = deployment.load_places[0].host.read(path).content
        if content is not None:
            outputs[path] = content
    return outputs

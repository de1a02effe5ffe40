"""One window: run the load generator once, read the counters around it, judge what came out."""

import os
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from tuner.deploy import Deployment
from tuner.measure.counters import difference, take
from tuner.measure.process_trees import find_interrupt_threads
from tuner.placement import Placement
from tuner.ports import Completed, FileState, Host, LoadGenerator, LoadResult, Workload
from tuner.records import Window

GRACE_S = 10.0
"""A generator that has not ended so long after its window is killed."""
SPARE_FILES = 64
"""Open files of a generator besides its connections."""


class LoadShape(Protocol):
    """What of a study's load section a window needs."""

    connections: int
    keepalive: bool
    threads: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load generator with the workload that stays the same from window to window."""

    generator: LoadGenerator
    shape: LoadShape
    placement: Placement
    interrupt_threads: tuple[int, ...]

    @classmethod
    def prepare(
        cls, generator: LoadGenerator, shape: LoadShape, placement: Placement, host: Host
    ) -> "Load":
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
) -> Window:
    """Send load for one window and count what came back.

    Args:
        deployment: what is loaded.
        load: the generator and the workload.
        duration_s: length of the window.
        connections: instead of the workload's own.
        rate_rps: send at this rate instead of as fast as answers come.

    Raises:
        LoadFailed: the generator failed or cannot be understood.
    """
    workload = Workload(
        url=deployment.url,
        connections=connections or load.shape.connections,
        keepalive=load.shape.keepalive,
        duration_s=duration_s,
        threads=load.shape.threads,
        rate_rps=rate_rps,
        protocol=load.shape.protocol,
        body_bytes=deployment.body_bytes,
        response_bytes=deployment.response_bytes,
        directory=deployment.sandbox.directory,
    )
    groups = {
        "server": [process.pid for process in deployment.processes.values()],
        "tuner": [os.getpid()],
        "interrupts": load.interrupt_threads,
    }
    started_s = time.time()
    before = take(deployment.sandbox, namespace_pid=deployment.sandbox.pid, groups=groups)
    completed, result = _send(deployment, load, workload)
    after = take(deployment.sandbox, namespace_pid=deployment.sandbox.pid, groups=groups)
    counters = difference(before, after, generator_cpu_s=completed.cpu_s)
    window = Window(
        started_s=started_s,
        duration_s=result.duration_s,
        correct=result.correct,
        failures=result.failures,
        bytes=result.bytes,
        latency=result.latency,
        connect_time=result.connect_time,
        generator_cpu=completed.cpu_s / completed.duration_s / len(load.placement.generator_cpus),
        counters=counters,
    )
    return window


def _send(deployment: Deployment, load: Load, workload: Workload) -> tuple[Completed, LoadResult]:
    sandbox, generator = deployment.sandbox, load.generator
    for path, content in generator.files(workload).items():
        if sandbox.read(path).content != content:
            sandbox.write(path, FileState(content=content))
    completed = sandbox.run(
        generator.command(workload),
        timeout_s=workload.duration_s + GRACE_S,
        cpus=load.placement.generator_cpus,
        open_files=workload.connections + SPARE_FILES,
    )
    outputs: dict[PurePosixPath, bytes] = {}
    for path in generator.outputs(workload):
        content = sandbox.read(path).content
        if content is not None:
            outputs[path] = content
    return completed, generator.parse(completed, outputs, workload)

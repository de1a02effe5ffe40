"""A server in memory under a load generator that a test scripts, through the real windows and checks."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import ClassVar

from tests.unit.deploy.test_sandbox import plan as page_site
from tests.unit.simulation import SimulatedClock
from tuner.deploy.sandbox import SandboxDeployment, SandboxTarget
from tuner.errors import LoadFailed
from tuner.measure.window import Load
from tuner.ports import Argv, Completed, Failures, Files, FileState, LoadResult, Workload
from tuner.study import LoadSettings
from tuner.testing.fakes import MemoryHost, MemorySandbox

STAT = PurePosixPath("/proc/stat")
CONFIG = {"backlog": 100, "net.core.somaxconn": 512}
CPUS = 2


class ScriptedGenerator:
    """Prints what the script of the test says, as JSON."""

    name: ClassVar[str] = "scripted"
    package: ClassVar[str] = ""

    def version_command(self) -> Argv | None:
        return None

    def read_version(self, printed: Completed) -> str:
        raise AssertionError(printed)

    def files(self, workload: Workload) -> Files:
        return {workload.directory / "script.json": str(workload.connections).encode()}

    def command(self, workload: Workload) -> Argv:
        rate = "" if workload.rate_rps is None else f"{workload.rate_rps:g}"
        counted = () if workload.requests_total is None else (str(workload.requests_total),)
        return ("load", f"{workload.duration_s:g}", str(workload.connections), rate, *counted)

    def outputs(self, workload: Workload) -> tuple[PurePosixPath, ...]:
        return (workload.directory / "raw.json",)

    def parse(self, completed: Completed, outputs: Files, workload: Workload) -> LoadResult:
        if completed.timed_out:
            raise LoadFailed(f"scripted: it had not ended {completed.duration_s:g} s after its trial.")
        printed = outputs.get(workload.directory / "raw.json", completed.stdout)
        try:
            result = json.loads(printed)
        except ValueError as error:
            raise LoadFailed(f"scripted: its output is not understood: {printed[:20]!r}.") from error
        failures = Failures(**result.pop("failures", {}))
        return LoadResult(**{"duration_s": workload.duration_s, "failures": failures} | result)


@dataclass(kw_only=True)
class Happening:
    """What one window of load is like."""

    rate: float = 1000.0
    failures: dict[str, int] = field(default_factory=dict)
    garbage: bool = False
    hangs: bool = False
    kills_server: bool = False
    stolen: float = 0.0
    """Share of the CPUs that the hypervisor gives to others."""
    clock_step_s: float = 0.0
    lasts: float = 1.0
    """Length, relative to what was asked."""
    fault: str | None = None
    """What the generator itself ran out of."""
    generator_busy: float = 0.5
    reported_s: float | None = None


class SteppingClock(SimulatedClock):
    """A clock whose wall time can be set, as NTP may do."""

    def __init__(self) -> None:
        super().__init__()
        self.step_s = 0.0

    def time(self) -> float:
        return self.now_s + self.step_s


Script = Callable[[int, float, int], Happening]
"""Number of the window, its length and its connections → what it is like."""


@dataclass(kw_only=True)
class Bench:
    """A machine in memory, and what happens on it."""

    script: Script = lambda *_: Happening()
    clock: SteppingClock = field(default_factory=SteppingClock)
    asked: list[Argv] = field(default_factory=list)
    """Commands of the generator so far."""
    deadlines_s: list[float] = field(default_factory=list)
    busy_s: float = 0.0
    stolen_s: float = 0.0
    began_s: float = 0.0

    def __post_init__(self) -> None:
        self.began_s = self.clock.now_s
        self.site: SandboxTarget = page_site()
        self.host.files[STAT] = self._stat()
        self.host.files[PurePosixPath("/proc/sys/kernel/random/boot_id")] = FileState(content=b"one\n")
        self.host.commands["load"] = self._run
        self.load = Load(
            generator=ScriptedGenerator(), shape=LoadSettings(), interrupt_threads=(),
        )  # fmt: skip

    @property
    def host(self) -> MemoryHost:
        assert isinstance(self.site.host, MemoryHost)
        return self.site.host

    @contextmanager
    def deployed(self) -> Iterator[SandboxDeployment]:
        """Run the page server, and let `/proc/stat` and deadlines be seen."""
        with self.site.deploy(CONFIG) as deployment:
            yield self.watched(deployment)

    def watched(self, deployment: SandboxDeployment) -> SandboxDeployment:
        """Let a sandbox tell with which deadline the generator is run."""
        sandbox = deployment.sandbox
        assert isinstance(sandbox, MemorySandbox)
        watched = _Watched(self, sandbox)
        (place,) = deployment.load_places
        return replace(deployment, sandbox=watched, host=watched, load_places=(replace(place, host=watched),))

    def _run(self, host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        happening = self.script(len(self.asked), float(argv[1]), int(argv[2]))
        self.asked.append(argv)
        duration_s = happening.lasts * float(argv[1])
        if happening.hangs:
            duration_s = self.deadlines_s[-1]
        self._pass(host, duration_s, happening)
        if happening.kills_server:
            for process in host.started:
                process.end(-11)
        return Completed(
            argv=argv, returncode=-9 if happening.hangs else 0, stdout=_print(happening, duration_s),
            stderr=b"", duration_s=duration_s, timed_out=happening.hangs,
            cpu_s=happening.generator_busy * duration_s,
        )  # fmt: skip

    def _pass(self, host: MemoryHost, seconds: float, happening: Happening) -> None:
        self.clock.sleep(seconds)
        self.clock.step_s += happening.clock_step_s
        self.busy_s += happening.generator_busy * seconds
        self.stolen_s += happening.stolen * CPUS * seconds
        host.files[STAT] = self._stat()

    def _stat(self) -> FileState:
        """Show CPU times as the kernel does: user nice system idle iowait irq softirq steal."""
        passed_s = self.clock.now_s - self.began_s
        user, steal = 50 * self.busy_s, 50 * self.stolen_s
        idle = 100 * passed_s - user - steal
        cpus = "".join(f"cpu{n} {user:.0f} 0 0 {idle:.0f} 0 0 0 {steal:.0f}\n" for n in range(CPUS))
        return FileState(content=f"{cpus}ctxt 1\nprocesses 1\n".encode())


def _print(happening: Happening, duration_s: float) -> bytes:
    if happening.garbage:
        return b"Segmentation fault"
    result = {
        "duration_s": duration_s if happening.reported_s is None else happening.reported_s,
        "correct": round(happening.rate * duration_s),
        "failures": happening.failures,
        "generator_fault": happening.fault,
    }
    return json.dumps(result).encode()


class _Watched(MemorySandbox):
    """The same sandbox; the deadline of every command is written down."""

    def __init__(self, bench: Bench, inside: MemorySandbox) -> None:
        self.__dict__.update(inside.__dict__)
        self._bench = bench

    def run(self, argv, *, timeout_s, **given):  # type: ignore[no-untyped-def]
        self._bench.deadlines_s.append(timeout_s)
        return super().run(argv, timeout_s=timeout_s, **given)


def scripted(*happenings: Happening, then: Happening | None = None) -> Script:
    """Let these happen one after the other, and then always the last or another."""
    rest = then or happenings[-1]
    return lambda number, *_: happenings[number] if 0 <= number < len(happenings) else rest

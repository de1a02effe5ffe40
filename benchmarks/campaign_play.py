"""Plays one study of a drawn server with the real campaign; tells what shipped, and what it is worth."""

import math
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from scipy.stats import t

from benchmarks.campaign_host import DrawnHost
from benchmarks.campaign_servers import Server, draw_idle_server, draw_server
from benchmarks.campaign_spaces import load_family
from tests.unit.simulation import make_campaign, open_in_memory
from tuner.campaign.campaign import run_campaign
from tuner.campaign.experiment import Experiment
from tuner.errors import TunerError
from tuner.ports import Config
from tuner.records import Role, Start, State
from tuner.space import Space
from tuner.study import Study, load_study
from tuner.study.facts import CONFIRMATION, FINALIST
from tuner.study.presets import PRESETS

CONFIRMED = "confirmed"
IDLE = 0.005
"""Log goodput below which a line is worth nothing."""
ALLOWED = 0.001
"""Failed requests per request that any study allows."""
AS_MUCH = 1.1
"""Where the default itself fails more than that, so many times its rate is still as good as today's."""
STUDY = """\
study: drawn
servers: [{servers}]
space: [{space}]
load: {{generator: wrk, connections: 100, keepalive: {keepalive}}}
budget: {{preset: quick}}
optimizer: {optimizer}
seed: {seed}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A way of tuning."""

    name: str
    optimizer: str = "noisy-gp"
    knows_presets: bool = True
    """Whether the presets of the real spaces are tried, which know nothing of a drawn server."""
    knows_hints: bool = True
    """Whether it is told what experts say of the drawn server."""
    without_liars: bool = False
    """Whether hints that lead away are kept from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of one study; worths are true and in log points, seconds are simulated ones."""

    arm: str
    server: int
    kind: str
    """drawn, or idle."""
    truth: str
    """Fingerprint of the server: results of two are compared only where it is the same."""
    family: str
    verdict: str
    claimed: bool
    gain: float
    """True worth of what ships; 0 where nothing is claimed."""
    chosen: float | None
    """True worth of what was confirmed, claimed or not."""
    finalist: float | None
    """True worth of what went into the simplification."""
    best: float
    """About the most that there is."""
    lines: int
    """Of what ships, as people see it."""
    changes: int
    idle: int
    """Changes that are truly worth nothing."""
    rate: float
    """True failure rate of what ships, or the default's."""
    default_rate: float
    less_capacity: bool
    starts: int
    searched: int
    pairs: int
    half_width: float | None
    """Of the interval of the log gain."""
    seconds: float
    cpu_s: float

    @property
    def infeasible(self) -> bool:
        """Whether what ships truly fails more than any study allows, and more than before."""
        return self.rate > max(ALLOWED, AS_MUCH * self.default_rate)


def play(number: int, arm: Arm, *, idle: bool = False) -> Played:
    """Play one study; the same arguments give the same result but for the CPU time."""
    server = draw_idle_server(number) if idle else draw_server(number)
    host = DrawnHost(server=server, seed=number)
    with TemporaryDirectory(prefix="campaign-") as folder:
        experiment = _set_up(server, arm, host, Path(folder))
        begun_s, cpu_s = host.clock.monotonic(), time.process_time()
        try:
            verdict = run_campaign(experiment)
        except TunerError as error:
            verdict = f"{type(error).__name__}: {error}"
        cpu_s = time.process_time() - cpu_s
    return _tell(server, arm, experiment, verdict, seconds=host.clock.monotonic() - begun_s, cpu_s=cpu_s)


def _set_up(server: Server, arm: Arm, host: DrawnHost, folder: Path) -> Experiment:
    space = load_family(server.family)
    if not arm.knows_presets:
        space = without_presets(space)
    storage = open_in_memory(host.clock)
    settings = _write_study(server, arm, folder)
    return make_campaign(settings, host, storage, plan=PRESETS["quick"], space=space)


def without_presets(space: Space) -> Space:
    """Return a space that knows nothing from elsewhere."""
    free = space.unguarded
    return replace(space, presets=(), unguarded=free and without_presets(free))


def _write_study(server: Server, arm: Arm, folder: Path) -> Study:
    family = server.family
    path = folder / "drawn.yaml"
    path.write_text(
        STUDY.format(
            servers=", ".join(family.servers), space=family.space, keepalive=str(family.keepalive).lower(),
            optimizer=arm.optimizer, seed=server.number,
        )
    )  # fmt: skip
    return load_study(path)


# What became of it


def _tell(
    server: Server, arm: Arm, experiment: Experiment, verdict: str, *, seconds: float, cpu_s: float
) -> Played:
    storage, space = experiment.storage, experiment.setup.space
    starts = storage.starts()
    planned, finalist = storage.recall(CONFIRMATION), storage.recall(FINALIST)
    claimed = verdict == CONFIRMED and planned is not None
    shipped = planned.config if claimed and planned else space.default()
    logs = _log_ratios(starts)
    return Played(
        arm=arm.name, server=server.number, kind="drawn" if server.effects else "idle",
        truth=server.fingerprint, family=server.family.name, verdict=verdict, claimed=claimed,
        gain=_worth(server, space, shipped),
        chosen=_worth(server, space, planned.config) if planned else None,
        finalist=_worth(server, space, finalist[0]) if finalist else None,
        best=round(server.best(), 4) if server.effects else 0.0,
        lines=len(space.shipped(shipped)),
        changes=len(space.changes(shipped)),
        idle=len(idle_changes(server, space, shipped)),
        rate=round(server.failing.rate(shipped), 6),
        default_rate=round(server.failing.rate(space.default()), 6),
        less_capacity=bool(space.lacks(shipped)),
        starts=len(starts),
        searched=sum(start.role is Role.SEARCH for start in starts),
        pairs=len(logs), half_width=_half_width(logs),
        seconds=round(seconds, 1), cpu_s=round(cpu_s, 2),
    )  # fmt: skip


def _worth(server: Server, space: Space, config: Config) -> float:
    return round(server.truth(config) - server.truth(space.default()), 4)


def idle_changes(server: Server, space: Space, config: Config) -> list[str]:
    """Return the changes that can be put back, one at a time, at no cost: neither goodput nor failures."""
    changes = {name: value for name, (_, value) in space.changes(config).items()}
    worth, rate = server.truth(config), server.failing.rate(config)
    found = []
    for name in changes:
        rest = space.complete({other: value for other, value in changes.items() if other != name}, fit=True)
        holds_failures_down = server.failing.rate(rest) > max(ALLOWED, AS_MUCH * rate)
        if worth - server.truth(rest) < IDLE and server.fault(rest) is None and not holds_failures_down:
            found.append(name)
    return found


def _log_ratios(starts: tuple[Start, ...]) -> list[float]:
    """Return the log ratio of every pair of the confirmation that has both sides."""
    blocks: dict[int | None, dict[str, float]] = {}
    for start in starts:
        if start.role is Role.CONFIRM and start.state is State.COMPLETE and start.log_goodput is not None:
            blocks.setdefault(start.block, {})[start.arm] = start.log_goodput
    return [sides["winner"] - sides["default"] for sides in blocks.values() if len(sides) == 2]


def _half_width(logs: list[float]) -> float | None:
    if len(logs) < 2:
        return None
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return round(float(t.ppf(0.975, len(logs) - 1)) * error, 4)

"""Plays one study of a drawn server with the real campaign; tells what shipped, and what it is worth."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from scipy.stats import t

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.servers import Hint, Server, draw_idle_server, draw_server
from benchmarks.campaign.spaces import load_family
from tests.unit.simulation import SimulatedClock, make_campaign, open_in_memory
from tuner.campaign.campaign import run_campaign
from tuner.campaign.experiment import Experiment, Seat
from tuner.errors import TunerError
from tuner.ports import Config
from tuner.records import Role, State, Trial
from tuner.space import Space
from tuner.space.parameters import Hint as KnownHint
from tuner.study import Study, load_study
from tuner.study.facts import CONFIRMATION, FINALIST
from tuner.study.presets import PRESETS, Plan
from tuner.study.storage import Storage

CONFIRMED = "confirmed"
SMAC = "smac"
OPTIMIZERS = {"noisy-gp": "noisy-gp", "tpe": "tpe", "gp": "gp", SMAC: "random", "random": "random"}
"""By name, what stands in the study file: SMAC3 is no sampler of Optuna, so another one's place is taken."""
IDLE = 0.005
"""Log goodput below which a line is worth nothing."""
ALLOWED = 0.001
"""Failed requests per request that any study allows."""
NO_WORSE = (1.25, 0.0002)
"""Where the default itself fails more than that: times its rate, and above that, for what is as good."""
STUDY = """\
study: drawn
servers: [{servers}]
space: [{space}]
load: {{generator: wrk, connections: 100, keepalive: {keepalive}}}
budget: {{preset: quick}}
optimizer: {optimizer}
seed: {seed}
constraints: [failure_rate <= {limit}]
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
    """True worth of what went into the ablation."""
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
        return self.rate > allowed_rate(self.default_rate)


def allowed_rate(default_rate: float) -> float:
    """Return the true failure rate from which a configuration is infeasible."""
    factor, margin = NO_WORSE
    return ALLOWED if default_rate <= ALLOWED else factor * default_rate + margin


def as_it_is(space: Space) -> Space:
    """Return the space of a drawn server with nothing added to it."""
    return space


def leave(experiment: Experiment) -> None:
    """Leave an experiment as it was set up."""


def play(
    number: int,
    arm: Arm,
    *,
    idle: bool = False,
    advise: Callable[[Space], Space] = as_it_is,
    equip: Callable[[Experiment], None] = leave,
) -> Played:
    """Play one study; the same arguments give the same result but for the CPU time."""
    server = draw_idle_server(number) if idle else draw_server(number)
    cpu_s = time.process_time()
    experiment, verdict, seconds = run(server, arm, advise=advise, equip=equip)
    return _tell(server, arm, experiment, verdict, seconds=seconds, cpu_s=time.process_time() - cpu_s)


def run(
    server: Server,
    arm: Arm,
    *,
    advise: Callable[[Space], Space] = as_it_is,
    equip: Callable[[Experiment], None] = leave,
) -> tuple[Experiment, str, float]:
    """Run one study; return what it has measured, its verdict, and the simulated seconds that it took.

    `advise` adds to its space what is known from elsewhere, `equip` changes what else it is tuned with.
    """
    host = DrawnHost(server=server, seed=server.number)
    with TemporaryDirectory(prefix="campaign-") as folder:
        experiment = set_up(server, arm, host, Path(folder), advise=advise)
        equip(experiment)
        begun_s = host.clock.monotonic()
        try:
            verdict = run_campaign(experiment)
        except TunerError as error:
            verdict = f"{type(error).__name__}: {error}"
    return experiment, verdict, host.clock.monotonic() - begun_s


def set_up(  # noqa: PLR0913 - what a study is made of
    server: Server,
    arm: Arm,
    host: DrawnHost,
    folder: Path,
    *,
    plan: Plan = PRESETS["quick"],
    open_empty: Callable[[Study, SimulatedClock], Storage] = lambda _, clock: open_in_memory(clock),
    advise: Callable[[Space], Space] = as_it_is,
    seat: Seat | None = None,
) -> Experiment:
    """Take up a study of a drawn server in an empty storage, by default one in memory."""
    hints = [each for each in server.hints if arm.knows_hints and not (arm.without_liars and each.is_wrong)]
    space = with_hints(load_family(server.family), hints)
    if not arm.knows_presets:
        space = without_presets(space)
    space = advise(space)
    settings = _write_study(server, arm, folder)
    storage = open_empty(settings, host.clock)
    experiment = make_campaign(settings, host, storage, plan=plan, space=space, seat=seat)
    if arm.optimizer == SMAC:
        from benchmarks.campaign.smac import Smac

        experiment.optimizer = Smac()
    return experiment


def without_presets(space: Space) -> Space:
    """Return a space that knows nothing from elsewhere."""
    free = space.unguarded
    return replace(space, presets=(), unguarded=free and without_presets(free))


def with_hints(space: Space, hints: Sequence[Hint]) -> Space:
    """Return a space that knows what these experts say, and nothing of what its own say of real servers."""
    said = {
        each.name: KnownHint(odds=each.odds, value=each.value, direction=each.direction) for each in hints
    }
    parameters = tuple(replace(each, hint=said.get(each.name)) for each in space.parameters)
    free = space.unguarded
    return replace(space, parameters=parameters, unguarded=free and with_hints(free, hints))


def _write_study(server: Server, arm: Arm, folder: Path) -> Study:
    """Write the study as `tuner init` does: where the default fails too much, no more than it is allowed."""
    family, path = server.family, folder / "drawn.yaml"
    fails = server.failing.rate(load_family(family).default()) > ALLOWED
    path.write_text(
        STUDY.format(
            servers=", ".join(family.servers), space=family.space, keepalive=str(family.keepalive).lower(),
            optimizer=OPTIMIZERS[arm.optimizer], seed=server.number,
            limit="default" if fails else f"{ALLOWED:g}",
        )
    )  # fmt: skip
    return load_study(path)


# What became of it


def _tell(
    server: Server, arm: Arm, experiment: Experiment, verdict: str, *, seconds: float, cpu_s: float
) -> Played:
    storage, space = experiment.storage, experiment.setup.space
    trials = storage.trials()
    planned, finalist = storage.recall(CONFIRMATION), storage.recall(FINALIST)
    claimed = verdict == CONFIRMED and planned is not None
    shipped = planned.config if claimed and planned else space.default()
    logs = _log_ratios(trials, planned.config) if planned else []
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
        starts=len(trials),
        searched=sum(trial.role is Role.SEARCH for trial in trials),
        pairs=len(logs), half_width=_half_width(logs),
        seconds=round(seconds, 1), cpu_s=round(cpu_s, 2),
    )  # fmt: skip


def _worth(server: Server, space: Space, config: Config) -> float:
    return round(server.truth(config) - server.truth(space.default()), 4)


def idle_changes(server: Server, space: Space, config: Config) -> list[str]:
    """Return the changes that can be put back, one at a time, at no cost: neither goodput nor failures."""
    changes = {name: value for name, (_, value) in space.changes(config).items()}
    worth, allowed = server.truth(config), allowed_rate(server.failing.rate(space.default()))
    found = []
    for name in changes:
        rest = space.complete({other: value for other, value in changes.items() if other != name}, fit=True)
        holds_failures_down = server.failing.rate(rest) > allowed
        if worth - server.truth(rest) < IDLE and server.fault(rest) is None and not holds_failures_down:
            found.append(name)
    return found


def _log_ratios(trials: tuple[Trial, ...], winner: Config) -> list[float]:
    """Return the log ratio of every pair of the confirmation that has both sides.

    Pairs of another configuration that was rejected are left out.
    """
    blocks: dict[int | None, dict[str, float]] = {}
    for trial in trials:
        is_of_pair = trial.role is Role.CONFIRM and trial.state is State.COMPLETE
        if is_of_pair and trial.log_goodput is not None and (trial.arm != "winner" or trial.config == winner):
            blocks.setdefault(trial.block, {})[trial.arm] = trial.log_goodput
    pairs = (sides for sides in blocks.values() if len(sides) == 2)
    return [sides["winner"] - sides["default"] for sides in pairs]


def _half_width(logs: list[float]) -> float | None:
    if len(logs) < 2:
        return None
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return round(float(t.ppf(0.975, len(logs) - 1)) * error, 4)

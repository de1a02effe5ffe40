"""Sweeps on drawn servers whose truth is known: is the value that they name as good as the best there is?

    python -m benchmarks.sweeps.simulated [--sweeps 100] [--first 0] [--minutes 4] [--workers 1] [--json FILE]

Each sweep varies one number that acts on its server, over the grid that `tuner sweep` takes by itself, with
the preset quick, on simulated time. Truths are in log points; servers, noise and failures are those of
`benchmarks.campaign`. Exit status 1 when a number to reach is missed.
"""

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import ALLOWED, allowed_rate, without_presets
from benchmarks.campaign.servers import Server, draw_server
from benchmarks.campaign.spaces import load_family
from tests.unit.commands.simulated import hold
from tests.unit.simulation import SimulatedRunner, make_setup, open_in_memory
from tuner.campaign import interleaved
from tuner.campaign.progress import NullProgress
from tuner.commands.contests.sweep import measure_sweep
from tuner.commands.contests.sweep_plan import plan_sweep
from tuner.space import Space
from tuner.statistics.curves.sweep import NEAR, TOLERANCE_SLACK, Sweeping, judge_sweep
from tuner.study import Study, load_study
from tuner.study.facts import SWEEP
from tuner.study.presets import PRESETS

GOOD_SHARE = 0.95
"""Of the sweeps, those that name a value within `NEAR` of the best."""
SAFE_SHARE = 0.90
"""Of the ranges that are named as good, those in which nothing loses more than `TOLERANCE_SLACK` × `NEAR`."""
COVERAGE = (0.90, 0.98)
CALM_SIGMA = 0.05
"""Spread of windows of a second up to which a host is called calm, when it has no slow phases."""
CALM_HALF_WIDTH = 0.08
STUDY = """\
study: drawn
servers: [{servers}]
space: [{space}]
load: {{generator: wrk, connections: 100, keepalive: {keepalive}}}
budget: {{preset: quick}}
seed: {seed}
constraints: [failure_rate <= {limit}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What became of one sweep."""

    server: int
    parameter: str
    sigma: float
    """Spread of the windows of the host."""
    is_calm: bool
    values: int
    best: str
    regret: float
    """What the value that is named truly loses against the best of those that were measured."""
    worst_tolerated: float
    """The same of the worst value in the range that is named as good."""
    tolerated: int
    covered: int
    intervals: int
    half_widths: tuple[float, ...]
    is_feasible: bool
    trials: int
    seconds: float


def play(number: int, minutes: float) -> Swept | None:
    """Play the sweep of one server; None where no number acts on it from its default."""
    server = draw_server(number)
    space = without_presets(load_family(server.family))
    name = choose_parameter(server, space)
    if name is None:
        return None
    host = DrawnHost(server=server, seed=number)
    with TemporaryDirectory(prefix="sweep-") as folder:
        settings = write_study(server, space, Path(folder))
        setup, storage = hold(make_setup(settings, space)), open_in_memory(host.clock)
        planned = plan_sweep(settings, setup, name)
        storage.remember(SWEEP, planned)
        runner = partial(SimulatedRunner, host=host)
        begun_s = host.clock.monotonic()
        # Only for this sweep: who measures for real after it, in the same process, has to.
        with patch.multiple(interleaved, TrialRunner=runner, time=host.clock):
            measured = measure_sweep(
                setup, planned, storage, PRESETS["quick"], minutes=minutes, progress=NullProgress()
            )
        sweeping = judge_sweep(planned, measured.trials, settings.constraints, seed=settings.seed)
        return tell(server, sweeping, len(measured.trials), host.clock.monotonic() - begun_s)


def choose_parameter(server: Server, space: Space) -> str | None:
    """Return the number that moves the server most, of those that are active at the default."""
    default, numbers = space.default(), {each.name for each in space.parameters if each.is_numeric}
    acting = [each for each in server.effects if each.setting.name in numbers & default.keys()]
    return max(acting, key=lambda effect: effect.size).setting.name if acting else None


def write_study(server: Server, space: Space, folder: Path) -> Study:
    """Write the study as the campaign's benchmark does."""
    family, path = server.family, folder / "drawn.yaml"
    fails = server.failing.rate(space.default()) > ALLOWED
    path.write_text(
        STUDY.format(
            servers=", ".join(family.servers), space=family.space, keepalive=str(family.keepalive).lower(),
            seed=server.number, limit="default" if fails else f"{ALLOWED:g}",
        )
    )  # fmt: skip
    return load_study(path)


def tell(server: Server, sweeping: Sweeping, trials: int, seconds: float) -> Swept:
    """Hold a sweep against the truth."""
    plan = sweeping.plan
    truths = [server.truth(config) for config in plan.configs]
    allowed = allowed_rate(server.failing.rate(plan.configs[plan.control]))
    feasible = [
        server.fault(config) is None and server.failing.rate(config) <= allowed and index not in plan.lacks
        for index, config in enumerate(plan.configs)
    ]
    most = max(truth for truth, fits in zip(truths, feasible, strict=True) if fits)
    held = [
        each.estimate.low <= math.exp(truths[each.index] - truths[plan.control]) <= each.estimate.high
        for each in sweeping.tried
        if each.estimate and each.index != plan.control
    ]
    tolerated = [each.index for each in sweeping.tried if each.is_tolerated]
    best = sweeping.best if sweeping.best is not None else plan.control
    return Swept(
        server=server.number, parameter=plan.parameter, sigma=round(server.noise.sigma_window, 4),
        is_calm=server.noise.sigma_window <= CALM_SIGMA and not server.noise.slow_depth,
        values=len(plan.values), best=str(plan.values[best]), regret=round(most - truths[best], 4),
        worst_tolerated=round(max(truths[best] - truths[index] for index in tolerated or [best]), 4),
        tolerated=len(tolerated), covered=sum(held), intervals=len(held),
        half_widths=tuple(
            round(each.estimate.half_width, 4) for each in sweeping.tried
            if each.estimate and each.index != plan.control and not each.fault
        ),
        is_feasible=feasible[best], trials=trials, seconds=round(seconds, 1),
    )  # fmt: skip


def play_all(numbers: list[int], minutes: float, workers: int) -> Iterator[Swept | None]:
    """Play sweeps, one after the other or in several processes."""
    if workers == 1:
        yield from (play(number, minutes) for number in numbers)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(play, numbers, [minutes] * len(numbers))


def report(played: list[Swept]) -> int:
    """Print what was reached; returns the exit status."""
    regrets = sorted(each.regret for each in played)
    good = sum(regret <= -math.log1p(-NEAR) for regret in regrets) / len(played)
    ranges = [each for each in played if each.tolerated > 1]
    limit = -math.log1p(-TOLERANCE_SLACK * NEAR)
    safe = sum(each.worst_tolerated <= limit for each in ranges) / max(len(ranges), 1)
    covered = sum(each.covered for each in played) / sum(each.intervals for each in played)
    calm = [width for each in played if each.is_calm for width in each.half_widths]
    usual, widest = statistics.median(calm or [0.0]), max(calm, default=0.0)
    infeasible = sum(not each.is_feasible for each in played)
    seconds = [each.seconds for each in played]
    lines = [
        (f"names a value within 3 % of the best in {good:.1%} of {len(played)}", good >= GOOD_SHARE),
        (f"of {len(ranges)} tolerance ranges {safe:.1%} lose at most 4.5 %", safe >= SAFE_SHARE),
        (f"95 % intervals hold the truth in {covered:.1%}", COVERAGE[0] <= covered <= COVERAGE[1]),
        (f"names a value that is infeasible in {infeasible}", infeasible <= 0.02 * len(played)),
        (
            f"calm hosts: half-width {usual:.1%} at the median, {widest:.1%} at most",
            widest <= CALM_HALF_WIDTH,
        ),
        (f"{statistics.median(seconds):.0f} s at the median, {max(seconds):.0f} s at the most", True),
    ]
    for said, is_reached in lines:
        print(f"{'reached' if is_reached else 'MISSED '}  {said}")
    worst = sorted(played, key=lambda each: -each.regret)[:5]
    for each in worst:
        print(f"  server {each.server} ({each.parameter}, sigma {each.sigma:.3f}): regret {each.regret:.3f}")
    return 0 if all(is_reached for _, is_reached in lines) else 1


def main() -> int:
    """Play sweeps and hold them against the truth."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    played: list[Swept] = []
    first = given.first
    while len(played) < given.sweeps:
        numbers = list(range(first, first + given.sweeps - len(played)))
        played += [each for each in play_all(numbers, given.minutes, given.workers) if each]
        first += len(numbers)
    if given.json:
        given.json.write_text(json.dumps([asdict(each) for each in played], indent=1))
    return report(played)


if __name__ == "__main__":
    sys.exit(main())

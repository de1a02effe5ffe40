"""How much does a winner lose on the worst of its hosts? `make bench-robust` tunes on one host, and on all.

    python -m benchmarks.fleet.robust [--servers 8] [--first 0] [--hosts 8] [--unlike 2] [--workers 1]
        [--json FILE]

Each drawn server (`benchmarks.campaign`) stands on so many simulated hosts, of which some are unlike the
others in what half of its settings do. Its worst-host regret is what a winner lacks, on the host where it
gives least, of the best that one configuration can give on every host. One winner comes from a study of one
of the many that are alike, the other from a study of all hosts with `across: worst`; both have the same wall
time. Exit status 1 when the number to reach is missed.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.campaign.effects import candidates
from benchmarks.campaign.host import DrawnHost
from benchmarks.campaign.play import ALLOWED, STUDY, with_hints, without_presets
from benchmarks.campaign.servers import Server, draw_server
from benchmarks.campaign.spaces import load_family
from tests.unit.simulated_hosts import play
from tests.unit.simulation import SimulatedHost, make_campaign, open_in_memory
from tuner.campaign.campaign import run_campaign
from tuner.campaign.stages.confirm import CONFIRMED
from tuner.errors import TunerError
from tuner.ports import Config
from tuner.space import Space
from tuner.study import Study, load_study
from tuner.study.facts import CONFIRMATION
from tuner.study.presets import PRESETS, Plan
from tuner.study.storage import Storage

ENOUGH = 0.5
"""Of the regret of winners that were tuned on one host, what those tuned on all may have."""
CHANGED = (-1.0, 0.3)
"""What an effect is multiplied by on a host that is unlike: from turned round to next to nothing."""
ASCENTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What became of one server's two studies; worths are true, in log points, on the worst host."""

    server: int
    best: float
    """The most that one configuration gives on every host."""
    one: float
    """Of the winner that was tuned on one host; 0 where nothing was claimed."""
    every: float
    """Of the winner that was tuned on all."""
    one_there: float
    """What the first winner gives on the host on which it was tuned."""
    verdicts: tuple[str, str]
    trials: tuple[int, int]
    cpu_s: float

    @property
    def regrets(self) -> tuple[float, float]:
        return self.best - self.one, self.best - self.every


def tune(number: int, hosts: int, unlike: int, minutes: float) -> Tuned:
    """Play both studies of one server; the same arguments give the same result but for the CPU time."""
    began_s = time.process_time()
    server = draw_server(number)
    space = without_presets(with_hints(load_family(server.family), server.hints))
    drawn = draw_hosts(server, hosts, unlike)
    plan = PRESETS["quick"].fit(minutes=minutes, trials=None)
    first = next(iter(drawn))
    one, verdict_of_one, trials_of_one = _tune_on_one(server, drawn[first], space, plan)
    every, verdict, trials = _tune_on_all(server, drawn, space, plan.on(hosts))
    return Tuned(
        server=number,
        best=best_everywhere([*drawn.values()], space),
        one=worth_on_worst([*drawn.values()], space, one),
        every=worth_on_worst([*drawn.values()], space, every),
        one_there=worth_on_worst([drawn[first]], space, one),
        verdicts=(verdict_of_one, verdict),
        trials=(trials_of_one, trials),
        cpu_s=time.process_time() - began_s,
    )


def draw_hosts(server: Server, hosts: int, unlike: int) -> dict[str, Server]:
    """Return the server as it is on each host: the last ones are unlike the others, each in its own way."""
    return {
        f"ssh://host{index}": server if index < hosts - unlike else _change(server, index)
        for index in range(hosts)
    }


def _change(server: Server, host: int) -> Server:
    rng = Random(f"server {server.number} on host {host}")  # noqa: S311 - no secret
    changed = set(rng.sample(range(len(server.effects)), math.ceil(len(server.effects) / 2)))
    return replace(
        server,
        effects=tuple(
            replace(effect, size=effect.size * rng.uniform(*CHANGED)) if index in changed else effect
            for index, effect in enumerate(server.effects)
        ),
    )


def worth_on_worst(servers: Sequence[Server], space: Space, config: Config) -> float:
    """Return the true log ratio to the default on the host where it is least."""
    return min(each.truth(config) - each.truth(space.default()) for each in servers)


def best_everywhere(servers: Sequence[Server], space: Space) -> float:
    """Return about the most that one configuration gives on every host, by ascent setting by setting."""
    default = dict(space.default())
    config, best = default, 0.0
    for _ in range(ASCENTS):
        for effect in servers[0].effects:
            for value in candidates(effect.setting):
                tried = {**config, effect.setting.name: value}
                worth = worth_on_worst(servers, space, tried)
                if worth > best and all(each.fault(tried) is None for each in servers):
                    config, best = tried, worth
    return best


def _tune_on_one(server: Server, there: Server, space: Space, plan: Plan) -> tuple[Config, str, int]:
    host = DrawnHost(server=there, seed=server.number)
    with TemporaryDirectory(prefix="robust-") as folder:
        settings = _write(server, Path(folder))
        experiment = make_campaign(settings, host, open_in_memory(host.clock), plan=plan, space=space)
        try:
            verdict = run_campaign(experiment)
        except TunerError as error:
            verdict = f"{type(error).__name__}: {error}"
    return _shipped(experiment.storage, space, verdict), verdict, len(experiment.trials)


def _tune_on_all(
    server: Server, there: Mapping[str, Server], space: Space, plan: Plan
) -> tuple[Config, str, int]:
    hosts: dict[str, SimulatedHost] = {
        name: DrawnHost(server=each, seed=1000 * server.number + index)
        for index, (name, each) in enumerate(there.items())
    }
    with TemporaryDirectory(prefix="robust-") as folder:
        settings = _write(server, Path(folder), f"targets: [{', '.join(hosts)}]\nacross: worst\n")
        played = play(settings, hosts, plan=plan, space=space)
    verdict = played.verdict or "; ".join(map(str, played.failures.values()))
    return _shipped(played.storage, space, verdict), verdict, len(played.storage.trials())


def _shipped(storage: Storage, space: Space, verdict: str) -> Config:
    planned = storage.recall(CONFIRMATION)
    return planned.config if verdict == CONFIRMED and planned is not None else space.default()


def _write(server: Server, folder: Path, more: str = "") -> Study:
    """Write the study as `tuner init` does: where the default fails too much, no more than it is allowed."""
    family, path = server.family, folder / "drawn.yaml"
    fails = server.failing.rate(load_family(family).default()) > ALLOWED
    text = STUDY.format(
        servers=", ".join(family.servers), space=family.space, keepalive=str(family.keepalive).lower(),
        optimizer="noisy-gp", seed=server.number,
        limit="default" if fails else f"{ALLOWED:g}",
    )  # fmt: skip
    path.write_text(text + more)
    return load_study(path)


def main() -> int:
    """Play the studies, print a row for each server, and compare the regrets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--unlike", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.servers)
    with ProcessPoolExecutor(options.workers) as pool:
        played = [
            pool.submit(tune, number, options.hosts, options.unlike, options.minutes) for number in numbers
        ]
        found = []
        print("| server | best on the worst host | tuned on one | tuned on all | on its own host | trials |")
        print("|---:|---:|---:|---:|---:|---:|", flush=True)
        for each in played:
            one = each.result()
            found.append(one)
            worths = (math.exp(log) for log in (one.best, one.one, one.every, one.one_there))
            shown = " | ".join(f"{worth:.3f}×" for worth in worths)
            print(f"| {one.server} | {shown} | {one.trials[0]}, {one.trials[1]} |", flush=True)
    if options.json:
        options.json.write_text("".join(f"{json.dumps(asdict(each))}\n" for each in found))
    of_one, of_all = (fmean(each.regrets[side] for each in found) for side in (0, 1))
    ratio = of_all / of_one if of_one > 0 else math.inf
    print(
        f"\nmean worst-host regret: {of_one:.3f} tuned on one, {of_all:.3f} tuned on all: ratio {ratio:.2f}"
    )
    return 0 if ratio <= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())

"""Studies that nobody ran: real spaces, real records, goodput from a formula and seeded noise."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from tuner.explain.study import explain
from tuner.optimize.sparse import draw_sparse
from tuner.ports import Config, Failures, Latency, Scalar
from tuner.records import Blame, Failure, Fingerprint, Role, State, Timing, Trial, Verdict, Window
from tuner.report.conclusions import conclude
from tuner.report.summary import Summary, gather_arm, timing
from tuner.space import Space, SpaceFacts, load_space
from tuner.statistics.age import find_age
from tuner.statistics.confirmation.paired_gain import judge_pairs
from tuner.statistics.mechanism import Mechanism
from tuner.statistics.ranking import follow_incumbent, rank

FINGERPRINT = Fingerprint(
    host="web1", kernel="6.18.44", cpu="Example CPU", cores=2, memory_mib=7900,
    servers={"nginx": "1.22.1", "sysctl": "6.18.44"}, generator="wrk 4.1.0", co_located=True,
    server_cpus=(0,), generator_cpus=(1,),
)  # fmt: skip

FAILURES = (
    Failure(kind="rejected", reason="nginx: [emerg] bad value"),
    Failure(kind="not ready", reason="no answer in 5 s"),
)

SPACE = {
    "space": "small",
    "server": "nginx",
    "title": "A few settings of nginx",
    "parameters": {
        "worker_processes": {
            "kind": "int", "low": 1, "high": "2 * cores", "scale": "log", "default": "auto",
            "special": {"auto": "auto"}, "why": "One worker leaves a CPU to others.", "source": "manual",
        },
        "worker_connections": {
            "kind": "int", "low": 256, "high": 16384, "scale": "log", "default": 768,
            "why": "Connections of one worker.", "source": "manual",
        },
        "listen_backlog": {
            "kind": "int", "low": 128, "high": 4096, "scale": "log", "default": 511,
            "why": "Connections that wait.", "source": "manual",
        },
        "sendfile": {"kind": "bool", "default": True, "why": "Without a copy.", "source": "manual"},
        "tcp_nopush": {
            "kind": "bool", "default": True, "when": "sendfile", "why": "Full packets.", "source": "manual",
        },
        "open_file_cache": {
            "kind": "int", "low": 100, "high": 10000, "scale": "log", "default": "off",
            "special": {"off": 0}, "why": "Keeps files open.", "source": "manual",
        },
        "keepalive_requests": {
            "kind": "int", "low": 100, "high": 1000000, "scale": "log", "default": 1000,
            "why": "Requests of one connection.", "source": "manual",
        },
        "keepalive_timeout": {
            "kind": "int", "low": 5, "high": 300, "unit": "s", "default": 75,
            "why": "How long an idle one stays.", "source": "manual",
        },
        "aio": {
            "kind": "categorical", "choices": ["off", "threads"], "default": "off",
            "why": "Reads in threads.", "source": "manual",
        },
    },
}  # fmt: skip


OF_THE_CACHE = {
    "space": "cache",
    "server": "nginx",
    "parameters": {
        "open_file_cache_valid": {
            "kind": "int", "low": 1, "high": 600, "scale": "log", "unit": "s", "default": 60,
            "when": "open_file_cache != 0", "why": "How long it is believed.", "source": "manual",
        },
    },
}  # fmt: skip
"""A setting that the default switches off."""


@cache
def small_space(*, with_cache: bool = False) -> Space:
    facts = SpaceFacts(
        names={"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576},
        versions={"nginx": (1, 22, 1)},
    )
    return load_space([SPACE, OF_THE_CACHE] if with_cache else [SPACE], facts=facts, base=Path())


def worth(config: Config) -> float:
    """Log speedup of a configuration: three settings matter, nothing else does."""
    total = 0.0
    if not config.get("sendfile", True):
        total += 0.12
    if config.get("open_file_cache"):
        total += 0.15
    return total + 0.02 * math.log(float(config.get("keepalive_requests", 1000)) / 1000)


class Clock:
    """Seconds of a study that runs in no time."""

    def __init__(self) -> None:
        self.now = 1767225600.0

    def advance(self, seconds: float) -> float:
        self.now += seconds
        return self.now


def make_window(rng: Random, clock: Clock, log_goodput: float, *, failed: int = 0) -> Window:
    goodput = math.exp(log_goodput + rng.gauss(0, 0.02))
    p99 = 400_000 / goodput
    return Window(
        started_s=clock.advance(1.2), duration_s=1.0, correct=round(goodput),
        failures=Failures(read=failed), bytes=round(goodput) * 850,
        latency=Latency(
            quantiles_ms={0.5: p99 / 3, 0.99: p99}, samples=round(goodput), corrected=True, mean_ms=p99 / 3
        ),
        generator_cpu=0.8,
    )  # fmt: skip


def make_trial(  # noqa: PLR0913 - what a trial is
    rng: Random, clock: Clock, *, number: int, role: Role, config: Config, arm: str = "",
    block: int | None = None, worth: Callable[[Config], float] = worth,
) -> Trial:  # fmt: skip
    level = math.log(100_000) + worth(config) + rng.gauss(0, 0.01)
    begun = clock.advance(1.0)
    windows = tuple(make_window(rng, clock, level, failed=number % 7 == 3) for _ in range(2))
    return Trial(
        number=number, role=role, config=config, state=State.COMPLETE, started_s=begun, windows=windows,
        arm=arm, block=block, session="one",
        timing=Timing(suggest_s=0.01, deploy_s=0.4, load_s=3.4, store_s=0.004),
    )  # fmt: skip


def make_trials(
    space: Space, *, searches: int, pairs: int, winner: Config, seed: int = 1,
    worth: Callable[[Config], float] = worth,
) -> tuple[Trial, ...]:  # fmt: skip
    """Make a whole study: baselines, search with a few failures and a pruned trial, pairs."""
    rng, clock = Random(seed), Clock()  # noqa: S311 - no secret
    default = space.default()
    trials: list[Trial] = []

    def add(role: Role, config: Config, arm: str = "", block: int | None = None) -> None:
        trials.append(
            make_trial(
                rng, clock, number=len(trials), role=role, config=config, arm=arm, block=block, worth=worth
            )
        )

    for _ in range(4 if searches else 0):
        add(Role.BASELINE, default)
    for index in range(searches):
        point = draw_sparse(space.dimensions, space.encode(default), rng=rng)
        add(Role.SEARCH, space.decode(point))
        if index % 9 == 4:
            trials[-1] = replace(trials[-1], state=State.PRUNED)
        if index % 11 == 5:
            trials[-1] = replace(trials[-1], state=State.FAILED, windows=(), failure=FAILURES[index % 2])
        if index % 13 == 7:
            verdict = Verdict(check="steal", blame=Blame.WARNING, reason="2.4 % of the CPU time was stolen")
            first, *rest = trials[-1].windows
            trials[-1] = replace(trials[-1], windows=(replace(first, verdicts=(verdict,)), *rest))
        if index % 3 == 2:
            add(Role.BASELINE, default)
    for block in range(pairs):
        for arm in rng.sample(["default", "winner"], 2):
            add(Role.CONFIRM, default if arm == "default" else winner, arm=arm, block=block)
    return tuple(trials)


def make_summary(
    *, searches: int = 40, pairs: int = 6, winning: Mapping[str, Scalar] | None = None, seed: int = 1,
    space: Space | None = None, study: str = "nginx-static", stop_reason: str = "confirmed",
) -> Summary:  # fmt: skip
    """Summarize a made-up study; without pairs it has no winner."""
    space = space or small_space()
    winner = space.complete(
        winning if winning is not None
        else {"sendfile": False, "open_file_cache": 2000, "keepalive_requests": 100000, "worker_processes": 1}
    )  # fmt: skip
    trials = make_trials(space, searches=searches, pairs=pairs, winner=winner, seed=seed)
    default = space.default()
    ranking = rank(space, trials, ())
    confirmed = [trial for trial in trials if trial.role is Role.CONFIRM]
    of_default = [trial for trial in confirmed if trial.arm == "default"]
    of_winner = [trial for trial in confirmed if trial.arm == "winner"]
    logs = [
        (before.log_goodput or 0.0, after.log_goodput or 0.0)
        for before, after in zip(of_default, of_winner, strict=True)
    ]
    best = ranking.incumbent
    chosen = winner if pairs else best.config if best else default
    gain = replace(judge_pairs(logs), age=find_age(of_default, of_winner)) if pairs else None
    found = explain(space, trials, chosen, metric="goodput_rps", gain=gain, seed=seed)
    return Summary(
        study=study, state="finished" if pairs else "stopped", stop_reason=stop_reason if pairs else "",
        preset="quick", created="2026-01-01 00:00 UTC", version="0.1.0",
        workload="wrk, 100 connections, keep-alive, /index.html", objective="maximize goodput_rps",
        constraints=("failure_rate <= 0.001",), fingerprint=FINGERPRINT, space=space, trials=trials,
        noise=ranking.noise, speedups=ranking.speedups, climb=follow_incumbent(trials, ranking),
        default=gather_arm(
            default, of_default or [trial for trial in trials if trial.role is Role.BASELINE]
        ),
        incumbent=(best.config, best.posterior) if best else None,
        winner=gather_arm(winner, of_winner) if pairs else None,
        gain=gain,
        changes=space.changes(chosen),
        explanation=conclude(space, found),
        mechanisms=(
            Mechanism(
                name="server CPU", default=9.6e-6, winner=6.9e-6, ratio=0.72,
                sentence="The server needs 28 % less CPU time per response.",
            ),
        ) if pairs else (),
        timing=timing(trials),
    )  # fmt: skip

"""`tuner check`: everything that can be refused is refused before anything runs."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from tuner.campaign.pace import choose_window
from tuner.campaign.prepare import Setup, prepare
from tuner.campaign.progress import Progress
from tuner.commands.preview import Preview, preview
from tuner.commands.rehearsal import rehearse
from tuner.deploy.deployment import Deployment
from tuner.deploy.discovery import DiscoveredServer
from tuner.deploy.managed import ManagedTarget
from tuner.errors import TargetError, TrialFailed
from tuner.hosts.conflicts import Conflict
from tuner.hosts.disk_room import LogGrowth, measure_growth
from tuner.interrupts import signals_interrupt
from tuner.measure.calibrate import Calibration
from tuner.measure.rate import refuse_rate
from tuner.measure.rounds import run_round
from tuner.measure.unanswered import is_watched, patience_s
from tuner.measure.validity.load import AGAIN
from tuner.measure.window import Load, example_workload, run_counted_window, run_window
from tuner.ports import FAILURE_KINDS, Host
from tuner.records import P99, Check, Metric, Role, State, Trial, Window
from tuner.report.fidelity import Fidelity, compare
from tuner.report.wording import capitalize, say_duration, say_milliseconds, say_number
from tuner.restore.recovery import describe_use
from tuner.shell_words import write_command
from tuner.space import facts_from_json
from tuner.study import Study
from tuner.study.lock import locked
from tuner.study.objective import FAILURE_RATE, RELATIVE, UNLIKE_DEFAULT
from tuner.study.presets import LEAST_FOR_TAIL, PRESETS, Plan
from tuner.study.trust import name_programs, refuse_large_numbers, refuse_own_settings, refuse_untrusted

MOST_FAILURES = 0.01
MOST_WINDOWS = 3
"""Failures come in bursts: the default is refused when all of so many windows have too many."""
WINDOW_S = 1.0
SEES_HOST = (
    "sandbox: servers in the sandbox see this machine's processes, because a new /proc cannot be mounted. "
    "Tune servers that you do not trust as an ordinary user, or on a separate machine."
)
IDENTIFY_PROC = ("stat", "-c", "%d", "/proc")
PROC_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How long each trial is loaded, and why."""

    window_s: float
    warmup_s: float
    timeout_s: float | None
    """Seconds after which a client without a response counts as failed; None: the whole window."""
    reason: str

    def __str__(self) -> str:
        """Return it as one sentence."""
        silence = "the whole window" if self.timeout_s is None else f"{self.timeout_s:g} s"
        return (
            f"of {self.window_s:g} s after {self.warmup_s:g} s of warm-up ({self.reason}); a client without "
            f"a response for {silence} counts as failed"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a check found."""

    setup: Setup
    window: Window
    deploy_s: float
    calibration: Calibration | None = None
    sees_host: bool = False
    """Whether servers in a sandbox see the processes of the machine: see SEES_HOST."""
    preview: Preview | None = None
    """Of installed services, what a run may change."""
    shows_plan: bool = False
    conflicts: tuple[Conflict, ...] = ()
    unseen: tuple[str, ...] = ()
    """What a run needs and this check did not try."""
    logs: tuple[LogGrowth, ...] = ()
    """Of installed services, how fast the load fills disks."""
    minutes: float = 0.0
    """Wall time of the run."""
    windows: Windows | None = None
    """How long each trial is loaded; None where windows end after a number of requests."""
    judged: tuple[str, ...] = ()
    """A sentence for each request whose correct response is not known by its length."""
    mixes: Mapping[str, Fidelity] = field(default_factory=dict)
    """Load → how well its mix was sent."""
    check_loads: Mapping[str, Window] = field(default_factory=dict)
    """Check load with a mix of its own → what the default gave under it."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What does not stop a run."""
        seen = (SEES_HOST,) if self.sees_host else ()
        checks = (f"{each.check}: {each.reason}" for each in self.window.verdicts)
        named = (
            f"{name} has no effect under this load ({reason}); tuner tunes this parameter because the study "
            "names it"
            for name, reason in self.setup.space.inert_but_tuned.items()
        )
        unproven = (
            f"servers: {name} has no read_back, so tuner cannot check that the requested values are active"
            for name, options in self.setup.settings.options.items()
            if "read_back" not in options.commands
        )
        unverified = (
            f"load.verify: false: the certificate of {each.path} is not verified, so tuner accepts any "
            "server at this address"
            for each in self.setup.settings.all_loads
            if not each.verifies
        )
        failing = (
            f"{name}: {each.failures.total:,} of {each.correct + each.failures.total:,} requests of the "
            f"default failed: {each.failures.describe()}"
            for name, each in self.check_loads.items()
            if each.failure_rate > MOST_FAILURES
        )
        return (
            *seen, *checks, *named, *unproven, *unverified, *failing, *self._tail_too_small(),
            *self._bounds_above(), *map(str, self.conflicts),
        )  # fmt: skip

    def _tail_too_small(self) -> Iterator[str]:
        """Yield a sentence where windows have too few requests for the p99 that the study minimizes."""
        settings = self.setup.settings
        if self.windows is None or settings.objective.metric is not Metric.LATENCY_P99:
            return
        requests = round((settings.load.rate_rps or 0.0) * self.windows.window_s)
        if requests < LEAST_FOR_TAIL:
            yield (
                f"latency_p99_ms: a window has {requests:,} requests, so its p99 depends on only the "
                f"{math.ceil(requests / 100)} slowest requests. Use a longer preset, or raise `budget: "
                "window_s` or `rate:`"
            )

    def _bounds_above(self) -> Iterator[str]:
        """Yield a sentence for each bound that the default broke in the window that was measured."""
        baseline = Trial(
            number=0, role=Role.BASELINE, config={}, state=State.COMPLETE, started_s=self.window.started_s,
            windows=(self.window,),
        )  # fmt: skip
        for each in self.setup.settings.constraints:
            is_above = self.window.is_valid and each.slack(baseline, ()) > 0
            if is_above and each.default_may_fail:
                yield (
                    f"constraint {each}: the default does not meet this constraint, and the run looks for a "
                    "configuration that does"
                )
            elif is_above:
                yield (
                    f"constraint {each}: the default itself exceeds this limit on this host. If the "
                    f"calibration finds the same, the run ends. For no worse than now, write {each.metric} "
                    f"<= {RELATIVE}"
                )

    def as_text(self, *, is_verbose: bool = False) -> str:
        """Return what limits a run, the three things that matter, and whether it can start.

        Verbose, all that was found stands before that.
        """
        settings = self.setup.settings
        whole = write_command("tuner", "check", settings.path, "--trust")
        rest = f"; some parts are not tried yet: {whole}" if self.unseen else ""
        ready = f"ready      {write_command('tuner', 'run', settings.path)}{rest}"
        details = self._tell_details() if is_verbose else ()
        return "\n".join(
            [*details, *self._tell_limits(is_verbose=is_verbose), *self._tell_essentials(), ready]
        )

    def _tell_details(self) -> Iterator[str]:
        """Yield where what is run, and what is left as it is."""
        setup, found, settings = self.setup, self.setup.fingerprint, self.setup.settings
        is_managed = isinstance(setup.target, ManagedTarget)
        address = f"{setup.host.name}: " if is_managed else ""
        yield f"study      {settings.name} ({settings.path})"
        yield (
            f"machine    {address}{found.host}, Linux {found.kernel}, {found.cores} CPUs, "
            f"{found.memory_mib:,} MiB{f' (limits: {found.limits})' if found.limits else ''}"
        )
        if isinstance(setup.target, ManagedTarget):
            yield from (f"server     {_describe(server)}" for server in setup.target.servers)
        else:
            yield f"sandbox    in memory; the default started in {self.deploy_s:.2f} s"
        yield f"load       {settings.describe_load()}; {found.generator}"
        yield f"placement  {setup.placement.note}"
        yield from (f"cannot act {each}" for each in _group_by_reason(setup.space.inert))
        yield from (f"left out   {each}" for each in _group_by_reason(setup.space.left_out))
        yield from capacity_lines(setup, "now" if is_managed else "default")
        if self.windows is not None:
            yield f"windows    {self.windows}"

    def _tell_limits(self, *, is_verbose: bool) -> Iterator[str]:
        """Yield what to know before a run, and what was asked for."""
        for risk, names in self.setup.space.risks.items():
            yield f"risk       {', '.join(names)}: {risk}; the study allows tuner to tune this"
        yield from (f"logs       {each.describe(self.minutes)}" for each in self.logs)
        yield from (f"page       {each}" for each in self.judged)
        for name, each in self.mixes.items():
            yield f"mix        {f'{name}: ' if name else ''}{each}"
        yield from (f"warning    {each}" for each in self.warnings)
        yield from (f"not tried  {each}" for each in self.unseen)
        yield from self.calibration.lines() if self.calibration is not None else ()
        if self.preview is not None and self.shows_plan:
            yield self.preview.as_text(is_verbose=is_verbose)

    def _tell_essentials(self) -> Iterator[str]:
        """Yield what is measured and what it gives now, what a run writes, and how long it searches."""
        setup, found, settings = self.setup, self.setup.fingerprint, self.setup.settings
        versions = ", ".join(f"{name} {version}".strip() for name, version in found.servers.items())
        is_managed = isinstance(setup.target, ManagedTarget)
        served = _describe_window(self.window, settings.load.rate_rps)
        measured = f"{versions} on {found.host}: {served} with {found.generator}"
        yield f"{'now    ' if is_managed else 'default'}    {measured}"
        if not is_managed:
            yield f"writes     {settings.folder}/ only; tuner does not touch installed services"
        elif not self.shows_plan:
            yield f"changes    shown by: {write_command('tuner', 'check', settings.path, '--plan')}"
        tuned, idle = len({each.parameter for each in setup.space.dimensions}), len(setup.space.inert)
        others = f"; {idle} more have no effect under this load (to list them, add -v)" if idle else ""
        takes = say_duration(60 * self.minutes)
        yield (
            f"search     tuner tunes {tuned} parameters in about {takes} with preset "
            f"{settings.preset}{others}"
        )

    def as_json(self) -> Mapping[str, Any]:
        """Return the same for scripts."""
        setup, found = self.setup, self.setup.fingerprint
        by_load = {name: part.goodput_rps for name, part in self.window.parts.items()}
        rate_rps = setup.settings.load.rate_rps
        measured = {
            "goodput_rps": self.window.goodput_rps, "failures": self.window.failures.total,
            **({"by_load": by_load} if by_load else {}),
            **({"rate_rps": rate_rps, "latency_p99_ms": _p99_ms(self.window)} if rate_rps else {}),
        }  # fmt: skip
        shown: dict[str, Any] = {
            "study": setup.settings.name,
            "servers": dict(found.servers),
            "generator": found.generator,
            "host": found.host,
            "kernel": found.kernel,
            "co_located": found.co_located,
            "parameters": sorted({each.parameter for each in setup.space.dimensions}),
            "risks": setup.space.risks,
            "cannot_act": setup.space.inert,
            "left_out": dict(setup.space.left_out),
            "capacity": {"default": setup.space.capacity(setup.space.default())},
            "warnings": list(self.warnings),
            "not_tried": list(self.unseen),
            "judged": list(self.judged),
            "mix": {name: each.as_json() for name, each in self.mixes.items()},
            "windows": None if self.windows is None else asdict(self.windows),
        }
        if self.preview is not None:
            logs = {each.mount_point: each.as_json() for each in self.logs}
            return {**shown, "now": measured, "logs": logs, "plan": self.preview.as_json()}
        return {
            **shown,
            "server_cpus": list(found.server_cpus),
            "generator_cpus": list(found.generator_cpus),
            "default": {**measured, "deploy_s": self.deploy_s},
            "noise": None if self.calibration is None else self.calibration.as_json(),
        }


def check_study(
    settings: Study,
    *,
    trusts: bool,
    measure_noise: bool = False,
    shows_plan: bool = False,
    progress: Progress,
) -> Findings:
    """Prepare everything that a run needs and load the default for a second.

    A sandbox is made for that; installed services are measured as they are, and nothing is changed.

    Args:
        settings: the study.
        trusts: whether its own commands are run, and settings that tuner's own spaces do not have are made.
        measure_noise: whether to find out which gain can be proved here; in a sandbox only.
        shows_plan: whether the text shows what a run may change; of installed services only.
        progress: told what happens.

    Raises:
        UsageError: the study or what belongs to it is wrong.
        TargetError: the machine cannot run it, or the default configuration fails.
    """
    if not trusts:
        refuse_untrusted(settings.path, name_programs(settings))
    is_managed = settings.target.is_managed
    with nullcontext() if is_managed else locked(settings), signals_interrupt():
        setup = prepare(settings)
        if not trusts:
            refuse_own_settings(settings.path, setup.space, setup.facts.values())
            if not is_managed:
                refuse_large_numbers(settings, setup.space, facts_from_json(setup.space_facts))
        unseen = rehearse(settings, setup, trusts=trusts)
        plan = settings.plan(settings.preset)
        plan = plan.fit(minutes=settings.minutes, trials=settings.trials)
        seen, conflicts = _look_around(setup, plan)
        progress.trial_begins(Role.BASELINE, "the default")
        try:
            with setup.target.deploy_default(setup.space.default()) as deployment:
                sees_host = not is_managed and (
                    _identify_proc(deployment.load_places[0].host) == _identify_proc(setup.host)
                )
                if not is_managed:  # what has just started is warmed up first
                    run_window(deployment, setup.load, WINDOW_S)
                with _watching_logs(setup) as logs:
                    window, windows = measure_at_pace(deployment, setup.load, settings, plan)
                    refuse_rate(settings, setup.load, [window], deployment)
                    checked = _measure_check_loads(deployment, setup.load, settings)
        except TrialFailed as failed:
            raise TargetError(_describe_failure(setup, failed)) from failed
        refuse_failures(settings, window, expected=deployment.load.expected)
        calibration = None
        if measure_noise:
            from tuner.measure.calibrate import calibrate

            calibration = calibrate(
                setup.target, setup.space.default(), setup.load, plan,
                lambda done, total: progress.stage("calibrate", done, total),
                metric=settings.objective.metric,
            )  # fmt: skip
    return Findings(
        setup=setup, window=window, deploy_s=deployment.duration_s, calibration=calibration,
        sees_host=sees_host, preview=seen, shows_plan=shows_plan, conflicts=conflicts, unseen=unseen,
        logs=tuple(logs), minutes=plan.minutes, windows=windows,
        mixes=_compare_mixes(deployment, window, checked, settings),
        check_loads={name: window for name, (_, window) in checked.items()},
        judged=tuple(
            said for each in (deployment.load, *deployment.other_loads.values()) for said in each.judged
        ),
    )  # fmt: skip


def _measure_check_loads(
    deployment: Deployment, load: Load, settings: Study
) -> Mapping[str, tuple[Deployment, Window]]:
    """Return check load with a mix of its own → what is asked, and a window of the default.

    Raises NotReady where a response is another than the study says.
    """
    asked = {each.name: deployment.under_check_load(each.name) for each in settings.check_loads}
    alone = replace(load, beside=(), requests_total=None, rate_rps=None)
    return {
        each.name: (asked[each.name], measure_default(asked[each.name], replace(alone, shape=each.load)))
        for each in settings.check_loads
    }


def _compare_mixes(
    deployment: Deployment,
    window: Window,
    checked: Mapping[str, tuple[Deployment, Window]],
    settings: Study,
) -> Mapping[str, Fidelity]:
    """Return load → how well its mix was sent; the name of a single load is empty."""
    sent = {
        name: (deployment.under(name).load, part) for name, part in (window.parts or {"": window}).items()
    } | {name: (asked.load, part) for name, (asked, part) in checked.items()}
    named = {each.name: each.load for each in (*settings.loads, *settings.check_loads)}
    found = {
        name: compare(load.requests, [part], connections=named.get(name, settings.load).connections)
        for name, (load, part) in sent.items()
    }
    return {name: each for name, each in found.items() if each is not None}


@contextmanager
def _watching_logs(setup: Setup) -> Iterator[list[LogGrowth]]:
    """Add to the list, in the end, how fast the load filled the disks of a host with installed services."""
    found: list[LogGrowth] = []
    if not isinstance(setup.target, ManagedTarget):
        yield found
        return
    room = setup.target.room
    (before,) = setup.host.run_all([room.command])
    began_s = time.monotonic()
    yield found
    took_s = time.monotonic() - began_s
    (after,) = setup.host.run_all([room.command])
    found += measure_growth(room, before, after, took_s)


def capacity_lines(setup: Setup, name: str) -> list[str]:
    """Return what each server holds at once before anything is changed, as lines of a check."""
    held = setup.space.describe_capacity(setup.space.default())
    allowed = (
        "; a winner may have less capacity (allow: [capacity])" if setup.space.allows_less and held else ""
    )
    return [
        f"capacity   {name}{f' of {server}' if len(held) > 1 else ''}: {text}{allowed}"
        for server, text in held.items()
    ]


def measure_at_pace(
    deployment: Deployment, load: Load, settings: Study, plan: Plan
) -> tuple[Window, Windows | None]:
    """Return a window of the default, as long as a slow application needs it, and which windows a run has."""
    window = measure_default(deployment, load)
    if load.requests_total is not None:
        return window, None
    clients = load.shape.connections * load.shape.streams
    response_s, window_s, asked_s = 0.0, plan.window_s, WINDOW_S
    while not load.beside:
        response_s, window_s = choose_window(plan, [window], clients=clients, is_silent=not window.correct)
        if _worst_failure_rate(window) <= MOST_FAILURES or window_s <= asked_s:
            break
        # A second cuts most of its clients off in the middle of their first response.
        plan, asked_s = plan.at_pace(window_s), window_s
        window = measure_default(deployment, replace(load, response_s=response_s), window_s)
    return window, describe_windows(load, settings, plan.at_pace(window_s), response_s)


def describe_windows(load: Load, settings: Study, plan: Plan, response_s: float) -> Windows:
    """Return how long each trial is loaded, and what decided that."""
    usual = PRESETS[settings.preset]
    tail_s = settings.plan(settings.preset).window_s if load.rate_rps is not None else 0.0
    if plan.keeps_window or plan.keeps_warmup:
        reason = "as the study file sets them"
    elif usual.window_s < plan.window_s <= tail_s:
        reason = f"a p99 needs {LEAST_FOR_TAIL:,} requests in a window"
    elif plan.window_s > usual.under(load.shape.connections).window_s:
        reason = f"a response of the default takes about {response_s:.1f} s"
    elif plan.window_s > usual.window_s:
        reason = f"{load.shape.connections:,} connections need more time to open"
    else:
        reason = f"preset {settings.preset}"
    workload = replace(
        example_workload(load.shape),
        duration_s=plan.window_s,
        response_s=response_s,
        timeout_s=load.timeout_s,
    )
    is_seen = is_watched(load.generator, workload)
    return Windows(
        window_s=plan.window_s, warmup_s=plan.warmup_s, reason=reason,
        timeout_s=round(patience_s(workload), 1) if is_seen else None,
    )  # fmt: skip


def measure_default(deployment: Deployment, load: Load, window_s: float = WINDOW_S) -> Window:
    """Return the first window without too many failures, or the last of those that all had too many."""
    for _ in range(MOST_WINDOWS):
        window = run_round(partial(_count, window_s), deployment, load, turn=0)
        if _worst_failure_rate(window) <= MOST_FAILURES:
            break
    return window


def _count(window_s: float, deployment: Deployment, load: Load) -> Window:
    return run_counted_window(deployment, load, window_s)


def _worst_failure_rate(window: Window) -> float:
    """Return failed requests per request; under several loads, of that with the most."""
    return max((part.failure_rate for part in window.parts.values()), default=window.failure_rate)


def _p99_ms(window: Window) -> float | None:
    return None if window.latency is None else window.latency.quantiles_ms.get(P99)


def _describe_window(window: Window, rate_rps: float | None) -> str:
    """Return what a window gave, under each of several loads; at a rate, what was due and the p99."""
    parts = {f"{name} ": part for name, part in window.parts.items()} or {"": window}
    rates = ", ".join(f"{name}{part.goodput_rps:,.0f}" for name, part in parts.items())
    due = ""
    if rate_rps is not None:
        due = f" of {rate_rps:,.8g} that are due, p99 {say_milliseconds(_p99_ms(window))}"
    return f"{rates} requests/s{due}, {window.failures.total} failures"


def refuse_failures(settings: Study, window: Window, *, expected: str) -> None:
    """Raise TargetError when the default fails more requests than a study can be based on.

    A study that looks for what fails less can be based on any. `expected` says which answer is right.
    """
    seeks = any(each.metric == FAILURE_RATE and each.default_may_fail for each in settings.constraints)
    if _worst_failure_rate(window) > MOST_FAILURES and not seeks:
        failed, asked = window.failures.total, window.correct + window.failures.total
        raise TargetError(
            f"{settings.path}: load: {failed:,} of {asked:,} requests of the default failed: "
            f"{window.failures.describe()}. {_suggest(window, expected)}"
        )


def _suggest(window: Window, expected: str) -> str:
    """Return what was expected and seen, and what can help, by the kind of most failures."""
    if any(verdict.check is Check.GENERATOR for verdict in window.verdicts):
        said = (each.reason for each in window.verdicts if each.check is Check.GENERATOR)
        return " ".join(f"{capitalize(each.rstrip('.').removesuffix(AGAIN))}." for each in said)
    failures = window.failures
    most = max(FAILURE_KINDS, key=lambda kind: int(getattr(failures, kind)))
    if most == "length":
        answered = window.correct + failures.length + failures.status
        return (
            f"The correct response is {expected}; the responses had {window.bytes / max(1, answered):,.0f} "
            "bytes on average, which may include headers. If the page may change, write `body: any` under "
            "`load:`."
        )
    if most == "status":
        return (
            f"The correct response is {expected}. Read the log of the server and of its backend, or correct "
            "`load.path:` or `load.headers:`."
        )
    return (
        "Lower `connections:`, or search for a configuration that serves all requests: `constraints: "
        f"[{FAILURE_RATE} <= 0.001 {UNLIKE_DEFAULT}]`."
    )


def _look_around(setup: Setup, plan: Plan) -> tuple[Preview | None, tuple[Conflict, ...]]:
    """Return what a run may change of a host and what is worth a warning. Raises TargetError."""
    if not isinstance(setup.target, ManagedTarget):
        return None, ()
    if used := describe_use(setup.host):
        raise TargetError(" ".join(used))
    return preview(setup, setup.target, plan), setup.target.refuse_conflicts()


def _group_by_reason(reasons: Mapping[str, str]) -> list[str]:
    """Return `NAMES: reason` for each reason: what needs a backend is a dozen settings."""
    groups: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        groups.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in groups.items()]


def _describe(server: DiscoveredServer) -> str:
    installation, service = server.installation, server.installation.service
    version = f"{server.name} {'.'.join(map(str, installation.facts.version))}".strip()
    if service is None:
        return version
    how = f"systemd's {service.name}" if service.is_systemd else f"the service {service.name}"
    files = ", ".join(map(str, installation.files))
    return f"{version}, {how}, {say_number(len(installation.files), 'file')} read: {files}"


def _describe_failure(setup: Setup, failed: TrialFailed) -> str:
    if setup.settings.target.is_managed:
        return (
            f"{setup.host.name}: tuner cannot measure the installed configuration ({failed.kind}). {failed}"
        )
    return f"target: the default configuration fails ({failed.kind}). {failed}"


def _identify_proc(host: Host) -> bytes:
    """Read the number of the file system that shows the processes; a fresh one has another."""
    return host.run(IDENTIFY_PROC, timeout_s=PROC_TIMEOUT_S).stdout

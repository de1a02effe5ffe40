"""`tuner check`: everything that can be refused is refused before anything runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tuner.campaign.prepare import Rig, prepare
from tuner.campaign.progress import Progress
from tuner.errors import TargetError, TrialFailed
from tuner.interrupts import signals_interrupt
from tuner.measure.window import run_window
from tuner.ports import Host
from tuner.records import Role, Window
from tuner.space import facts_from_json
from tuner.study import Study
from tuner.study.lock import locked
from tuner.study.presets import PRESETS
from tuner.study.trust import name_programs, refuse_large_numbers, refuse_own_settings, refuse_untrusted

if TYPE_CHECKING:
    from tuner.measure.calibrate import Calibration

MOST_FAILURES = 0.01
SEES_HOST = (
    "sandbox: servers in it see this machine's processes, as no fresh /proc can be made there. Tune servers "
    "that you do not trust as an ordinary user, or on a machine of their own."
)
IDENTIFY_PROC = ("stat", "-c", "%d", "/proc")
PROC_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a check saw."""

    rig: Rig
    window: Window
    deploy_s: float
    calibration: "Calibration | None"
    sees_host: bool = False
    """Whether servers in a sandbox see the processes of the machine: see SEES_HOST."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What does not stop a run."""
        seen = (SEES_HOST,) if self.sees_host else ()
        return (*seen, *(f"{each.gate}: {each.reason}" for each in self.window.verdicts))

    def as_text(self) -> str:
        """Say everything in a few lines."""
        rig, found = self.rig, self.rig.fingerprint
        settings = rig.settings
        versions = ", ".join(f"{name} {version}".strip() for name, version in found.servers.items())
        lines = [
            f"study      {settings.name} ({settings.path})",
            f"servers    {versions}; private instances, the installed services are not touched",
            f"load       {settings.load.describe()}; {found.generator}",
            f"machine    {found.host}, Linux {found.kernel}, {found.cores} CPUs, {found.memory_mib:,} MiB",
            f"placement  {rig.placement.note}",
            f"space      {len({each.parameter for each in rig.space.dimensions})} parameters are tuned",
            *(f"left out   {name}: {reason}" for name, reason in rig.space.left_out.items()),
            f"writes     {settings.folder}/ only; each server lives in a sandbox in memory",
            (
                f"default    started in {self.deploy_s:.2f} s, {self.window.goodput_rps:,.0f} requests/s, "
                f"{self.window.failures.total} failures"
            ),
            *capacity_lines(rig, "default"),
            *(f"warning    {each}" for each in self.warnings),
        ]
        if self.calibration is not None:
            lines += self.calibration.lines()
        return "\n".join([*lines, f"ready      tuner run {settings.path}"])

    def as_json(self) -> Mapping[str, Any]:
        """Give the same for scripts."""
        found = self.rig.fingerprint
        return {
            "study": self.rig.settings.name,
            "servers": dict(found.servers),
            "generator": found.generator,
            "host": found.host,
            "kernel": found.kernel,
            "co_located": found.co_located,
            "server_cpus": list(found.server_cpus),
            "generator_cpus": list(found.generator_cpus),
            "parameters": sorted({each.parameter for each in self.rig.space.dimensions}),
            "left_out": dict(self.rig.space.left_out),
            "default": {
                "goodput_rps": self.window.goodput_rps,
                "failures": self.window.failures.total,
                "deploy_s": self.deploy_s,
            },
            "capacity": {"default": self.rig.space.capacity(self.rig.space.default())},
            "warnings": list(self.warnings),
            "noise": None if self.calibration is None else self.calibration.as_json(),
        }


def capacity_lines(rig: Rig, name: str) -> list[str]:
    """Say what each server holds at once before anything is changed, as lines of a check."""
    held = rig.space.describe_capacity(rig.space.default())
    allowed = "; a winner may hold less (allow: [capacity])" if rig.space.allows_less and held else ""
    return [
        f"capacity   {name}{f' of {server}' if len(held) > 1 else ''}: {text}{allowed}"
        for server, text in held.items()
    ]


def check_study(settings: Study, *, trusts: bool, measure_noise: bool, progress: Progress) -> Findings:
    """Prepare, deploy the default for real and load it for a second.

    Args:
        settings: the study.
        trusts: whether its own commands are run, and settings that tuner's own spaces do not have are made.
        measure_noise: whether to find out which gain can be proved here.
        progress: told what happens.

    Raises:
        UsageError: the study or what belongs to it is wrong.
        TargetError: the machine cannot run it, or the default configuration fails.
    """
    if not trusts:
        refuse_untrusted(settings.path, name_programs(settings))
    with locked(settings), signals_interrupt():
        rig = prepare(settings)
        if not trusts:
            refuse_own_settings(settings.path, rig.space, rig.facts.values())
            refuse_large_numbers(settings, rig.space, facts_from_json(rig.space_facts))
        progress.start_begins(Role.CONTROL, "the default")
        try:
            with rig.target.deploy(rig.space.default()) as deployment:
                deploy_s = deployment.duration_s
                sees_host = _identify_proc(deployment.load_places[0].host) == _identify_proc(rig.host)
                run_window(deployment, rig.load, 1.0)
                window = run_window(deployment, rig.load, 1.0)
        except TrialFailed as failed:
            msg = f"target: the default configuration fails ({failed.kind}). {failed}"
            raise TargetError(msg) from failed
        refuse_failures(settings, window)
        calibration = None
        if measure_noise:
            from tuner.measure.calibrate import calibrate

            plan = PRESETS[settings.preset].fit(minutes=settings.minutes, trials=settings.trials)
            calibration = calibrate(
                rig.target, rig.space.default(), rig.load, plan,
                lambda done, total: progress.stage("calibrate", done, total),
            )  # fmt: skip
    return Findings(rig=rig, window=window, deploy_s=deploy_s, calibration=calibration, sees_host=sees_host)


def _identify_proc(host: Host) -> bytes:
    """Read the number of the file system that shows the processes; a fresh one has another."""
    return host.run(IDENTIFY_PROC, timeout_s=PROC_TIMEOUT_S).stdout


def refuse_failures(settings: Study, window: Window) -> None:
    """Raise TargetError when the default fails more requests than a study can be based on."""
    if window.failure_rate > MOST_FAILURES:
        msg = (
            f"load: {window.failures.total} of {window.correct + window.failures.total} requests of the "
            f"default fail ({window.failures}). Lower `connections:` in {settings.path}."
        )
        raise TargetError(msg)

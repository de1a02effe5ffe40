"""Asks whether what a study found is still active, and with `measure` whether it is worth what it was."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from tuner import plugins
from tuner.campaign.prepare import Setup, find_target, take_fingerprint
from tuner.campaign.progress import NullProgress, Progress
from tuner.commands.apply import settings_for
from tuner.commands.contests.compare import ComparedMetric, Comparing, prepare_as_begun
from tuner.commands.regression.in_force import (
    Wanted,
    find_unlasting,
    find_wanted,
    read_installed,
    try_out,
)
from tuner.commands.regression.measuring import measure_until_decided
from tuner.commands.session import Reading
from tuner.deploy.managed import ManagedTarget
from tuner.errors import UsageError
from tuner.export import without_winner
from tuner.interrupts import signals_interrupt
from tuner.ports import Config, Facts
from tuner.records import Fingerprint
from tuner.report.regression import AppliedSetting, Measurement, Verification
from tuner.report.regression.distance import find_distance
from tuner.restore.recovery import describe_use
from tuner.space import Space
from tuner.statistics.arms.looks import LEAST_LOOK, judge_lasting, plan_looks
from tuner.statistics.baseline_level import Speedup
from tuner.statistics.confirmation.paired_gain import Gain
from tuner.statistics.confirmation.power import ASSURANCE, assurance
from tuner.statistics.noise import Noise
from tuner.statistics.ranking import DEFAULT_ARM, WINNER_ARM
from tuner.study import Study
from tuner.study.folder import refuse_writable_study
from tuner.study.lock import locked
from tuner.study.presets import PRESETS

MOST_PLANNED = 20
"""Pairs before the extension at the most, where nobody says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remeasuring:
    """How the gain is measured anew."""

    pairs: int | None = None
    """At the most; None for as many as are likely to show it, and once more as many."""
    preset: str | None = None
    """For how long each trial is loaded; None for that of the study."""


def verify(
    reading: Reading,
    *,
    host: str | None = None,
    url: str | None = None,
    measure: Remeasuring | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Read back whether a winner is active, compare the surroundings, and measure the gain anew.

    Args:
        reading: the study.
        host: where the winner was applied, `local` or an ssh:// URL; by default the study's own target, which
            for private instances is a fresh sandbox.
        url: what is requested there; by default as `tuner apply` does.
        measure: how the gain is measured, too; installed services are restarted for that. None for not.
        progress: told what happens.

    Raises:
        UsageError: the study has no winner; or, for root, others may write to the study file.
        TargetError: the host cannot be looked at, or cannot be measured on.
    """
    refuse_writable_study(reading.settings.path)
    settings, gain, progress = reading.settings, reading.summary.gain, progress or NullProgress()
    if reading.summary.winner is None or gain is None:
        raise without_winner(reading.summary, "look for")
    if host is None and not settings.target.is_managed:
        return _verify_private(reading, reading.summary.winner.config, gain, measure, progress)
    there = settings_for(settings, host, url, settings.target.watchdog_s)
    return _verify_installed(reading, reading.summary.winner.config, gain, there, measure, progress)


def _verify_private(
    reading: Reading, winner: Config, before: Gain, measure: Remeasuring | None, progress: Progress
) -> Verification:
    with signals_interrupt():
        setup, maximized = prepare_as_begun(reading.settings)
        wanted = find_wanted(reading, winner, setup.space)
        settings, failure = try_out(setup.target, wanted, _name_servers(reading, winner))
        verification = _begin(
            reading, before, setup.fingerprint, settings, "in a fresh sandbox", failure=failure
        )
        if measure is None:
            return verification
        sides = {DEFAULT_ARM: setup.space.default(), WINNER_ARM: wanted.config}
        return _measure(verification, reading, setup, maximized, sides, measure, progress)


def _verify_installed(
    reading: Reading, winner: Config, before: Gain, there: Study, measure: Remeasuring | None,
    progress: Progress,
) -> Verification:  # fmt: skip
    with signals_interrupt():
        prepared = None if measure is None else prepare_as_begun(there)
        seen = _look(there) if prepared is None else _see(prepared[0])
        wanted = find_wanted(reading, winner, seen.space)
        settings = read_installed(seen.target, seen.facts, wanted, _name_servers(reading, winner))
        remarks = (*describe_use(seen.target.host), *find_unlasting(seen.target, wanted))
        verification = _begin(
            reading, before, seen.fingerprint, settings, f"on {seen.target.host.name}", remarks=remarks
        )
        if measure is None or prepared is None:
            return verification
        sides = {DEFAULT_ARM: _undo(reading, winner, wanted, seen.space), WINNER_ARM: wanted.config}
        return _measure(verification, reading, *prepared, sides, measure, progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledView:
    """Installed services, as they are found."""

    target: ManagedTarget
    facts: Mapping[str, Facts]
    space: Space
    fingerprint: Fingerprint


def _look(there: Study) -> InstalledView:
    """Look at a host that nothing is going to load."""
    found = find_target(there, plugins.make_host(there.target.host))
    fingerprint = take_fingerprint(found.machine, found.facts, "", found.placement)
    return InstalledView(target=found.target, facts=found.facts, space=found.space, fingerprint=fingerprint)


def _see(setup: Setup) -> InstalledView:
    """Return what preparing a measurement has found already."""
    target = setup.target
    if not isinstance(target, ManagedTarget):
        raise UsageError(
            f"{setup.settings.path}: this study tunes no installed service, so its own target has nothing to "
            "verify. Name the host with --host."
        )
    return InstalledView(target=target, facts=setup.facts, space=setup.space, fingerprint=setup.fingerprint)


def _name_servers(reading: Reading, winner: Config) -> Mapping[str, str]:
    """Return the server of each setting that the winner changes."""
    names = {**reading.space.changes(winner), **reading.space.shipped(winner)}
    return {name: reading.space.server_of(name) for name in names}


def _begin(
    reading: Reading,
    before: Gain,
    now: Fingerprint,
    settings: tuple[AppliedSetting, ...],
    place: str,
    *,
    failure: str = "",
    remarks: tuple[str, ...] = (),
) -> Verification:
    """Return what was read back, with what has to be known of it."""
    more = []
    if not before.is_proven:
        more.append(f"the study did not prove this winner: {before.verdict}")
    if reading.changed:
        more.append(f"{reading.changed}; verify looks for the winner before this change")
    return Verification(
        study=reading.settings.name, place=place, space=reading.space, settings=settings,
        changed=find_distance(reading.summary.fingerprint, now), failure=failure,
        remarks=(*more, *remarks), before=before,
    )  # fmt: skip


def _undo(reading: Reading, winner: Config, wanted: Wanted, space: Space) -> Config:
    """Return what the host would have without the winner: its settings as they were in the study."""
    old = {name: pair[0] for name, pair in reading.space.changes(winner).items() if name in wanted.chosen}
    return space.open().complete(old, fit=True)


def _measure(
    verification: Verification,
    reading: Reading,
    setup: Setup,
    maximized: ComparedMetric,
    sides: Mapping[str, Config],
    measure: Remeasuring,
    progress: Progress,
) -> Verification:
    """Measure the gain, unless what would be measured is not the winner."""
    if verification.failure or verification.drifted:
        told = "verify did not measure the gain, because the active configuration is not the winner"
        return replace(verification, remarks=(*verification.remarks, told))
    preset = measure.preset or reading.summary.preset
    with locked(reading.settings):
        comparing = Comparing(
            setups=dict.fromkeys(sides, setup), sides=sides, maximized=maximized, preset=preset,
            progress=progress, stage="verify",
        )  # fmt: skip
        looks = plan_verification(
            verification.before, reading.summary.noise, PRESETS[preset].windows[1], measure.pairs
        )
        judge = partial(judge_lasting, before=verification.before)
        constraints = reading.settings.constraints
        measured: Measurement = measure_until_decided(comparing, looks, judge, constraints, against="gone")
    return replace(verification, measured=measured)


def plan_verification(before: Gain, noise: Noise, windows: int, most: int | None = None) -> tuple[int, ...]:
    """Return after how many pairs a gain is judged anew: as many as are likely to show it, and twice that.

    Args:
        before: the gain that the study measured.
        noise: of the host, as the study knows it.
        windows: of each trial.
        most: pairs that somebody asks for.
    """
    if most is not None:
        return plan_looks(most)
    gain = Speedup(log_ratio=math.log(before.ratio), variance=before.log_sd**2 / before.pairs)
    likely = (
        pairs
        for pairs in range(LEAST_LOOK, MOST_PLANNED + 1)
        if assurance(gain, noise, pairs=pairs, windows=windows) >= ASSURANCE
    )
    # What bears a load that the default does not need not be faster, and shows at once.
    pairs = next(likely, MOST_PLANNED if before.ratio > 1 else LEAST_LOOK)
    return pairs, 2 * pairs

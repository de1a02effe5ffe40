"""Reads what of a winner is active: on a host where it was applied, or in a fresh sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tuner.commands.apply import find_lasting_lines
from tuner.commands.session import Reading
from tuner.deploy.deployment import Target
from tuner.deploy.managed import NOWHERE, ManagedTarget
from tuner.errors import TrialFailed, UsageError
from tuner.ports import Config, Facts, PrivateServer, Scalar
from tuner.report.regression import AppliedSetting
from tuner.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a winner changes, in the space around the host as it is now."""

    chosen: Config
    """What the study chose, and the host still has; what follows from it follows."""
    config: Config
    """The configuration with these values: the nearest valid one, where they are not valid any more."""
    settings: Mapping[str, Scalar]
    """What is written: setting → value."""
    lost: Mapping[str, str]
    """Setting that the host does not have any more → why."""


def find_wanted(reading: Reading, config: Config, space: Space) -> Wanted:
    """Return what the winner changes as far as a host has it.

    Args:
        reading: the study.
        config: of its winner.
        space: around the host as it is now.
    """
    changed = {name: pair[1] for name, pair in reading.space.changes(config).items()}
    lost = {name: reason for name in changed if (reason := _find_missing(space, name))}
    chosen = {name: value for name, value in changed.items() if name not in lost}
    fitted = space.open().complete(chosen, fit=True)
    written = [name for name in reading.space.shipped(config) if name in fitted or name in chosen]
    return Wanted(
        chosen=chosen, config=fitted, lost=lost,
        settings={name: chosen.get(name, fitted.get(name, "")) for name in written},
    )  # fmt: skip


def _find_missing(space: Space, name: str) -> str:
    """Return why a space does not have a setting; empty where it does."""
    try:
        space.server_of(name)
    except UsageError as error:
        return str(error)
    return ""


def read_installed(
    target: ManagedTarget, facts: Mapping[str, Facts], wanted: Wanted, servers: Mapping[str, str]
) -> tuple[AppliedSetting, ...]:
    """Compare with what runs on a host, and with what its files say.

    Args:
        target: the host.
        facts: of its servers, with what their files say.
        wanted: the settings.
        servers: setting → the server that it belongs to.
    """
    running = target.read_back({**wanted.config, **wanted.chosen})
    in_files = {name: value for each in facts.values() for name, value in each.current.items()}
    settings = (
        _compare(name, servers[name], value, running.get(name), in_files.get(name))
        for name, value in wanted.settings.items()
    )
    return (*settings, *_name_lost(wanted, servers))


def _compare(
    name: str, server: str, wanted: Scalar, running: Scalar | None, in_files: Scalar | None
) -> AppliedSetting:
    found, drift = in_files if running is None else running, ""
    if found is not None and found != wanted:
        drift = "another value is active"
        if in_files == wanted:
            drift = f"the files have this value, but the running server does not. Restart {server}"
    elif in_files is not None and in_files != wanted:
        drift = f"the files have {in_files}, so the active value is lost at the next restart"
    return AppliedSetting(name=name, server=server, wanted=wanted, found=found, drift=drift)


def _name_lost(wanted: Wanted, servers: Mapping[str, str]) -> Sequence[AppliedSetting]:
    return [
        AppliedSetting(name=name, server=servers[name], wanted="", found=None, drift=reason)
        for name, reason in wanted.lost.items()
    ]


def try_out(
    target: Target, wanted: Wanted, servers: Mapping[str, str]
) -> tuple[tuple[AppliedSetting, ...], str]:
    """Start the winner in a fresh sandbox; return what is active there, and why it does not run."""
    effective: Config = {}
    failure = ""
    try:
        with target.deploy(wanted.config) as deployment:
            effective = deployment.effective
    except TrialFailed as error:
        failure = str(error)
    settings = (
        AppliedSetting(
            name=name, server=servers[name], wanted=value, found=effective.get(name),
            drift=_say_fitted(value, wanted.config.get(name)),
        )
        for name, value in wanted.settings.items()
    )  # fmt: skip
    return (*settings, *_name_lost(wanted, servers)), failure


def _say_fitted(wanted: Scalar, fitted: Scalar | None) -> str:
    """Return that a value is none any more; empty where it is."""
    if fitted == wanted:
        return ""
    if fitted is None:
        return "the setting has no effect any more"
    return f"the value is out of range here; the nearest is {fitted}"


def find_unlasting(target: ManagedTarget, wanted: Wanted) -> tuple[str, ...]:
    """Return a sentence for each value of the kernel that nothing of tuner's sets again at boot."""
    written: dict[PurePosixPath, bytes] = {}
    for server in target.settings:
        if isinstance(server.adapter, PrivateServer):
            own = target.split({**wanted.config, **wanted.chosen}, server.name)
            own = {name: value for name, value in own.items() if name in wanted.settings}
            written |= server.adapter.render(own, NOWHERE, server.installation.facts)
    return tuple(
        f"{line.strip()} is missing in {place}. Unless another file sets this value, it is lost at the next "
        "boot"
        for place, lines in find_lasting_lines(written).items()
        for line in lines
        if line.strip() not in _read_lines(target, place)
    )


def _read_lines(target: ManagedTarget, place: PurePosixPath) -> set[str]:
    content = target.host.read(place).content or b""
    return {line.strip() for line in content.decode(errors="replace").splitlines()}

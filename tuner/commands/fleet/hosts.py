"""The hosts of a study before anything is measured on them: looked at, and refused where they are unlike."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from tuner.campaign.prepare import Setup, prepare
from tuner.commands import session
from tuner.errors import TargetError, UsageError
from tuner.ports import Host
from tuner.records.machines import HARDWARE, describe_differing, find_differing
from tuner.study import Study
from tuner.study.file import for_each_target

IDENTITY = (PurePosixPath("/etc/machine-id"), PurePosixPath("/proc/sys/kernel/random/boot_id"))
"""Clones may have the same machine-id (machine-id(5)), and containers of one machine its boot."""
Identity = tuple[bytes, ...]
"""What no two machines have in common; something is empty where a host does not say."""


def look_at_all(settings: Study) -> Sequence[Setup]:
    """Look at every target; one that cannot be used is refused at once, as the winner is to hold there, too.

    Raises:
        TargetError: the hosts that cannot be used, each with the reason.
    """
    setups: list[Setup] = []
    refused: list[str] = []
    for each in for_each_target(settings):
        try:
            setups.append(prepare(each))
        except TargetError as error:
            refused.append(f"{each.target.host}: {error}")
    if refused:
        raise TargetError(
            f"{settings.path}: targets: {len(refused)} of {len(refused) + len(setups)} hosts cannot be used, "
            f"and tuner has started nothing. {' '.join(refused)} Correct these problems, or leave the hosts "
            "out of `targets:`."
        )
    return setups


def refuse_unlike(setups: Sequence[Setup], identities: Sequence[Identity] = ()) -> None:
    """Raise UsageError where two targets are one machine, or unlike in what has to be the same.

    Args:
        setups: one for each target.
        identities: theirs, where they are known.
    """
    first, *others = setups
    _refuse_one_machine(setups, identities or [identify(each.host) for each in setups])
    targets = first.settings.targets
    models_unlike = targets is not None and targets.models_unlike
    for other in others:
        free = {"host", *(HARDWARE if models_unlike else ())}
        found = find_differing(first.fingerprint, other.fingerprint, free=free)
        if found:
            can_model = " or write `unlike_hosts: model`," if found.keys() <= HARDWARE else ""
            raise UsageError(
                f"{first.settings.path}: targets: {other.settings.target.host} is unlike "
                f"{first.settings.target.host} ({describe_differing(found)}). Use hosts of the same "
                f"kind,{can_model} or tune each host in a separate study."
            )
        session.refuse_other_default(other, first.space)


def _refuse_one_machine(setups: Sequence[Setup], identities: Sequence[Identity]) -> None:
    known: dict[Identity, str] = {}
    for setup, identity in zip(setups, identities, strict=True):
        name = setup.settings.target.host
        if identity in known:
            raise UsageError(
                f"{setup.settings.path}: targets: {known[identity]} and {name} are the same machine (same "
                "machine-id and boot). Name each host once."
            )
        if all(identity):
            known[identity] = name


def identify(host: Host) -> Identity:
    """Return what no two machines have in common; something is empty where a host does not say."""
    look = host.look(IDENTITY)
    return tuple((look.read(path).content or b"").strip() for path in IDENTITY)

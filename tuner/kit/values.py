"""What every adapter refuses of settings, in the same words."""

from collections.abc import Container

from tuner.errors import ConfigRejected
from tuner.ports import Scalar

LARGEST = 2**31 - 1


def require_known(server: str, name: str, known: Container[str]) -> None:
    """Raise ConfigRejected for a setting that an adapter does not know."""
    if name not in known:
        raise ConfigRejected(
            f"{server}: {name[:80]!r} is no setting that tuner changes. Remove it from the search space."
        )


def require_whole(server: str, name: str, value: Scalar, *, least: int) -> int:
    """Return a whole number. Raises ConfigRejected for another value, and for one out of bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
        raise ConfigRejected(
            f"{server}: {name}: {str(value)[:80]!r} is no whole number from {least} to {LARGEST}."
        )
    return value

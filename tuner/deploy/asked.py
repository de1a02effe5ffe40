"""What each of several loads asks of the servers of one study."""

from dataclasses import dataclass

from tuner.ports import RequestKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a load will ask for, as far as that is known before any start."""

    path: str
    keepalive: bool
    body_bytes: int | None
    """Length of the correct body; None where it is learned."""
    requests: tuple[RequestKind, ...] = ()
    """The mix; empty for the path alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a load asks of a deployment, with the correct responses of this start."""

    url: str
    body_bytes: int | None
    response_bytes: int | None
    requests: tuple[RequestKind, ...] = ()

"""Compares a mix of requests as the study has it with what was sent: shares and sizes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tuner.deploy.asked import ResolvedLoad
from tuner.deploy.deployment import Deployment
from tuner.records import Window
from tuner.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How well one load was sent as the study says."""

    kinds: int
    sent: int
    """Requests."""
    largest_difference: float
    """Between the share of a kind that was asked for and the one that was sent, of all requests."""
    path: str
    """Of that kind."""
    mean_body_bytes: float | None
    """Of the correct responses, by the shares that were asked for; None where they vary."""
    received_bytes: float
    """Per correct response, with its header."""

    def __str__(self) -> str:
        """Return it in one line."""
        mean = self.mean_body_bytes
        asked = "responses vary" if mean is None else f"asked {mean:,.0f} bytes"
        return (
            f"{self.sent:,} requests of {self.kinds} kinds; every share within "
            f"{100 * self.largest_difference:.2f} points of what was asked ({self.path}); {asked}, received "
            f"{self.received_bytes:,.0f} per response with its header"
        )


def compare_mixes(settings: Study, deployment: Deployment, window: Window) -> Mapping[str, Fidelity]:
    """Return load → how well it was sent; only mixes whose generator counts its requests."""
    if not window.parts:
        found = {"": _compare(deployment.load, window)}
    else:
        loads = {settings.loads[0].name: deployment.load, **deployment.other_loads}
        found = {name: _compare(loads[name], part) for name, part in window.parts.items() if name in loads}
    return {name: each for name, each in found.items() if each is not None}


def _compare(load: ResolvedLoad, window: Window) -> Fidelity | None:
    kinds, sent = load.requests, sum(window.sent)
    if not kinds or not sent or len(window.sent) != len(kinds):
        return None
    total = sum(each.weight for each in kinds)
    shares = [each.weight / total for each in kinds]
    differences = [abs(count / sent - share) for count, share in zip(window.sent, shares, strict=True)]
    lengths = [each.body_bytes for each in kinds]
    known = [length for length in lengths if length is not None]
    mean = sum(share * length for share, length in zip(shares, known, strict=False))
    return Fidelity(
        kinds=len(kinds), sent=sent, largest_difference=max(differences),
        path=kinds[differences.index(max(differences))].path,
        mean_body_bytes=mean if len(known) == len(lengths) else None,
        received_bytes=window.bytes / max(1, window.correct),
    )  # fmt: skip


def fidelity_as_json(mixes: Mapping[str, Fidelity]) -> Mapping[str, object]:
    """Return it for scripts, by the name of the load; that of a single one is empty."""
    return {name: asdict(each) for name, each in mixes.items()}

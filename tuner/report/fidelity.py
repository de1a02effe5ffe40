"""Compares a mix of requests as the study has it with what was sent: shares, responses, sizes, connections.

One number sums it up: the share of the requests that were sent in the proportion asked for. It is 1 minus the
total variation distance of the two mixes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuner.ports import RequestKind
from tuner.records import Trial, Window
from tuner.report.wording import say_number, say_percent, say_rate
from tuner.study import LoadSettings, Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How well one load was sent as the study says."""

    kinds: tuple[RequestKind, ...]
    """What was asked for, with the correct responses where they are known."""
    sent: tuple[int, ...]
    """Requests of each kind."""
    connections: int
    """Connections at once."""
    opened: float
    """Connections that were opened while these were sent; 0 where that is not known."""
    as_expected: float
    """Share of the requests that had the expected status and body."""
    received_bytes: float
    """Per correct response, with its header."""
    rate_rps: float
    """Correct responses."""

    @property
    def requests(self) -> int:
        """Return how many requests were sent."""
        return sum(self.sent)

    @property
    def asked_shares(self) -> tuple[float, ...]:
        """Return the share of each kind that was asked for."""
        total = sum(each.weight for each in self.kinds)
        return tuple(each.weight / total for each in self.kinds)

    @property
    def sent_shares(self) -> tuple[float, ...]:
        """Return the share of each kind that was sent."""
        return tuple(count / self.requests for count in self.sent)

    @property
    def match(self) -> float:
        """Return the share of the requests that were sent in the proportion asked for, from 0 to 1."""
        return sum(min(pair) for pair in zip(self.asked_shares, self.sent_shares, strict=True))

    @property
    def largest(self) -> tuple[float, str]:
        """Return the largest difference between two shares of a kind, and the path of that kind."""
        both = zip(self.asked_shares, self.sent_shares, self.kinds, strict=True)
        return max((abs(sent - asked), kind.path) for asked, sent, kind in both)

    @property
    def asked_bytes(self) -> float | None:
        """Return the mean body by the shares asked for; None where a response has no known length."""
        lengths = [each.body_bytes for each in self.kinds]
        known = [length for length in lengths if length is not None]
        mean = sum(share * length for share, length in zip(self.asked_shares, known, strict=False))
        return mean if len(known) == len(lengths) else None

    def __str__(self) -> str:
        """Return it in one line."""
        largest, path = self.largest
        mean = self.asked_bytes
        asked = "" if mean is None else f"asked {mean:,.0f} bytes, "
        each = f", {self.requests / self.opened:,.0f} requests on each" if self.opened else ""
        return (
            f"{say_percent(self.match, 2)} of {self.requests:,} requests of "
            f"{say_number(len(self.kinds), 'kind')} as asked, every share within {100 * largest:.2f} points "
            f"({path}); "
            f"{say_percent(self.as_expected, 2)} had the expected status and body; {asked}received "
            f"{self.received_bytes:,.0f} per response with its header; {say_rate(self.rate_rps)} responses/s "
            f"over {self.connections:,} connections{each}"
        )

    def as_json(self) -> Mapping[str, object]:
        """Return the figures for scripts."""
        largest, path = self.largest
        return {
            "match": self.match, "kinds": len(self.kinds), "sent": self.requests,
            "largest_difference": largest, "path": path, "as_expected": self.as_expected,
            "mean_body_bytes": self.asked_bytes, "received_bytes": self.received_bytes,
            "rate_rps": self.rate_rps, "connections": self.connections,
            "requests_per_connection": self.requests / self.opened if self.opened else None,
        }  # fmt: skip

    def rows(self) -> list[tuple[str, ...]]:
        """Return kind, share asked for, share sent and their difference in points, the largest kind first."""
        shown = sorted(
            zip(self.kinds, self.asked_shares, self.sent_shares, strict=True), key=lambda each: -each[1]
        )
        return [
            (name_kind(kind), say_percent(asked, 2), say_percent(sent, 2), f"{100 * (sent - asked):+.2f}")
            for kind, asked, sent in shown
        ]


def name_kind(kind: RequestKind) -> str:
    """Return what tables and figures call a kind of request."""
    return kind.path if kind.method == "GET" else f"{kind.method} {kind.path}"


def compare(kinds: Sequence[RequestKind], windows: Iterable[Window], *, connections: int) -> Fidelity | None:
    """Return how well a mix was sent in some windows; None where nobody counted its requests.

    Args:
        kinds: the mix.
        windows: of one load.
        connections: that it keeps open.
    """
    counted = [each for each in windows if kinds and len(each.sent) == len(kinds) and sum(each.sent) > 0]
    if not counted:
        return None
    correct = sum(each.correct for each in counted)
    asked = correct + sum(each.failures.total for each in counted)
    opened = [each.counters.get("passive_opens", 0.0) for each in counted]
    return Fidelity(
        kinds=tuple(kinds), sent=tuple(map(sum, zip(*(each.sent for each in counted), strict=True))),
        connections=connections, opened=sum(opened) if all(opened) else 0.0,
        as_expected=correct / asked if asked else 0.0,
        received_bytes=sum(each.bytes for each in counted) / max(1, correct),
        rate_rps=correct / (sum(each.duration_s for each in counted) or 1.0),
    )  # fmt: skip


def read_fidelity(settings: Study, trials: Sequence[Trial]) -> Mapping[str, Fidelity]:
    """Return load → how well it was sent in all trials; only mixes of which requests were counted.

    The name of a single load is empty. Mixes of the robustness checks are among them.
    """
    valid = [(trial, window) for trial in trials for window in trial.valid_windows]
    usual = [window for trial, window in valid if trial.role.is_under_study_load]
    loads: dict[str, tuple[LoadSettings, list[Window]]] = {"": (settings.load, usual)}
    if settings.loads:
        loads = {
            each.name: (each.load, [one.parts[each.name] for one in usual if each.name in one.parts])
            for each in settings.loads
        }
    for each in settings.check_loads:
        loads[each.name] = (each.load, [one for _, one in valid if one.check_load == each.name])
    found = {
        name: compare(load.requests, windows, connections=load.connections)
        for name, (load, windows) in loads.items()
    }
    return {name: each for name, each in found.items() if each is not None}


def list_mixes(found: Mapping[str, Fidelity]) -> list[Mapping[str, object]]:
    """Return what the page shows of each mix: title, sentence, name of its figure, rows of its table."""
    return [
        {
            "title": name or "The mix of the study", "text": str(each), "figure": f"mix-{place}",
            "rows": each.rows(),
        }
        for place, (name, each) in enumerate(found.items())
    ]  # fmt: skip

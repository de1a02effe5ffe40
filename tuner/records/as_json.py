"""Records as JSON and back: the one form in which windows and starts are kept."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tuner.ports import ConnectTime, Failures, Latency
from tuner.records import Blame, Failure, Fingerprint, Start, State, Timing, Verdict, Window

Json = dict[str, Any]


def window_to_json(window: Window) -> Json:
    """Give a window as JSON values; empty parts are left out."""
    data = asdict(window)
    data["failures"] = {kind: count for kind, count in data["failures"].items() if count}
    data["counters"] = {name: round(value, 6) for name, value in data["counters"].items()}
    if window.latency is not None:
        for part in ("quantiles_ms", "histogram"):
            data["latency"][part] = {repr(key): value for key, value in data["latency"][part].items()}
    return {key: value for key, value in data.items() if value not in (None, {}, [], ())}


def window_from_json(data: Mapping[str, Any]) -> Window:
    """Read a window; the inverse of `window_to_json`."""
    fields = dict(data)
    fields["failures"] = Failures(**fields.get("failures", {}))
    if "latency" in fields:
        latency = dict(fields["latency"])
        for part in ("quantiles_ms", "histogram"):
            latency[part] = {float(key): value for key, value in latency.get(part, {}).items()}
        fields["latency"] = Latency(**latency)
    if "connect_time" in fields:
        fields["connect_time"] = ConnectTime(**fields["connect_time"])
    fields["verdicts"] = tuple(
        Verdict(gate=verdict["gate"], blame=Blame(verdict["blame"]), reason=verdict["reason"])
        for verdict in fields.get("verdicts", ())
    )
    return Window(**fields)


def ending_to_json(start: Start) -> Json:
    """Give what is known of a start only when it has ended."""
    return {
        "state": start.state.value,
        "failure": None if start.failure is None else asdict(start.failure),
        "steady": start.steady,
        "timing": asdict(start.timing),
    }


def ending_from_json(data: Mapping[str, Any]) -> Json:
    """Read the end of a start as keyword arguments of `Start`."""
    failure = data["failure"]
    return {
        "state": State(data["state"]),
        "failure": None if failure is None else Failure(**failure),
        "steady": data["steady"],
        "timing": Timing(**data["timing"]),
    }


def fingerprint_to_json(fingerprint: Fingerprint) -> Json:
    """Give a fingerprint as JSON values."""
    return asdict(fingerprint)


def fingerprint_from_json(data: Mapping[str, Any]) -> Fingerprint:
    """Read a fingerprint; the inverse of `fingerprint_to_json`."""
    fields = dict(data)
    fields["server_cpus"] = tuple(fields["server_cpus"])
    fields["generator_cpus"] = tuple(fields["generator_cpus"])
    return Fingerprint(**fields)

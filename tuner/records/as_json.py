"""Records as JSON and back: the one form in which windows and starts are kept."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tuner.ports import ConnectTime, Failures, Latency
from tuner.records import Blame, Failure, Fingerprint, Role, Start, State, Timing, Verdict, Window

Json = dict[str, Any]
WINDOW = "window:"
END = "end"


def window_to_json(window: Window) -> Json:
    """Return a window as JSON values; empty parts are left out."""
    data = asdict(window)
    del data["metric"]
    data["failures"] = {kind: count for kind, count in data["failures"].items() if count}
    data["counters"] = {name: round(value, 6) for name, value in data["counters"].items()}
    if window.latency is not None:
        for part in ("quantiles_ms", "histogram"):
            data["latency"][part] = {repr(key): value for key, value in data["latency"][part].items()}
    return {key: value for key, value in data.items() if value not in (None, {}, [], (), "")}


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


def opening_to_json(start: Start) -> Json:
    """Return what is known of a start before it is made, as JSON values."""
    return {
        "role": start.role.value,
        "config": dict(start.config),
        "arm": start.arm,
        "block": start.block,
        "started_s": start.started_s,
        "session": start.session,
    }


def ending_to_json(start: Start) -> Json:
    """Return what is known of a start only when it has ended, as JSON values."""
    return {
        "state": start.state.value,
        "failure": None if start.failure is None else asdict(start.failure),
        "steady": start.steady,
        "timing": asdict(start.timing),
    }


def is_start(data: Mapping[str, Any]) -> bool:
    """Return whether these attributes are of a start: other programs may add trials of their own."""
    return "role" in data


def start_from_json(data: Mapping[str, Any], *, number: int, has_ended: bool) -> Start:
    """Read a start from its opening, its windows under `window_key` and its end under `END`."""
    opening = {key: data[key] for key in ("config", "started_s", "arm", "block", "session")}
    ending: Json = {"state": State.RUNNING}
    if has_ended:
        ending = dict(data[END])
        failure = ending["failure"]
        ending["state"] = State(ending["state"])
        ending["failure"] = None if failure is None else Failure(**failure)
        ending["timing"] = Timing(**ending["timing"])
    windows = tuple(window_from_json(data[key]) for key in sorted(data) if key.startswith(WINDOW))
    return Start(number=number, role=Role(data["role"]), windows=windows, **opening, **ending)


def window_key(index: int) -> str:
    """Return the key of a start's window; keys sort by index."""
    return f"{WINDOW}{index:03d}"


def fingerprint_from_json(data: Mapping[str, Any]) -> Fingerprint:
    """Read a fingerprint; the inverse of `asdict`."""
    cpus = {key: tuple(data[key]) for key in ("server_cpus", "generator_cpus")}
    return Fingerprint(**{**data, **cpus})

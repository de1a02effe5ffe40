"""Records as JSON and back: the one form in which windows and trials are kept."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from tuner.records import State, Trial, Window

Json = dict[str, Any]
WINDOW = "window:"
END = "end"
OPENING = frozenset({"role", "config", "started_s", "arm", "block", "session"})
"""What is known of a trial before it is made."""
MAKERS = frozenset({"host"})
"""Where it is made, likewise; left out in a study of one host."""
ENDING = frozenset({"state", "failure", "steady", "timing"})
"""What is known of a trial only when it has ended."""
MOST_DEPTH, MOST_NUMBER = 16, 2**63
_WINDOWS = TypeAdapter(Window)
_TRIALS = TypeAdapter(Trial)


def window_to_json(window: Window) -> Json:
    """Return a window as JSON values; empty parts are left out."""
    left_out = {"metric", "blend", "parts"}
    data = _WINDOWS.dump_python(window, mode="json", by_alias=True, exclude=left_out)
    data["parts"] = {name: window_to_json(part) for name, part in window.parts.items()}
    data["failures"] = {kind: count for kind, count in data["failures"].items() if count}
    data["counters"] = {name: round(value, 6) for name, value in data["counters"].items()}
    return {key: value for key, value in data.items() if value not in (None, {}, [], "")}


def window_from_json(data: Mapping[str, Any]) -> Window:
    """Read a window; the inverse of `window_to_json`."""
    parts = {name: window_from_json(part) for name, part in data.get("parts", {}).items()}
    return _WINDOWS.validate_python({"failures": {}, **data, "parts": parts})


def opening_to_json(trial: Trial) -> Json:
    """Return what is known of a trial before it is made, as JSON values."""
    makers = {key for key in MAKERS if getattr(trial, key)}
    return dict(_TRIALS.dump_python(trial, mode="json", include=set(OPENING | makers)))


def ending_to_json(trial: Trial) -> Json:
    """Return what is known of a trial only when it has ended, as JSON values."""
    return dict(_TRIALS.dump_python(trial, mode="json", include=set(ENDING)))


def is_trial(data: Mapping[str, Any]) -> bool:
    """Return whether tuner wrote these attributes: other programs may add trials of their own."""
    return "role" in data


def trial_from_json(data: Mapping[str, Any], *, number: int, has_ended: bool) -> Trial:
    """Read a trial from its opening, its windows under `window_key` and its end under `END`.

    Raises:
        ValueError: it holds what no tuner writes.
        KeyError: a part of it is missing.
    """
    require_plain(dict(data))
    opening = {key: data[key] for key in (*OPENING, *(MAKERS & data.keys()))}
    ending = data[END] if has_ended else {"state": State.RUNNING}
    windows = tuple(window_from_json(data[key]) for key in sorted(data) if key.startswith(WINDOW))
    return _TRIALS.validate_python({**opening, **ending, "number": number, "windows": windows})


def window_key(index: int) -> str:
    """Return the key of a trial's window; keys sort by index."""
    return f"{WINDOW}{index:03d}"


def require_plain(value: Any, *, depth: int = 0) -> Any:  # noqa: ANN401 - whatever was stored
    """Return JSON values that nothing chokes on: numbers that are finite, and few levels.

    Raises:
        ValueError: a number is none or too large, or lists and mappings lie too deep in each other.
    """
    if depth > MOST_DEPTH:
        raise ValueError(f"more than {MOST_DEPTH} levels of lists and mappings")
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            require_plain(each, depth=depth + 1)
    elif isinstance(value, int | float) and not abs(value) <= MOST_NUMBER:
        raise ValueError("a number that is infinite or undefined")
    return value

"""What a study remembers: windows, starts and what they were measured for."""

from tuner.records.records import (
    Blame,
    Failure,
    Fingerprint,
    Gate,
    Role,
    Start,
    State,
    Timing,
    Verdict,
    Window,
    is_censored,
)

__all__ = [
    "Blame",
    "Failure",
    "Fingerprint",
    "Gate",
    "Role",
    "Start",
    "State",
    "Timing",
    "Verdict",
    "Window",
    "is_censored",
]

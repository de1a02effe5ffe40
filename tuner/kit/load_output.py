"""Read the output of a load generator: counts, quantities and faults; quote what cannot be read."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tuner.errors import LoadFailed
from tuner.ports import Completed, ConnectTime, Failures, LoadResult, Workload

MOST = 2**53
"""Greatest count that is believed; above it a float is no longer exact."""
SHOWN_CHARACTERS = 600
KILLED_STATUS = 128 + 9
"""Exit status of timeout(1) when it had to send SIGKILL."""

_OWN_FAULTS = (
    "Too many open files",  # EMFILE, ENFILE
    "Cannot assign requested address",  # EADDRNOTAVAIL: no free local port to this address
    "Cannot allocate memory",  # ENOMEM
    "No buffer space available",  # ENOBUFS
)

NOT_READ = (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError)
"""What reading output of an unexpected shape raises; a deeply nested JSON text ends in RecursionError."""


def text_of(output: bytes) -> str:
    """Decode output of which nothing is known."""
    return output.decode("utf-8", errors="replace")


def shown(completed: Completed) -> str:
    """Quote the end of what a generator printed, for an error message."""
    printed = f"{text_of(completed.stdout).strip()}\n{text_of(completed.stderr).strip()}".strip()
    if not printed:
        return "The load generator printed nothing."
    cut = "…" if len(printed) > SHOWN_CHARACTERS else ""
    return f"It printed: {cut}{printed[-SHOWN_CHARACTERS:]}"


def unreadable(generator: str, what: str, completed: Completed) -> LoadFailed:
    """Return the error that says what is wrong with a generator's output, and quotes it."""
    return LoadFailed(f"{generator}: {what} (exit status {completed.returncode}). {shown(completed)}")


def refuse_killed(generator: str, completed: Completed) -> None:
    """Raise LoadFailed when the generator had to be killed: what it printed until then is no result."""
    if completed.timed_out:
        raise unreadable(
            generator, (f"it still ran after {completed.duration_s:.1f} s, and tuner killed it"), completed
        )
    if completed.returncode < 0 or completed.returncode == KILLED_STATUS:
        raise unreadable(generator, "a signal ended it", completed)


@contextmanager
def reading(generator: str, what: str, completed: Completed) -> Iterator[None]:
    """Raise LoadFailed when a generator had to be killed, or when what it printed has an unexpected shape."""
    refuse_killed(generator, completed)
    try:
        yield
    except NOT_READ as error:
        raise unreadable(generator, f"its {what} cannot be read: {error}", completed) from error


def gave_up(completed: Completed, workload: Workload, why: str, fault: str | None) -> LoadResult:
    """Return the result of a generator that ended before its time: no response is vouched for."""
    return LoadResult(
        duration_s=completed.duration_s,
        correct=0,
        failures=Failures(connect=workload.connections),
        aborted=why,
        generator_fault=fault,
    )


def own_fault(text: str) -> str | None:
    """Find the error in a generator's message that is its own and not the server's."""
    return next((fault for fault in _OWN_FAULTS if fault.lower() in text.lower()), None)


def as_count(value: object) -> int:
    """Return a count as it stands in JSON. Raises ValueError for anything but a believable one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise ValueError(f"{str(value)[:40]!r} is not a count")
    return value


def as_float(value: object) -> float:
    """Return a measured quantity as it stands in JSON. Raises ValueError for anything but one."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is not a number")  # noqa: TRY004 - one kind of error for all that cannot be read
    if not (math.isfinite(value) and 0 <= value <= MOST):
        raise ValueError(f"{value!r} is not a quantity")
    return float(value)


def positive(value: object) -> float:
    """Return a duration. Raises ValueError for anything that a rate cannot be divided by."""
    seconds = as_float(value)
    if seconds <= 0:
        raise ValueError(f"{seconds!r} is not a duration")
    return seconds


def as_object(value: object) -> Mapping[str, object]:
    """Return a JSON object. Raises ValueError for anything else."""
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:40]!r} is not an object")  # noqa: TRY004 - one kind of error for all that cannot be read
    return value


def as_list(value: object) -> Sequence[object]:
    """Return a JSON array. Raises ValueError for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{str(value)[:40]!r} is not an array")  # noqa: TRY004 - one kind of error for all that cannot be read
    return value


def connect_time(times_ms: object, *, mean: str) -> ConnectTime | None:
    """Return min, mean and max of a JSON object in milliseconds; None for null. Raises one of NOT_READ."""
    if times_ms is None:
        return None
    least, middle, most = (as_float(as_object(times_ms)[key]) for key in ("min", mean, "max"))
    return ConnectTime(min_ms=least, mean_ms=middle, max_ms=most)


def json_object(text: str) -> Mapping[str, object]:
    """Parse one JSON object. Raises one of NOT_READ."""
    return as_object(json.loads(text))


def version_in(printed: Completed) -> str:
    """Find the first dotted number in what a program prints about itself (wrk does so on failure, too)."""
    found = _VERSION.search(text_of(printed.stdout + printed.stderr))
    return found.group(0) if found else ""


_VERSION = re.compile(r"\d+(?:\.\d+)+")

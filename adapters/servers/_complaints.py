"""Find the lines of a server's log that explain a failure."""

import re
from collections.abc import Iterable

MAX_LINES = 20


def find_complaints(log: bytes, *, about: re.Pattern[str], prefix: re.Pattern[str]) -> tuple[str, ...]:
    """Pick the lines that match, each message once, without its time stamp and process ids.

    A server under pressure repeats one line thousands of times; the first twenty different ones are enough.
    """
    lines = (line for line in log.decode(errors="replace").splitlines() if about.search(line))
    return _first_of_each(prefix.sub("", line).strip() for line in lines)


def _first_of_each(messages: Iterable[str]) -> tuple[str, ...]:
    # Numbers (connections, file descriptors, pids) do not make a message different.
    seen: dict[str, str] = {}
    for message in messages:
        seen.setdefault(re.sub(r"\d+", "0", message), message)
        if len(seen) == MAX_LINES:
            break
    return tuple(seen.values())

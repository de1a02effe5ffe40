"""Counts the clients of a load generator that get no answer while others are served.

No generator that counts responses sees them. A connection for which the listen queue has no place is tried
again after a second, one in the queue waits until the server takes it, and neither is in any count of
requests: a server that serves 450 of 10,000 clients and leaves the others outside looks as if nothing failed.
The kernel knows for each connection how long its client has heard nothing (tcp(7), TCP_INFO), and ss(8) lists
that.
"""

from dataclasses import replace
from threading import Event
from urllib.parse import urlsplit

from tuner.errors import TargetError
from tuner.hosts.load_places import LoadPlace
from tuner.ports import LoadGenerator, LoadResult, Workload

LEAST_CONNECTIONS = 200
"""Fewer fit into every packaged server and its listen queue; the look is saved."""
LEAD_S = 0.25
"""So long before the end of a window is looked: a generator that has ended has closed its connections."""
WAITED = 0.75
"""Part of the time so far in which a client has to have heard nothing, for it opens its connections first."""
MOST_PATIENCE_S = 5.0
"""A client that has heard nothing for so long gives up, however long the window is."""
PATIENT_RESPONSES = 4
"""A slow application has forgotten a client that has waited for so many usual response times."""
LOOK_S = 5.0
COUNT = (
    "sh", "-c",
    # In awk, not here: what ss says of 20,000 connections are 12 MB.
    """
    ss -HtinoO "$1" | awk -v least="$2" '
        $1 == "SYN-SENT" && /timer:\\(on,[^,]*,[1-9]/ { count++ }
        $1 == "ESTAB" && match($0, /lastrcv:[0-9]+/) {
            waited = substr($0, RSTART + 8, RLENGTH - 8) + 0
            if ($0 !~ /bytes_received:/ && $0 ~ /retrans:[0-9]+\\/[1-9]/) waited += 1000
            if (waited >= least + 0) count++
        }
        END { print count + 0 }'
    """,
    "count",
)  # fmt: skip
"""Counts connections that are tried again, and those on which nothing has come for the least milliseconds.
One that was established at its second try has waited a second before."""


def is_watched(generator: LoadGenerator, workload: Workload) -> bool:
    """Return whether every connection always has a request under way, and there are many of them.

    A generator says of itself `keeps_asking`; at a fixed rate clients pause.
    """
    asks = getattr(generator, "keeps_asking", False) and workload.rate_rps is None
    look_at_s = workload.duration_s - LEAD_S
    is_in_time = look_at_s > max(LEAD_S, patience_s(workload))
    is_wanted = workload.timeout_s is not None or workload.connections >= LEAST_CONNECTIONS
    return asks and is_wanted and is_in_time


def count_unanswered(place: LoadPlace, workload: Workload, ended: Event) -> int:
    """Count, shortly before the window ends, the clients that have heard nothing for most of it.

    Args:
        place: where the generator runs.
        workload: what it sends.
        ended: set when it has ended; there is nothing to count any more.
    """
    look_at_s = workload.duration_s - LEAD_S
    if ended.wait(look_at_s):
        return 0
    least_ms = round(1000 * patience_s(workload))
    try:
        counted = place.host.run(
            (*COUNT, f"dport = :{_port(workload.url)}{_to_address(workload.url)}", str(least_ms)),
            timeout_s=LOOK_S,
            cpus=place.cpus or None,
        )
    except TargetError:
        # A load host that is lost says so itself.
        return 0
    printed = counted.stdout.strip()
    return int(printed) if printed.isdigit() else 0


def patience_s(workload: Workload) -> float:
    """Return for how long a client has to have heard nothing: as the study sets it, else some responses."""
    if workload.timeout_s is not None:
        return workload.timeout_s
    usual_s = WAITED * min(workload.duration_s - LEAD_S, MOST_PATIENCE_S)
    return max(usual_s, PATIENT_RESPONSES * workload.response_s)


def add_unanswered(result: LoadResult, count: int) -> LoadResult:
    """Count clients in vain as timeouts, but for those that the generator has noticed by itself."""
    failures = result.failures
    noticed = failures.timeout + failures.connect + failures.other
    more = max(0, count - noticed)
    return replace(result, failures=replace(failures, timeout=failures.timeout + more)) if more else result


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _to_address(url: str) -> str:
    """Return the condition that leaves out connections to other hosts, where the URL has an address."""
    host = urlsplit(url).hostname or ""
    return f" and dst {host}" if host.replace(".", "").isdecimal() else ""

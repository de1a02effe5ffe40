"""A small load generator of one's own, for the tests of the adapter `command`: its result is JSON."""

import argparse
import http.client
import json
import socket
import threading
import time
from collections import Counter
from urllib.parse import urlsplit

BODY_BYTES = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    ends_s = time.monotonic() + options.seconds
    outcomes: Counter[str] = Counter()
    lock = threading.Lock()

    def send() -> None:
        mine, slowest_s = send_until(ends_s, options.url)
        with lock:
            outcomes.update(mine)
            slowest.append(slowest_s)

    slowest: list[float] = []
    began_s = time.monotonic()
    threads = [threading.Thread(target=send) for _ in range(options.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = {
        "seconds": time.monotonic() - began_s,
        "right": outcomes["right"],
        "wrong": {kind: outcomes[kind] for kind in ("status", "length", "read", "timeout", "connect")},
        "slowest": max(slowest),
    }
    print(json.dumps(result))  # noqa: T201 - its result


def send_until(ends_s: float, url: str) -> tuple[Counter[str], float]:
    """Send one request after the other; count each by how it ended."""
    outcomes: Counter[str] = Counter()
    slowest_s = 0.0
    parts = urlsplit(url)
    while (left_s := ends_s - time.monotonic()) > 0:
        began_s = time.monotonic()
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=left_s)
        while time.monotonic() < ends_s:
            outcome = send_one(connection, parts.path)
            outcomes[outcome] += 1
            slowest_s = max(slowest_s, time.monotonic() - began_s)
            began_s = time.monotonic()
            if outcome in {"read", "timeout", "connect"}:
                break
        connection.close()
    return outcomes, slowest_s


def send_one(connection: http.client.HTTPConnection, path: str) -> str:
    """Send a request and say how it ended."""
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except ConnectionRefusedError:
        return "connect"
    except socket.timeout:  # noqa: UP041 - says what times out
        return "timeout"
    except (OSError, http.client.HTTPException):
        return "read"
    if response.status != http.client.OK:
        return "status"
    return "right" if len(body) == BODY_BYTES else "length"


if __name__ == "__main__":
    main()

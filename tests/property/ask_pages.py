"""Ask for pages as a load generator does, and print as JSON what each was answered with.

Reads from its standard input a list of [scheme, address, port, host, path].
"""

import http.client
import json
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor

TIMEOUT_S = 30
CLIENTS = 32


def ask(scheme: str, address: str, port: int, host: str, path: str) -> str:
    """Return the header that names a block, with the status; `none` where nothing listens."""
    try:
        connected = socket.create_connection((address, port), timeout=TIMEOUT_S)
    except ConnectionRefusedError:
        return "none none"
    connection = http.client.HTTPConnection(address, port)
    connection.sock = connected
    if scheme == "https":
        context = ssl._create_unverified_context()  # noqa: S323 - a server of the test's own
        named = None if host.replace(".", "").isdigit() else host
        connection.sock = context.wrap_socket(connected, server_hostname=named)
    connection.putrequest("GET", path, skip_host=True)
    usual = {"http": 80, "https": 443}[scheme]
    connection.putheader("Host", host if port == usual else f"{host}:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    return f"{answer.status} {answer.getheader('X-Block', '')}"


if __name__ == "__main__":
    # Side by side: on a busy machine each waits much longer than it works.
    with ThreadPoolExecutor(CLIENTS) as clients:
        json.dump(list(clients.map(lambda asked: ask(*asked), json.load(sys.stdin))), sys.stdout)

"""An application for tests whose pages vary: `varying_pages.py PORT` serves until it is ended."""

import gzip
import itertools
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

COUNT = itertools.count(9_990)
REPLACED: list[bytes] = []
"""What a page was replaced by."""


def make_page(path: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
    """Return status, body and headers of a page."""
    length = 400 + secrets.randbelow(4000)
    pages = {
        "/plain": (200, b"p" * 500, {}),
        "/random": (200, b"<p>random</p>" + b"r" * length, {}),
        "/chunked": (200, b"<p>in chunks</p>" + b"c" * length, {"Transfer-Encoding": "chunked"}),
        "/cookie": (200, b"k" * 300, {"Set-Cookie": f"s={'z' * secrets.randbelow(500)}"}),
        "/token": (200, f"<input name=csrf value={secrets.token_hex(16)}>".encode(), {}),
        "/visits": (200, f"<p>visits: {next(COUNT)}</p>".encode(), {}),
        "/moved": (301, b"moved", {"Location": "/plain"}),
        "/gone": (302, b"moved", {"Location": "https://shop.test/start"}),
        "/nothing": (204, b"", {}),
    }
    if path == "/replace":
        REPLACED.append(b"a new page")
    if path == "/replaced":
        return 200, REPLACED[-1] if REPLACED else b"an old page of another length", {}
    if path == "/members":
        is_member = headers.get("authorization") == "Basic bWU6aXQ="
        return (200, b"members only", {}) if is_member else (401, b"who?", {"WWW-Authenticate": "Basic"})
    if path == "/named":
        return (200, b"for shop.test", {}) if headers.get("host") == "shop.test" else (404, b"", {})
    if path == "/packed":
        return 200, gzip.compress(secrets.token_hex(length).encode()), {"Content-Encoding": "gzip"}
    return pages.get(path, (404, b"not here", {}))


class Pages(BaseHTTPRequestHandler):
    """Answers with the page of a path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, body, more = make_page(
            urlsplit(self.path).path, {name.lower(): value for name, value in self.headers.items()}
        )
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        if "Transfer-Encoding" in more:
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Has room for all connections of a load at once."""

    request_queue_size = 1024
    daemon_threads = True


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Pages).serve_forever()

"""Why a setting cannot act, in plain words."""

from pathlib import Path

import pytest

from tests.unit.space.samples import load, with_parameter
from tests.unit.space.test_acting import INT, of_load
from tuner.space import available_spaces

OTHER = "  other: {kind: int, low: 1, high: 9, default: 3}\n"
LOAD = {
    "keepalive": False, "pipelining": False, "page_bytes": 61_000, "pages": 1, "protocol": "http/1.1",
    "tls": False, "fastopen": False, "streams": 1, "accepts_gzip": False, "uploads": False, "loopback": True,
    "installed": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("keepalive", "with keep-alive"),
        ("not loopback", "over a network"),
        ("accepts_gzip", "if clients accept gzip"),
        ("flag", "if flag is on"),
        ("pages > 1", "with at least 2 pages (here 1)"),
        ("page_bytes >= 65536", "with pages of at least 65,536 bytes (here 61,000)"),
        ("page_bytes < 256", "with pages of less than 256 bytes (here 61,000)"),
        ("2 * connections > max(200, somaxconn)", "with at least 2,049 connections (here 100)"),
        ("passes_to()", "if the server passes requests on"),
        ("passes_to('http', 'websocket')", "if the server passes requests on by HTTP or WebSocket"),
        ("protocol != 'http/1.1' and streams > 100 and not keepalive",
         "over HTTP/2 and with at least 101 streams per connection (here 1)"),
        ("installed or protocol != 'http/1.1' or connections > (200 if passes_to() else 400)",
         "on an installed server, over HTTP/2, or with at least 401 connections (here 100)"),
        ("installed or tls and uploads", "on an installed server, or with TLS and with uploads"),
        ("n * connections > 4000 or keepalive",
         "if `n * connections > 4000` (here connections is 100, n is 3) or with keep-alive"),
    ],
)  # fmt: skip
def test_only_what_lacks_is_named(condition: str, said: str, tmp_path: Path) -> None:
    body = f'{INT}, acts_when: "{condition}"'
    held = {"without": ["flag", "n"]}

    space = load(with_parameter(body, OTHER), tmp_path, held, load=LOAD)

    assert space.inert == {"x": f"it acts only {said}"}


def test_no_built_in_space_shows_an_expression() -> None:
    spaces = [of_load(name, keepalive=each) for name in available_spaces() for each in (True, False)]
    told = [reason for space in spaces for reason in space.inert.values()]

    assert len(told) > 40
    assert [reason for reason in told if "`" in reason] == []

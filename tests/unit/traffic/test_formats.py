"""The same eight requests in every format: the same load is found in each log."""

from pathlib import Path

import pytest

from tuner.commands.logged_load import LoggedLoad, read_logs

LOGS = Path(__file__).parent / "logs"
DOLLARS = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent rt=$request_time '
    'up=$upstream_response_time c=$connection n=$connection_requests gz="$gzip_ratio" $ssl_protocol'
)
PERCENTS = r"%t %h %u \"%r\" %>s %b %D %k \"%{SSL_PROTOCOL}x\""
FORMATS = {
    "common.log": None,
    "combined.log": None,
    "forwarded.log": None,
    "vhost_combined.log": None,
    "httplog.log": None,
    "nested.json": None,
    "flat.json": None,
    "site.har": None,
    "dollars.log": DOLLARS,
    "percents.log": PERCENTS,
}
"""File → its `--log-format`; None where it is found."""


def read(name: str) -> LoggedLoad:
    return read_logs([str(LOGS / name)], log_format=FORMATS[name], takes_unsafe=False, stands_in=False)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_kinds(name: str):
    load = read(name)

    assert {each.path: (each.count, each.status, each.mean_bytes) for each in load.kinds} == {
        "/": (1, 200, 5120),
        "/style.css": (1, 200, 2048),
        "/item/17": (3, 200, 9050),  # with a number in its path, once not modified
        "/old": (1, 301, 178),
        "/missing.png": (1, 404, 153),
    }
    assert {reason: count for reason, count in load.left_out.items() if count} == {"POST": 1}
    assert (load.requests, load.with_query, load.conditional, load.covered) == (8, 1, 1, 1.0)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_busiest_minute(name: str):
    found = read(name).arrivals

    assert (found.peak_at, found.peak_rps) == ("2026-03-12 10:00", 8 / 5)
    assert found.dispersion == pytest.approx(0.3 / 1.6)


@pytest.mark.parametrize(
    ("name", "under_way", "per_connection", "tls", "http2", "gzip"),
    [
        ("combined.log", None, None, None, 0, None),
        ("dollars.log", 0.8, 4, 1, 1, 1),
        ("percents.log", 0.8, 4, 1, 0, None),
        ("httplog.log", 0.8, 4, 1, 0, None),
        ("nested.json", 0.8, 4, 1, 1, 1),
        ("flat.json", 0.8, 4, None, 0, None),
        ("site.har", 0.8, None, 1, 1, 1),
    ],
)
def test_what_a_log_has_of_times_and_connections_is_read_and_the_rest_is_unknown(
    name: str, under_way: float, per_connection: float, tls: float, http2: float, gzip: float
):
    found = read(name).arrivals

    assert found.under_way == (None if under_way is None else pytest.approx(under_way))
    assert (found.per_connection, found.tls, found.http2, found.gzip) == (per_connection, tls, http2, gzip)


def test_the_idle_time_of_a_connection_is_the_median_of_its_gaps():
    # 0, 1, 2 and 1 s between the five requests of one connection, 1 and 1 s between the three of the other
    assert read("httplog.log").arrivals.idle_s == 1


def test_requests_of_a_browser_to_other_hosts_are_left_out():
    assert read("site.har").sources[0].elsewhere == 1


@pytest.mark.parametrize(
    "prefix",
    ["Mar 12 10:00:00 web caddy[77]: ", "web-1  | ", "2026/03/12 10:00:00\t\x1b[34mINFO\x1b[0m\tlog\t"],
)
def test_lines_of_json_may_come_from_a_journal_a_container_or_a_console(tmp_path: Path, prefix: str):
    lines = (LOGS / "nested.json").read_text().splitlines()
    (tmp_path / "a.log").write_text("".join(f"{prefix}{line}\n" for line in lines))

    load = read_logs([str(tmp_path / "a.log")], log_format=None, takes_unsafe=False, stands_in=False)

    assert (load.kinds, load.arrivals) == (read("nested.json").kinds, read("nested.json").arrivals)

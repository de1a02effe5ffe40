"""Status pages: which is configured and where, and what their numbers mean."""

import re
import socket

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.advice.rule_file import StatusEntry
from tuner.advice.rules import FOLDER, read_file
from tuner.advice.status_page import ask_status, make_fastcgi_request, read_counters, read_gauges

POOL = """\
[global]
pid = /run/php/php8.2-fpm.pid
[api]
listen = 127.0.0.1:9001
[www]
{lines}
"""
PHP_PAGE = (
    "\x01\x06\x00\x01\x02\x0c\x04\x00X-Powered-By: PHP/8.2\r\nContent-type: text/plain\r\n\r\n"
    "pool:                 www\naccepted conn:        812\nlisten queue:         3\n"
    "max listen queue:     129\nlisten queue len:     511\nidle processes:       0\n"
    "active processes:     5\nmax active processes: 5\nmax children reached: 2\nslow requests:        1\n"
)
SHOW = """\
Name: HAProxy
CurrConns: 41
Maxconn: 2000

# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout
web,FRONTEND,,,41,60,50,900,1,2,
admin,FRONTEND,,,1,1,500,3,1,2,
app,one,4,9,20,20,20,800,1,2,
app,two,0,0,3,9,,100,1,2,
app,BACKEND,7,20,23,60,200,900,1,2,
"""


def status_of(server: str) -> StatusEntry:
    status = read_file(FOLDER / f"{server}.yaml")[1].status
    assert status is not None
    return status


@pytest.mark.parametrize(
    ("lines", "address", "path"),
    [
        ("listen = /run/a.sock\npm.status_path = /status", "/run/a.sock", "/status"),
        ("pm.status_path = /s\nlisten.mode = 0660\nlisten=9000", "9000", "/s"),
        ("listen = /run/a.sock\npm.status_listen = /run/b.sock\npm.status_path = /s", "/run/b.sock", "/s"),
    ],
)
def test_the_status_page_of_a_pool_is_asked_at_its_own_address(lines: str, address: str, path: str):
    found = re.search(status_of("php-fpm").configured, POOL.format(lines=lines), re.MULTILINE | re.DOTALL)

    assert found is not None
    assert (found["address"], found["path"]) == (address, path)


@pytest.mark.parametrize(
    "text", [POOL.format(lines="listen = /run/a.sock\n;pm.status_path = /status"), "", "[global]\n"]
)
def test_a_pool_without_a_status_page_is_not_asked(text: str):
    assert not re.search(status_of("php-fpm").configured, text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("line", "address", "path"),
    [
        ("\tstats socket /run/haproxy/admin.sock mode 660 level admin", "/run/haproxy/admin.sock", None),
        ("  stats socket ipv4@127.0.0.1:9999 level admin", "ipv4@127.0.0.1:9999", None),
        ("  stats uri /haproxy?stats", None, "/haproxy?stats"),
    ],
)
def test_the_statistics_of_haproxy_are_found(line: str, address: str | None, path: str | None):
    found = re.search(status_of("haproxy").configured, f"global\n{line}\n", re.MULTILINE)

    assert found is not None
    assert (found["address"], found["path"]) == (address, path)


def test_the_numbers_of_php_fpm_are_read():
    assert read_counters(status_of("php-fpm"), PHP_PAGE) == {
        "children_reached": 2, "slow_requests": 1, "accepted": 812,
    }  # fmt: skip
    assert read_gauges(status_of("php-fpm"), PHP_PAGE) == {
        "active_children": 5, "idle_children": 0, "listen_queue": 3,
    }  # fmt: skip


def test_of_many_frontends_and_servers_those_nearest_their_limits_count():
    assert read_gauges(status_of("haproxy"), SHOW) == {
        "open_connections": 41, "backend_queue": 7, "frontend_sessions": 41, "frontend_sessions_limit": 50,
        "server_sessions": 20, "server_sessions_limit": 20,
    }  # fmt: skip


def test_a_fastcgi_request_is_whole_records_of_a_get():
    """FastCGI 1.0, sections 3.3 and 3.4: begin, parameters and input, each ended by an empty record."""
    sent, kinds, contents = make_fastcgi_request("/status"), [], b""
    while sent:
        length = int.from_bytes(sent[4:6], "big")
        kinds.append((sent[1], length))
        contents += sent[8 : 8 + length]
        sent = sent[8 + length :]

    assert [kind for kind, _ in kinds] == [1, 4, 4, 5]
    assert [length for _, length in kinds][2:] == [0, 0]
    assert b"\x0b\x07SCRIPT_NAME/status" in contents
    # Where the answer is read, this byte has a meaning of its own (telnet, RFC 854).
    assert not any(b"\xff" in make_fastcgi_request("/" + "x" * length) for length in range(90))


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("stats socket /no/such.sock", "/no/such.sock: it cannot be reached. Run as root"),
        ("stats socket abns@hidden", "its address is not known"),
        ("stats uri /stats", "/stats: its address is not known"),
    ],
)
def test_a_page_that_cannot_be_read_says_why(configuration: str, said: str):
    page = ask_status(LocalHost(), status_of("haproxy"), configuration, ports=())

    assert page.text == ""
    assert said in page.trouble


def test_a_page_that_hangs_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        page = ask_status(LocalHost(), status_of("nginx"), "location /status { stub_status; }", ports=(port,))

    assert page.text == ""
    assert page.trouble.startswith(f"http://127.0.0.1:{port}/status: no answer within 1 s")


def test_nothing_is_asked_where_nothing_is_configured():
    page = ask_status(LocalHost(), status_of("haproxy"), "global\n", ports=(80,))

    assert (page.text, page.trouble) == ("", "")

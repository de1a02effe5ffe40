"""Formats of nginx's access logs: as its files have them, and the values that lines have."""

from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.nginx.layouts import MAIN, find
from tuner.adapters.servers.nginx import Nginx

FILES = r"""
events { }
http {
    log_format timed '$remote_addr [$time_local] "$request" '
                     '$status $request_time';
    log_format json escape=json '{"status":"$status","uri":"$request_uri"}';
    access_log off;
    server {
        listen 80;
        access_log /var/log/nginx/a.log timed buffer=32k;
        access_log /var/log/nginx/b.log;
        access_log /var/log/nginx/c.log json;
        access_log /var/log/nginx/$host.log timed;
        access_log syslog:server=192.0.2.1;
    }
}
"""


def test_the_logs_of_an_installed_nginx_have_the_formats_of_its_files():
    logs = Nginx().find_logs(find("debian-12", {MAIN: FILES.encode()}))

    assert logs == {
        PurePosixPath("/var/log/nginx/a.log"): '$remote_addr [$time_local] "$request" $status $request_time',
        PurePosixPath("/var/log/nginx/b.log"): "combined",
        PurePosixPath("/var/log/nginx/c.log"): '{"status":"$status","uri":"$request_uri"}',
    }


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (
            "$msec|$request_method|$uri$is_args$args|$status|$http_user_agent",
            "1773309600.123|GET|/a?b=1|200|Mozilla (X11; Linux)",
            {"time": "1773309600", "method": "GET", "target": "/a?b=1", "status": "200"},
        ),
        (
            "${time_iso8601} $upstream_addr $upstream_response_time $status $request",
            "2026-03-12T10:00:00+00:00 10.0.0.1:80, unix:/a : 10.0.0.2:80 0.1, - : 0.3 200 GET / HTTP/1.1",
            {"time": "2026-03-12T10:00:00", "status": "200", "request": "GET / HTTP/1.1"},
        ),
        (
            '{"status":"$status","uri":"$request_uri","user":"$remote_user"}',
            r'{"status":"404","uri":"/a\"b","user":"a \"b\" c"}',
            {"status": "404", "target": r"/a\"b"},
        ),
    ],
)
def test_values_end_where_the_next_literal_text_begins(text: str, line: str, found: dict[str, str]):
    log_format = Nginx().read_log_format(text)

    assert log_format is not None
    (row,) = log_format.rows(f"{line}\n")
    read = zip(map(str, log_format.fields), row, strict=True)
    assert dict(read) == found


def test_a_format_of_another_server_is_none_of_nginx():
    assert Nginx().read_log_format("%h %t %r %>s") is None

"""Formats of Apache's access logs: as its files have them, and the values that lines have."""

from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.apache.layouts import DEBIAN, find, with_file
from tuner.adapters.servers.apache import Apache

SITE = r"""
LogFormat "%h %l %u %t \"%r\" %>s %b %D" timed
<VirtualHost *:80>
    CustomLog /var/log/apache2/a.log timed
    CustomLog "|/usr/bin/rotatelogs /var/log/b.log" timed
    CustomLog /var/log/apache2/c.log "%t \"%r\" %>s"
    CustomLog /var/log/apache2/d.log combined
</VirtualHost>
"""


def test_the_logs_of_an_installed_apache_have_the_formats_of_its_files():
    found = find(with_file(DEBIAN, "/etc/apache2/sites-enabled/000-default.conf", SITE))

    logs = Apache().find_logs(found)

    own = {path: text for path, text in logs.items() if path.name in {"a.log", "b.log", "c.log"}}
    assert own == {
        PurePosixPath("/var/log/apache2/a.log"): '%h %l %u %t "%r" %>s %b %D',
        PurePosixPath("/var/log/apache2/c.log"): '%t "%r" %>s',
    }
    assert PurePosixPath("/var/log/apache2/d.log") in logs


@pytest.mark.parametrize(
    ("text", "line", "found", "unit_s"),
    [
        (
            r"%h %t \"%r\" %>s %O %{ms}T %{c}L",
            '192.0.2.1 [12/Mar/2026:10:00:00 +0100] "GET / HTTP/1.1" 200 512 37 AbC/9',
            {
                "time": "12/Mar/2026:10:00:00 +0100", "request": "GET / HTTP/1.1", "status": "200",
                "bytes": "512", "duration": "37", "connection": "AbC/9",
            },
            1e-3,
        ),
        (
            "%{msec}t %m %U%q %H %!200,304>s 100%%",
            "1773309600123 GET /a?b=1 HTTP/1.1 404 100%",
            {"time": "1773309600123", "method": "GET", "target": "/a?b=1", "protocol": "HTTP/1.1",
             "status": "404"},
            1.0,
        ),
    ],
)  # fmt: skip
def test_values_end_where_the_next_literal_text_begins(
    text: str, line: str, found: dict[str, str], unit_s: float
):
    log_format = Apache().read_log_format(text)

    assert log_format is not None
    (row,) = log_format.rows(f"{line}\n")
    read = zip(map(str, log_format.fields), row, strict=True)
    assert dict(read) == found
    assert log_format.unit_s == unit_s


def test_a_format_of_another_server_is_none_of_apache():
    assert Apache().read_log_format("$status $request") is None

"""The end of an error log: long, rotated or compressed; what is no log; and levels that hide its lines."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.advice.error_log import ErrorLog, read_error_log, read_log_file
from tuner.advice.log_lines import TAIL_BYTES
from tuner.advice.rules import FOLDER, read_rules
from tuner.advice.server_look import RunningProcess, RunningServer
from tuner.ports import Facts, Installation

NOW = datetime(2026, 11, 26, 18, 46, tzinfo=UTC)
LINE = "2026/11/26 18:45:56 [alert] 8#8: 20 worker_connections are not enough"
GIB = 2**30
NEW = {
    "nginx": "2026/11/26 18:45:56 [warn] 1#1: new",
    "apache": "[Thu Nov 26 18:45:56.123456 2026] [core:notice] [pid 1] AH00094: new",
    "php-fpm": "[26-Nov-2026 18:45:56] NOTICE: new",
    "h2o": "new",
}
"""A line of each server, in its usual form."""


def write(path: Path, content: bytes, *, age_s: float = 0.0) -> None:
    path.write_bytes(content)
    written_s = NOW.timestamp() - age_s
    os.utime(path, (written_s, written_s))


def read(log: Path) -> ErrorLog:
    return read_log_file(LocalHost(), PurePosixPath(log), NOW)


def texts(found: ErrorLog) -> list[str]:
    return [each.text for each in found.lines]


def test_of_a_log_of_10_gb_only_the_end_is_read(tmp_path: Path):
    log = tmp_path / "error.log"
    with log.open("wb") as file:
        file.truncate(10 * GIB)
        file.seek(0, os.SEEK_END)
        file.write(f"\n{LINE}\n".encode())

    assert texts(read(log)) == [LINE]


@pytest.mark.parametrize("name", ["error.log.1", "error.log-20261126", "error.log-20261126-1795718700"])
def test_a_log_that_was_just_rotated_is_read_before_the_new_one(tmp_path: Path, name: str):
    log = tmp_path / "error.log"
    write(log, b"new\n")
    write(tmp_path / name, f"{LINE}\n".encode(), age_s=60)
    write(tmp_path / "error.log.2", b"old\n", age_s=90_000)

    found = read(log)

    assert [(each.text, each.source) for each in found.lines] == [
        (LINE, str(tmp_path / name)),
        ("new", str(log)),
    ]
    assert found.unread == ()


def test_what_only_begins_like_a_rotated_log_is_none(tmp_path: Path):
    log = tmp_path / "error.log"
    write(log, b"new\n")
    for name in ("error.log.bak", "error.log.1.swp", "error.log-old"):
        write(tmp_path / name, b"other\n")
    (tmp_path / "error.log.d").mkdir()

    assert texts(read(log)) == ["new"]


@pytest.mark.parametrize("name", ["error.log.1.gz", "error.log-20261126.xz"])
def test_a_compressed_log_with_lines_of_the_last_hour_is_said_and_its_bytes_are_not_read(
    tmp_path: Path, name: str
):
    log = tmp_path / "error.log"
    write(log, b"new\n")
    write(tmp_path / name, gzip.compress(LINE.encode()), age_s=600)

    found = read(log)

    assert texts(found) == ["new"]
    (said,) = found.unread
    assert said.startswith(f"its rotated error log {tmp_path / name}: this file is compressed.")


def test_an_old_compressed_log_is_left_out_and_the_plain_one_before_it_is_read(tmp_path: Path):
    log = tmp_path / "error.log"
    write(log, b"new\n")
    write(tmp_path / "error.log.1", b"before\n", age_s=7200)
    write(tmp_path / "error.log.2.gz", gzip.compress(b"old\n"), age_s=90_000)

    found = read(log)

    assert (texts(found), found.unread) == (["before", "new"], ())


def test_what_is_no_log_is_said_and_not_waited_for(tmp_path: Path):
    pipe, folder, absent = tmp_path / "pipe.log", tmp_path / "folder.log", tmp_path / "absent.log"
    os.mkfifo(pipe)
    folder.mkdir()
    linked = tmp_path / "linked.log"
    linked.symlink_to(pipe)

    for log in (pipe, folder, linked):
        assert read(log).lines == ()
        assert read(log).unread[0].startswith(f"its error log {log}: this is not a regular file")
    assert read(absent).unread[0].startswith(f"its error log {absent}: this file is missing")


def read_log_of(server: str, configuration: str, log: Path) -> ErrorLog:
    process = RunningProcess(pid=1, parent=0, command="")
    installation = Installation(
        facts=Facts(), files={PurePosixPath("/etc/server.conf"): configuration.encode()}, service=None,
        log=PurePosixPath(log),
    )  # fmt: skip
    running = RunningServer(
        name=server, rules=read_rules(FOLDER / f"{server}.yaml"), first=process, workers=(process,),
        installation=installation,
    )  # fmt: skip
    return read_error_log(LocalHost(), running, NOW)


@pytest.mark.parametrize(
    ("server", "configuration", "said"),
    [
        ("php-fpm", "[global]\n;log_level = notice\nlog_level = error\n", "`log_level = error`"),
        ("php-fpm", "log_level=alert\n", "`log_level=alert`"),
        ("nginx", "error_log /var/log/error.log crit;", "`error_log /var/log/error.log crit;`"),
        ("apache", "  LogLevel ssl:info emerg\n", "`LogLevel ssl:info emerg`"),
    ],
)
def test_a_level_that_hides_the_lines_of_limits_is_said(tmp_path: Path, server, configuration, said):
    log = tmp_path / "error.log"
    write(log, f"{NEW[server]}\n".encode())

    found = read_log_of(server, configuration, log)
    (hidden,) = found.unread

    assert texts(found) == [NEW[server]]
    assert hidden == f"its error log: {said} hides lines that show limits. Set the default level"


@pytest.mark.parametrize(
    ("server", "configuration"),
    [
        ("php-fpm", "[global]\n;log_level = error\nlog_level = warning\n"),
        ("nginx", "error_log /var/log/alert/error.log info; access_log off;"),
        ("nginx", "# error_log /var/log/error.log crit;\nerror_log /var/log/error.log warn;"),
        ("apache", "LogLevel warn ssl:alert\n"),
        ("h2o", "error-log: /var/log/h2o/error.log"),
    ],
)
def test_a_level_that_hides_nothing_is_not_mentioned(tmp_path: Path, server: str, configuration: str):
    log = tmp_path / "error.log"
    write(log, f"{NEW[server]}\n".encode())

    assert read_log_of(server, configuration, log).unread == ()


def test_a_log_of_another_form_is_said(tmp_path: Path):
    log = tmp_path / "error.log"
    write(log, b"AH00484: server reached MaxRequestWorkers setting\n")

    found = read_log_of("apache", "", log)

    assert found.lines == ()
    assert found.unread == (
        "its error log: no line has the usual form of Apache httpd. Use the default format",
    )


def test_of_a_line_only_the_message_of_a_running_process_counts(tmp_path: Path):
    log = tmp_path / "error.log"
    requested = f'2026/11/26 18:45:56 [error] 1#1: *3 open() "/srv/\n{LINE}\n" failed (2: No such file)'
    write(log, f"{NEW['nginx']}\n{requested}\n".encode())

    assert [each.message for each in read_log_of("nginx", "", log).lines if each.message] == [
        "new",
        'open() "/srv/',
    ]


def test_the_default_level_of_nginx_hides_warnings(tmp_path: Path):
    log = tmp_path / "error.log"
    write(log, f"{NEW['nginx']}\n".encode())

    assert read_log_of("nginx", "error_log /var/log/warn/error.log;", log).unread == (
        "its error log: the default level hides warnings that show limits. Set the level warn",
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (LINE, "only the last 512 KiB (since 18:45) were read. Search the lines before it yourself"),
        (LINE.replace("18:45:56", "16:45:56"), ""),
        ("x" * TAIL_BYTES, "only the last 512 KiB were read. Search the lines before it yourself"),
    ],
    ids=["of the last hour", "older", "one long line"],
)
def test_a_log_with_more_lines_of_the_last_hour_than_are_read_is_said(tmp_path: Path, line: str, said: str):
    log = tmp_path / "error.log"
    write(log, f"{line}\n".encode() * (1 + TAIL_BYTES // len(line)))

    assert read(log).unread == ((f"its error log {log}: {said}",) if said else ())


def test_lines_of_a_log_into_which_scripts_write_as_php_fpm_does_do_not_count(tmp_path: Path):
    log = tmp_path / "error.log"
    write(log, f"{NEW['php-fpm']}\n".encode())

    shared = read_log_of("php-fpm", "[www]\ndecorate_workers_output = no\n", log)
    own = read_log_of("php-fpm", "[www]\n;decorate_workers_output = no\ndecorate_workers_output = yes\n", log)

    assert shared.lines == ()
    said = "`decorate_workers_output = no` lets scripts write whole lines into it"
    assert shared.unread == (f"its error log: {said}. Remove this setting",)
    assert texts(own) == [NEW["php-fpm"]]


def test_haproxy_without_a_syslog_file_has_its_lines_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journalctl = tmp_path / "journalctl"
    line = "2026-11-26T18:45:56+0000 web haproxy[1]: Proxy web reached process FD limit"
    journalctl.write_text(f"#!/bin/sh\necho '{line}'\n")
    journalctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    found = read_log_of("haproxy", "", tmp_path / "haproxy.log")

    assert [each.message for each in found.lines] == ["Proxy web reached process FD limit"]
    assert found.unread == ()

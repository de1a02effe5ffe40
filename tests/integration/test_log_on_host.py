"""A log is read on the host of the server that writes it, from its end, and never in a rush of memory."""

import gzip
import subprocess
from contextlib import closing
from pathlib import Path, PurePosixPath

import pytest

from tests.e2e.command_line import TUNER
from tests.testbed.bed import Testbed
from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.hosts.ssh import SshHost
from tuner.errors import TargetError
from tuner.traffic import on_host
from tuner.traffic.on_host import fetch_logs

LINE = '192.0.2.1 - alice [12/Mar/2026:10:00:00 +0000] "GET /page/{:05} HTTP/1.1" 200 100 "-" "-"\n'


def test_the_end_of_a_long_log_is_read_in_pieces_of_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(on_host, "PIECE_BYTES", 1000)
    lines = [LINE.format(number) for number in range(200)]
    log = tmp_path / "a log"
    log.write_text("".join(lines))

    (whole,) = fetch_logs(LocalHost(), PurePosixPath(log))
    (end,) = fetch_logs(LocalHost(), PurePosixPath(log), most_bytes=len(lines[0]) * 50 + 7)

    assert gzip.decompress(whole.content).decode() == "".join(lines)
    assert gzip.decompress(end.content).decode() == "".join(lines[-50:])
    assert str(log) in whole.name
    assert "the last" in end.name


def test_the_log_before_the_last_rotation_fills_what_is_left_of_the_room(tmp_path: Path):
    (tmp_path / "log").write_text(LINE.format(2))
    (tmp_path / "log.1").write_text(LINE.format(0) + LINE.format(1))
    room = 2 * len(LINE.format(0)) + 3

    both = fetch_logs(LocalHost(), PurePosixPath(tmp_path, "log"), most_bytes=room)

    assert [gzip.decompress(each.content).decode() for each in both] == [LINE.format(2), LINE.format(1)]


def test_what_is_no_log_is_refused_with_what_to_do(tmp_path: Path):
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(TargetError, match=r"you cannot read a log at this path\. Log in as"):
            list(fetch_logs(LocalHost(), PurePosixPath(path)))


def test_a_server_elsewhere_gets_the_load_of_the_log_that_its_files_name(own_bed: Testbed, tmp_path: Path):
    web = own_bed.add_host("web")
    web.install_nginx()
    for path in ("/", "/", "/none?who=S3CRET"):
        web.status_of(path)
    study = tmp_path / "nginx.yaml"
    logs = ("--from", "host", "--check-log", "host:/var/log/nginx/access.log")

    done = subprocess.run(
        [TUNER, "init", "nginx", "--host", web.ssh_url, *logs, "-o", str(study)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "/var/log/nginx/access.log: " in done.stderr
    text = study.read_text()
    assert text.count('{path: "/none", weight: 1, status: 404}') == 2
    assert '  - name: "access.log"' in text
    assert "S3CRET" not in text
    with closing(SshHost(web.ssh_url)) as host:
        (there,) = fetch_logs(host, PurePosixPath("/var/log/nginx/access.log"))
    assert gzip.decompress(there.content).count(b"GET /none") == 1

"""Whole managed studies over SSH, one for each server: run, confirm, export, apply, undo.

Each host is set up so that one setting holds requests up, whatever the machine does besides: a worker that
sleeps, or an answer that waits for a delayed ACK. Its tuned value is worth several times the requests.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.faults.look import look_at
from tests.e2e.command_line import CommandLine
from tests.testbed.bed import Testbed
from tests.testbed.host import PHP_PORT, TestHost
from tests.testbed.processors import idle_processors
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.study import load_study

STUDY = """\
study: {server}
servers: [{server}]
space: [{space}, {{only: [{parameter}]}}{narrowed}]
target: {{host: "{url}", mode: managed}}
load:
  generator: wrk
  path: "http://{address}:{port}{page}"
  connections: {connections}
  keepalive: {keepalive}
budget: {{preset: quick, minutes: 0.4, trials: 1}}
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One server, and what holds its requests up."""

    prepare: Callable[[TestHost], None]
    space: str
    parameter: str
    narrowed: str = ""
    """The range that is searched: all of it but what is installed is several times better."""
    page: str
    port: int = 80
    keepalive: bool = True
    connections: int = 8
    """Each has its answer within a window of a second, also from the one thread or process of the default."""


def prepare_nginx(host: TestHost) -> None:
    """Let header and file leave in two packets, the second after the ACK of the first."""
    main = host.root / "etc/nginx/nginx.conf"
    text = re.sub(r"(?m)^\s*(tcp_nopush|tcp_nodelay|sendfile) .*$", "", main.read_text())
    late = "http {\n\tsendfile on;\n\ttcp_nopush off;\n\ttcp_nodelay off;\n"
    main.write_text(text.replace("http {\n", late, 1))
    page = host.root / "var/www/html/page.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("late\n" * 100)
    host.install_nginx()


def prepare_apache(host: TestHost) -> None:
    """Let one thread serve, and a page take 0.2 s of it."""
    settings = host.root / "etc/apache2/mods-available/mpm_event.conf"
    settings.write_text(
        "StartServers 1\nServerLimit 1\nMinSpareThreads 1\nMaxSpareThreads 3\nThreadLimit 64\n"
        "ThreadsPerChild 1\nMaxRequestWorkers 1\n"
    )
    host.run(["a2enmod", "-q", "ratelimit"])
    slow = '<Location "/slow.html">\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 4\n</Location>\n'
    (host.root / "etc/apache2/conf-enabled/slow.conf").write_text(slow)
    page = host.root / "var/www/html/slow.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("slow\n" * 200)
    host.install_apache()


def prepare_h2o(host: TestHost) -> None:
    """Let one thread serve, and a page take 0.1 s of it."""
    main = host.root / "etc/h2o/h2o.conf"
    slow = """\
      /slow:
        mruby.handler: |
          Proc.new do |env|
            IO.select(nil, nil, nil, 0.1)
            [200, {"content-type" => "text/plain"}, ["slow\\n"]]
          end
"""
    text = main.read_text().replace("    paths:\n", f"    paths:\n{slow}", 1)
    main.write_text(f"num-threads: 1\n{text}")
    host.install_h2o()


def prepare_php_fpm(host: TestHost) -> None:
    """Let one process serve, and a page take 50 ms of it."""
    (pool,) = (host.root / "etc/php").glob("*/fpm/pool.d/www.conf")
    changed = re.sub(r"(?m)^pm = .*$", "pm = static", pool.read_text())
    pool.write_text(re.sub(r"(?m)^pm.max_children = .*$", "pm.max_children = 1", changed))
    host.put_page("slow.php", "<?php usleep(50000); echo 'slow';\n")
    host.install("php-fpm")


CASES: Mapping[str, Case] = {
    "nginx": Case(prepare=prepare_nginx, space="nginx", parameter="tcp_nodelay", page="/page.html"),
    "apache": Case(
        prepare=prepare_apache, space="apache-event", parameter="ThreadsPerChild",
        narrowed=", {parameters: {ThreadsPerChild: {low: 6, high: 16}}}", page="/slow.html", keepalive=False,
        connections=4,
    ),
    "h2o": Case(
        prepare=prepare_h2o, space="h2o", parameter="num-threads",
        narrowed=", {parameters: {num-threads: {low: 6, high: 8}}}", page="/slow", keepalive=False,
    ),
    "php-fpm": Case(
        prepare=prepare_php_fpm, space="php-fpm", parameter="pm.max_children",
        narrowed=", {parameters: {pm.max_children: {low: 6, high: 12}}}", page="/slow.php", port=PHP_PORT,
    ),
}  # fmt: skip


def write(tuner: CommandLine, server: str, host: TestHost, file: str = "study.yaml") -> Path:
    case = CASES[server]
    text = STUDY.format(
        server=server, space=case.space, parameter=case.parameter, narrowed=case.narrowed, url=host.ssh_url,
        address=host.address, port=case.port, page=case.page, connections=case.connections,
        keepalive=str(case.keepalive).lower(),
    )  # fmt: skip
    return tuner.write(file, text)


pytestmark = [pytest.mark.usefixtures("own_bed"), pytest.mark.more]


def apply_by_hand(host: TestHost, exports: Path, name: str) -> None:
    """Do on a host what the head of an exported file says."""
    (host.root / "root/exports").mkdir()
    for path in exports.iterdir():
        (host.root / "root/exports" / path.name).write_bytes(path.read_bytes())
    (how,) = re.findall(r"(?m)^# apply: (.*)$", (exports / name).read_text())
    host.run(["sh", "-c", f"cd /root/exports && {how}"])
    host.wait_until_it_answers(80)


def undo_by_hand(host: TestHost) -> None:
    """Run the script that takes it back, and what it asks for."""
    (undo,) = (host.root / "root/exports").glob("*-undo.sh")
    said = host.run(["sh", f"/root/exports/{undo.name}"]).stdout.decode()
    (how,) = re.findall(r"(?m)^Stop and start the server now: (.*)$", said)
    host.run(["sh", "-c", how])
    host.wait_until_it_answers(80)


def in_force(study: Path, host: TestHost) -> Mapping[str, object]:
    """Read what a server's files say, and make sure that it is what runs."""
    target = find_target(load_study(study), plugins.make_host(host.ssh_url)).target
    target.as_found()
    return target.servers[0].installation.facts.current


@pytest.mark.parametrize("server", CASES)
def test_a_managed_study_ends_in_a_winner_that_is_exported_applied_and_undone(
    own_bed: Testbed, tuner: CommandLine, server: str
):
    host = own_bed.add_host("web")
    CASES[server].prepare(host)
    before = look_at(host)
    study = write(tuner, server, host)

    with idle_processors(host):
        done = tuner.run("run", study, "--yes", timeout_s=400)

    assert done.returncode == 0, done.stderr + done.stdout
    shown = json.loads(tuner.run("show", study, "--json").stdout)
    assert shown["gain"]["verdict"] == "improved"
    assert look_at(host) == before
    assert not list((host.root / "var/lib/tuner").glob("run/journal/*"))
    winner = shown["winner"]["config"][CASES[server].parameter]

    # What the run exported, applied by hand to another host of the same kind.
    exports = study.with_suffix(".study") / "exports"
    names = {f"tuner-{server}.patch", f"tuner-{server}-undo.sh", "tuner.json", "tuner-undo.json"}
    assert {path.name for path in exports.iterdir()} == names
    other = own_bed.add_host("other")
    CASES[server].prepare(other)
    before_other = look_at(other)
    there = write(tuner, server, other, "other.yaml")
    apply_by_hand(other, exports, f"tuner-{server}.patch")
    assert in_force(there, other)[CASES[server].parameter] == winner
    assert look_at(other) != before_other
    undo_by_hand(other)
    assert look_at(other) == before_other
    assert in_force(there, other)[CASES[server].parameter] != winner

    # And by tuner itself, to the host of the study.
    where = ("--host", host.ssh_url)
    applied = tuner.run("apply", study, *where, "--yes", "--confirm-within", "60s")
    assert applied.returncode == 0, applied.stderr
    assert look_at(host) != before
    kept = tuner.run("confirm", *where)
    assert kept.returncode == 0, kept.stderr
    assert in_force(study, host)[CASES[server].parameter] == winner
    undone = tuner.run("apply", study, *where, "--undo", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert look_at(host) == before
    assert host.status_of(CASES[server].page, port=CASES[server].port) == 200


@pytest.mark.alone  # beside others the noise of the machine may end it first
def test_a_study_ends_before_the_load_fills_a_disk_with_logs(own_bed: Testbed, tuner: CommandLine):
    host = own_bed.add_host("web")
    (host.root / "var/www/html").mkdir(parents=True, exist_ok=True)
    (host.root / "var/www/html/page.html").write_text("quick")
    host.install_nginx()
    # nginx writes some 90 bytes for each of thousands of requests a second.
    spare = 28 * 2**20
    stat = os.statvfs(host.root / "var/log")
    with (host.root / "var/filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, stat.f_bavail * stat.f_frsize - spare)
    before = look_at(host)
    study = write(tuner, "nginx", host)
    study.write_text(study.read_text().replace("minutes: 0.4", "minutes: 2"))

    done = tuner.run("run", study, "--yes", timeout_s=400)

    assert done.returncode == 3, done.stderr + done.stdout
    assert "stopped the run before the disk is full. Make room (`logrotate" in " ".join(done.stderr.split())
    assert look_at(host) == before
    stat = os.statvfs(host.root / "var/log")
    assert stat.f_bavail * stat.f_frsize > 2 * 2**20

"""`tuner advise` on test hosts where a limit bites for real, and on healthy ones."""

import json
import os
import re
import subprocess
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command_line import TUNER
from tests.integration.limits import (
    NGINX,
    SITUATIONS,
    SLOW,
    Situation,
    busy,
    clients,
    edit,
    few_worker_connections,
    hide_warnings,
    limit,
    serve,
    serve_by_haproxy,
    set_pool,
)
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import PHP_PORT, TestHost, User
from tests.unit.advice.samples import BITES
from tuner.advice.findings import Level
from tuner.advice.rules import FOLDER, read_file
from tuner.advice.status_page import ask_status, read_gauges
from tuner.commands.advise import advise
from tuner.plugins import make_host
from tuner.report.advice import measure_command


def run_tuner(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TUNER, *arguments], capture_output=True, text=True, check=False, timeout=120)


def run_advise(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_tuner("advise", *arguments)


def advise_over_ssh(host: TestHost, *names: str) -> dict[str, Any]:
    done = run_advise(*names, "--host", host.ssh_url, "--json")
    assert done.returncode in {0, 1}, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["bites"] is (done.returncode == 1)
    return told


def test_a_worker_without_free_connections_is_named_first_and_a_healthy_server_is_left_alone(
    own_bed: Testbed,
    tmp_path: Path,
):
    web = own_bed.add_host("web")
    web.install_nginx()

    page = tmp_path / "advice.html"
    healthy = run_advise("nginx", "--host", web.ssh_url, "-o", str(page))

    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert "no limit bites now" in healthy.stdout
    assert "open_file_cache off → 1,000" in healthy.stdout
    assert "No limit bites now" in page.read_text()
    main = web.root / "etc/nginx/nginx.conf"
    main.write_text(re.sub(r"worker_connections \d+", "worker_connections 20", main.read_text()))
    web.run(["nginx", "-s", "reload"])
    log = web.root / "var/log/nginx/error.log"

    def has_bitten() -> bool:
        with clients(web, 60):
            return b"worker_connections are not enough" in log.read_bytes()

    wait_until(has_bitten)
    first = advise_over_ssh(web)["findings"][0]
    shown = run_advise("--host", web.ssh_url)
    main.touch()
    edited = advise_over_ssh(web, "nginx")

    assert [each for each in edited["unread"] if "changed after they started. Reload" in each]
    assert (first["server"], first["rule"], first["level"]) == ("nginx", "nginx.worker_connections", "now")
    setting = first["settings"][0]
    assert (setting["name"], setting["now"], setting["proposed"]) == ("worker_connections", 20, 4096)
    assert setting["place"] == "/etc/nginx/nginx.conf:8"
    assert shown.returncode == 1
    assert "worker_connections 20 → 4,096 (/etc/nginx/nginx.conf:8)" in shown.stdout
    assert f"tuner init nginx --from-advice --host {web.ssh_url} && tuner check " in shown.stdout


@pytest.mark.more
def test_idle_connections_that_nginx_closes_early_are_a_limit_now(own_bed: Testbed):
    web = own_bed.add_host("web")
    edit(web, NGINX, (r"worker_connections \d+", "worker_connections 20"))
    web.install_nginx()

    with clients(web, 60, b"GET / HTTP/1.1\r\nHost: web\r\n\r\n"):
        told = advise_over_ssh(web, "nginx")

    first = told["findings"][0]
    assert (first["rule"], first["level"]) == ("nginx.worker_connections", "now")
    assert [each for each in first["evidence"] if "of 20 connection slots" in each["text"]]
    assert [each for each in told["unread"] if "the default level hides warnings" in each]


def test_status_pages_of_php_fpm_and_haproxy_are_read_and_one_that_hangs_is_said(own_bed: Testbed):
    php, proxy = own_bed.add_host("php"), own_bed.add_host("proxy")
    hide_warnings(php)
    set_pool(php, pm__status_path="/status", pm__max_children="1", pm="static")
    php.install("php-fpm")
    php.put_page("index.php", SLOW)
    serve_by_haproxy(proxy, "maxconn 10", "server one 127.0.0.1:8080")
    status = read_file(FOLDER / "php-fpm.yaml")[1].status
    assert status is not None
    (pool,) = (php.root / "etc/php").glob("*/fpm/pool.d/www.conf")
    asked = partial(ask_status, make_host(php.ssh_url), status, pool.read_text(), ())

    with clients(proxy, 40):
        found = advise_over_ssh(proxy)["findings"]
    free = asked()
    with clients(php, 3, b"GET /index.php HTTP/1.1\r\nHost: web\r\n\r\n", port=PHP_PORT):
        wait_until(lambda: not asked().text)
        told = advise_over_ssh(php, "php-fpm")

    assert (found[0]["rule"], found[0]["level"]) == ("haproxy.frontend_maxconn", "now")
    assert "10 of 10 connections of a frontend are open" in found[0]["evidence"][0]["text"]
    assert found[0]["measure"] == ""
    assert read_gauges(status, free.text)["active_children"] == 1
    assert [each for each in told["unread"] if "its status page /status at /run/php/" in each]
    assert [each for each in told["unread"] if "no answer within 1 s" in each]
    assert [each for each in told["unread"] if "`log_level = error` hides lines that show limits" in each]
    assert ("php-fpm.max_children", "now") in [(each["rule"], each["level"]) for each in told["findings"]]


@pytest.mark.more
def test_a_study_of_a_host_over_ssh_tries_first_what_lifts_its_limit(own_bed: Testbed, tmp_path: Path):
    web = own_bed.add_host("web")
    study = tmp_path / "nginx.yaml"
    with few_worker_connections(web):
        pass  # the log remembers it

    done = run_tuner("init", "nginx", "--from-advice", "--host", web.ssh_url, "-o", str(study))
    checked = run_tuner("check", str(study))

    assert done.returncode == 0, done.stderr
    assert "tries these values first: worker_connections" in done.stderr
    text = study.read_text()
    assert f'target: {{host: "{web.ssh_url}", mode: managed}}' in text
    assert f'path: "http://{web.address}/"' in text
    assert '"worker_connections": {value: 4096, odds: 3, source: "tuner advise: ' in text
    assert checked.returncode == 0, checked.stderr


@pytest.mark.more
@pytest.mark.parametrize("server", ["nginx", "apache", "apache-prefork", "h2o", "php-fpm", "kernel"])
def test_each_command_that_measures_a_proposal_runs(own_bed: Testbed, tmp_path: Path, server: str):
    host = own_bed.add_host("web")
    serve(host, "nginx" if server == "kernel" else server)
    (host.root / "var/www/index.html").write_text("hello")
    told = advise(make_host(host.ssh_url), [server])
    levels = (Level.NOW, Level.TRY)
    commands = [measure_command(replace(BITES, server=server, level=level), told) for level in levels]

    for number, command in enumerate(commands):
        (folder := tmp_path / str(number)).mkdir()
        page = f"http://{host.address}:{PHP_PORT}/index.php"
        words = f"cd {folder}; {command.partition(' && tuner run ')[0].replace('URL', page)}"
        env = {**os.environ, "PATH": f"{Path(TUNER).parent}:{os.environ['PATH']}"}
        shell = ["bash", "-ec", words]
        done = subprocess.run(shell, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{words}: {done.stderr[-500:]}"


@pytest.mark.more
def test_an_ordinary_user_is_told_what_could_not_be_read_of_a_long_and_hostile_log(own_bed: Testbed):
    web = own_bed.add_host("web", user=User(name="deploy"))
    web.install_nginx()
    log = web.root / "var/log/nginx/error.log"
    web.run(["truncate", "--size=10G", "/var/log/nginx/error.log"])
    pid = int((web.root / "run/nginx.pid").read_text())
    said = f"\n%Y/%m/%d %H:%M:%S [alert] {pid}#1: 20 worker_connections are not enough \x1b[2J\n"
    with log.open("a") as file:
        file.write(time.strftime(said))
    log.chmod(0o644)

    limited = run_advise("nginx", "--host", web.ssh_url)
    log.chmod(0o600)
    blind = run_advise("nginx", "--host", web.ssh_url)

    assert limited.returncode == 1, limited.stderr
    assert "20 worker_connections are not enough [2J" in limited.stdout
    assert "memory of its workers" in limited.stdout
    assert "\x1b" not in limited.stdout
    assert "its error log /var/log/nginx/error.log: this file cannot be read" in blind.stdout


@pytest.mark.more
@pytest.mark.parametrize(
    "situation", [each for each in SITUATIONS if not each.is_busy], ids=lambda each: each.name
)
def test_the_limit_that_bites_is_named_first(own_bed: Testbed, situation: Situation):
    with limit(situation, own_bed) as host:
        found = advise_over_ssh(host)["findings"]

    assert found[0]["rule"] in situation.rules, [each["rule"] for each in found]
    assert found[0]["level"] == "now"


@pytest.mark.more
@pytest.mark.parametrize(
    "server", ["nginx", "apache", "apache-prefork", "h2o", "php-fpm", "haproxy", "caddy"]
)
def test_no_limit_bites_on_a_healthy_host(own_bed: Testbed, server: str):
    host = own_bed.add_host("web")
    serve(host, server)

    with busy(host):
        found = advise_over_ssh(host)["findings"]

    assert [each["rule"] for each in found if each["level"] == "now"] == []

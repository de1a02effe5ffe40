"""`tuner advise` on test hosts where a limit bites for real, and on healthy ones."""

import json
import re
import subprocess
import time
from typing import Any

import pytest

from tests.e2e.command_line import TUNER
from tests.integration.limits import SITUATIONS, Situation, busy, clients, limit
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost, User


def run_advise(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [TUNER, "advise", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def advise_over_ssh(host: TestHost, *names: str) -> dict[str, Any]:
    done = run_advise(*names, "--host", host.ssh_url, "--json")
    assert done.returncode in {0, 1}, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["bites"] is (done.returncode == 1)
    return told


def test_a_worker_without_free_connections_is_named_first_and_a_healthy_server_is_left_alone(
    own_bed: Testbed,
):
    web = own_bed.add_host("web")
    web.install_nginx()

    healthy = run_advise("nginx", "--host", web.ssh_url)

    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert "no limit bites now" in healthy.stdout
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

    assert (first["server"], first["rule"], first["level"]) == ("nginx", "nginx.worker_connections", "now")
    setting = first["settings"][0]
    assert (setting["name"], setting["now"], setting["proposed"]) == ("worker_connections", 20, 4096)
    assert setting["place"] == "/etc/nginx/nginx.conf:8"
    assert shown.returncode == 1
    assert "worker_connections 20 → 4,096 (/etc/nginx/nginx.conf:8)" in shown.stdout
    assert "tuner init nginx --from-advice && tuner run" in shown.stdout


@pytest.mark.more
def test_an_ordinary_user_is_told_what_could_not_be_read_of_a_long_and_hostile_log(own_bed: Testbed):
    web = own_bed.add_host("web", user=User(name="deploy"))
    web.install_nginx()
    log = web.root / "var/log/nginx/error.log"
    web.run(["truncate", "--size=10G", "/var/log/nginx/error.log"])
    with log.open("a") as file:
        file.write(
            time.strftime("\n%Y/%m/%d %H:%M:%S [alert] 1#1: 20 worker_connections are not enough \x1b[2J\n")
        )

    limited = run_advise("nginx", "--host", web.ssh_url)
    log.chmod(0o600)
    blind = run_advise("nginx", "--host", web.ssh_url)

    assert limited.returncode in {0, 1}, limited.stderr
    assert "memory of its workers" in limited.stdout
    assert "\x1b" not in limited.stdout
    assert "its error log /var/log/nginx/error.log: it cannot be read" in blind.stdout


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
@pytest.mark.parametrize("server", ["nginx", "apache", "apache-prefork", "h2o", "php-fpm"])
def test_no_limit_bites_on_a_healthy_host(own_bed: Testbed, server: str):
    host = own_bed.add_host("web")
    host.install(server)

    with busy(host):
        found = advise_over_ssh(host)["findings"]

    assert [each["rule"] for each in found if each["level"] == "now"] == []

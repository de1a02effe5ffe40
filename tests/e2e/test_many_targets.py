"""One study on several targets, driven by one controller, with real servers over SSH."""

import json
import signal
from pathlib import Path

import pytest

from benchmarks.faults.look import look_at
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import finished_windows
from tests.e2e.test_managed_studies import prepare_nginx
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.testbed.processors import idle_processors

STUDY = """\
study: many
servers: [nginx]
space: [nginx, {{only: [tcp_nodelay]}}]
targets: [{targets}]
load: {{generator: wrk, path: /page.html, connections: 8}}
budget: {{preset: quick, minutes: 0.5, trials: 1}}
"""
MANAGED = '{{host: "{url}", mode: managed, watchdog_s: 5}}'


@pytest.fixture
def hosts(own_bed: Testbed) -> list[TestHost]:
    made = [own_bed.add_host(name) for name in ("web1", "web2")]
    for host in made:
        prepare_nginx(host)
        (host.root / "etc/machine-id").write_text(f"{host.name:0>32}\n")
    return made


def write(tuner: CommandLine, hosts: list[TestHost]) -> Path:
    targets = ", ".join(MANAGED.format(url=host.ssh_url) for host in hosts)
    return tuner.write(text=STUDY.format(targets=targets))


@pytest.mark.more
def test_two_hosts_come_to_one_winner_that_is_better_on_both(tuner: CommandLine, hosts: list[TestHost]):
    before = [look_at(host) for host in hosts]
    study = write(tuner, hosts)

    with idle_processors(hosts[0]), idle_processors(hosts[1]):
        checked = tuner.run("check", study, "--json", timeout_s=200)
        done = tuner.run("run", study, "--yes", timeout_s=400)

    assert checked.returncode == 0, checked.stderr
    assert [*json.loads(checked.stdout)["targets"]] == [host.ssh_url for host in hosts]

    assert done.returncode == 0, done.stderr + done.stdout
    shown = json.loads(tuner.run("show", study, "--json").stdout)
    assert shown["gain"]["verdict"] == "improved"
    assert [each["name"] for each in shown["hosts"]] == [host.ssh_url for host in hosts]
    assert {each["gain"]["verdict"] for each in shown["hosts"]} == {"improved"}
    assert [look_at(host) for host in hosts] == before


@pytest.mark.more
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_the_controller_ends_every_host_is_given_back(
    tuner: CommandLine, hosts: list[TestHost], number: signal.Signals
):
    before = [look_at(host) for host in hosts]
    study = write(tuner, hosts)

    with idle_processors(hosts[0]), idle_processors(hosts[1]):
        process = tuner.start("run", study, "--yes")
        wait_until(lambda: process.poll() is not None or bool(finished_windows(study)), patience_s=100)
        process.send_signal(number)
        _, said = process.communicate(timeout=100)
        wait_until(lambda: not tuner.processes(), patience_s=100)

    assert process.returncode in {130, -signal.SIGKILL}, said
    assert [look_at(host) for host in hosts] == before
    assert not [journal for host in hosts for journal in (host.root / "var/lib/tuner").glob("run/journal/*")]


def test_a_host_that_cannot_be_used_is_named_before_anything_begins(tuner: CommandLine):
    study = tuner.write(text=STUDY.format(targets="local, ssh://root@127.0.0.1:1"))

    done = tuner.call("run", study)

    assert done.returncode == 3
    assert (
        "1 of 2 hosts cannot be used, and tuner has started nothing. ssh://root@127.0.0.1:1:" in done.stderr
    )
    assert not study.with_suffix(".study").exists()


@pytest.mark.more
def test_two_names_of_one_machine_are_refused_before_anything_begins(
    tuner: CommandLine, hosts: list[TestHost]
):
    for host in hosts:
        (host.root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    study = write(tuner, hosts)

    done = tuner.call("run", study, "--yes")

    assert done.returncode == 2
    assert "are the same machine" in done.stderr
    assert not study.with_suffix(".study").exists()

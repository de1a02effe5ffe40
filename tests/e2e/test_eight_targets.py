"""Eight hosts over SSH under one controller; one loses its worker, another one its cable for a while."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.faults.look import look_at
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import finished_windows
from tests.e2e.test_managed_studies import prepare_nginx
from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.processors import idle_processors
from tuner.records import State
from tuner.study import load_study
from tuner.study.open_storage import open_storage

STUDY = """\
study: eight
servers: [nginx]
space: [nginx, {{only: [tcp_nodelay]}}]
targets: [{targets}]
load: {{generator: wrk, path: /page.html, connections: 2}}
budget: {{preset: quick, minutes: 1.5, trials: 1}}
"""
MANAGED = '{{host: "{url}", mode: managed, watchdog_s: 8}}'


def find_workers(tuner: CommandLine) -> list[int]:
    """Return the processes of which each drives one host: forks of the one that loads what they share."""
    forks = [pid for pid in tuner.processes() if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    parents = {pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in forks}
    return [pid for pid, parent in parents.items() if parent in parents]


@pytest.mark.servers
def test_eight_hosts_are_as_before_though_a_worker_was_killed_and_a_cable_was_out(
    tuner: CommandLine, own_bed: Testbed
):
    hosts = [own_bed.add_host(f"web{number}") for number in range(8)]
    for host in hosts:
        prepare_nginx(host)
        (host.root / "etc/machine-id").write_text(f"{host.name:0>32}\n")
    kept = hosts[-1].root / "var/lib/tuner/log"
    before = [look_at(host) for host in hosts]
    targets = ", ".join(MANAGED.format(url=host.ssh_url) for host in hosts)
    study = tuner.write(text=STUDY.format(targets=targets))

    with ExitStack() as stack:
        for host in hosts:
            stack.enter_context(idle_processors(host))
        process = tuner.start("run", study, "--yes")
        wait_until(
            lambda: process.poll() is not None or len(finished_windows(study)) >= len(hosts), patience_s=300
        )
        os.kill(find_workers(tuner)[0], signal.SIGKILL)
        hosts[-1].cut()
        wait_until(lambda: "everything is back" in kept.read_text(), patience_s=60)
        hosts[-1].heal()
        _, said = process.communicate(timeout=500)
        wait_until(lambda: not tuner.processes(), patience_s=100)

    assert process.returncode in {0, 1}, said
    assert [look_at(host) for host in hosts] == before
    settings = load_study(study)
    trials = open_storage(settings.storage_url, settings.name, create=False).trials()
    assert {trial.host for trial in trials} == {host.ssh_url for host in hosts}
    assert not [trial for trial in trials if trial.state is State.RUNNING]

"""Installed services on hosts over SSH: checked, tuned, given back, and changed for good."""

import json
import re

import pytest

from benchmarks.faults.look import has_changed, look_at
from tests.e2e.command_line import CommandLine
from tests.testbed.bed import Testbed
from tests.testbed.host import Sudo, TestHost, User
from tests.testbed.processors import idle_processors
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.study import load_study

STUDY = """\
study: web
servers: [nginx, sysctl]
space:
  - nginx
  - sysctl-net
  - {{only: [worker_connections, sendfile, open_file_cache, listen_backlog, net.core.somaxconn]}}
target: {{host: "{url}", mode: managed, watchdog_s: 10}}
budget: {{preset: quick}}
load: {{generator: wrk, path: /, connections: 10{more}}}
"""
# Load that leaves the processors mostly idle: the links of test hosts cost this machine more than a request
# does, and what is looked at is the run, not how fast nginx is.
LIGHT_STUDY = (
    STUDY[: STUDY.index("load:")]
    + """\
load:
  generator: command
  path: /
  connections: 1
  command: [python3, {asks}, "{{url}}", "{{duration_s}}"]
  result: {{regex: '(?P<correct>\\d+)'}}
"""
)
ASKS = """\
import sys, time, urllib.request
until, correct = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < until:
    correct += urllib.request.urlopen(sys.argv[1]).status == 200
    time.sleep(0.01)
print(correct)
"""
DEPLOY = User(name="deploy", sudo=Sudo.FREELY)


@pytest.fixture(scope="module")
def web(bed: Testbed) -> TestHost:
    """A host with nginx, on which an ordinary user may become root."""
    host = bed.add_host("web", user=DEPLOY)
    host.install_nginx()
    return host


@pytest.fixture
def tuner(bed: Testbed, tmp_path) -> CommandLine:
    return CommandLine(tmp_path, variables={"HOME": str(bed.home), "TUNER_STATE": str(tmp_path / "state")})


def write(tuner: CommandLine, host: TestHost, more: str = ""):
    return tuner.write(text=STUDY.format(url=host.ssh_url, more=more))


def test_a_check_shows_what_a_run_would_change_and_changes_nothing(tuner: CommandLine, web: TestHost):
    before = look_at(web)

    done = tuner.call("check", write(tuner, web), "--plan")

    assert done.returncode == 0, done.stderr
    assert "nginx 1." in done.stdout
    assert re.search(r"worker_connections +768.* now, ", done.stdout)
    assert "net.core.somaxconn" in done.stdout
    assert re.search(r"^-\s+worker_connections 768;$", done.stdout, re.MULTILINE)
    assert "restarts   nginx" in done.stdout
    assert look_at(web) == before
    assert not (web.root / "var/lib/tuner/keeper").exists()


def test_a_managed_run_needs_an_agreement(tuner: CommandLine, web: TestHost):
    study = write(tuner, web)
    for arguments in (("run", study), ("compare", study, "default", "cached")):
        done = tuner.call(*arguments)

        assert done.returncode == 2
        assert "Agree with --yes" in done.stderr
    assert not (web.root / "var/lib/tuner/keeper").exists()


def test_a_run_measures_changes_and_gives_back_what_it_found(tuner: CommandLine, web: TestHost):
    asks = tuner.folder / "ask.py"
    asks.write_text(ASKS)
    study = tuner.write(text=LIGHT_STUDY.format(url=web.ssh_url, asks=asks))
    before = look_at(web)

    with idle_processors(web):
        done = tuner.run_in_peace("run", study, "--yes", "--minutes", "0.4", "--trials", "3")

    assert done.returncode in {0, 1}, done.stderr
    shown = json.loads(tuner.run("show", study, "--json").stdout)
    assert shown["state"] == "finished"
    assert shown["fingerprint"]["co_located"] is False
    assert shown["default"]["config"]["worker_connections"] == 768
    # Whether one of them was worth a second window is its luck.
    searched = [
        trial
        for trial in shown["trials"]
        if trial["role"] == "search" and trial["state"] in {"complete", "pruned"}
    ]
    assert searched
    assert all(window["goodput_rps"] > 0 for trial in searched for window in trial["windows"])
    assert has_changed(web)
    assert look_at(web) == before
    assert not list((web.root / "var/lib/tuner").glob("run/journal/*"))
    web.cut()
    try:
        # What was measured is shown whether or not the host is still there.
        assert json.loads(tuner.run("show", study, "--json").stdout) == shown
        assert tuner.run("report", study).returncode == 0
    finally:
        web.heal()


@pytest.mark.more
def test_the_sudoers_file_of_a_check_is_all_that_a_run_needs(
    tuner: CommandLine, bed: Testbed, monkeypatch: pytest.MonkeyPatch
):
    host = bed.add_host("strict", user=User(name="deploy", sudo=Sudo.FREELY))
    host.install_nginx()
    study = write(tuner, host)
    rules = tuner.run("check", study, "--sudoers")
    assert rules.returncode == 0, rules.stderr
    host.run(["sh", "-c", "cat > /etc/sudoers.d/testbed"], stdin=rules.stdout.encode())
    assert host.run(["visudo", "-c"], check=False).returncode == 0
    assert host.run(["su", "deploy", "-c", "sudo -n id"], check=False).returncode != 0

    for name, value in tuner.variables.items():
        monkeypatch.setenv(name, value)
    found = find_target(load_study(study), plugins.make_host(host.ssh_url))
    target, space = found.target, found.space
    before = look_at(host)

    with target.hold(print), target.deploy(space.complete({"sendfile": False})):
        assert look_at(host) != before

    assert look_at(host) == before


@pytest.mark.more
@pytest.mark.alone
def test_a_winner_is_applied_kept_and_taken_back(finished, tuner: CommandLine, web: TestHost):
    _, study, _ = finished
    before = look_at(web)
    where = ("--host", web.ssh_url)

    applied = tuner.run("apply", study, *where, "--yes", "--confirm-within", "60s")
    assert applied.returncode == 0, applied.stderr
    in_force = look_at(web)
    kept = tuner.run("confirm", *where)
    restored = tuner.run("restore", *where)
    still = look_at(web)
    undo = ("apply", study, *where, "--undo")
    shown = tuner.run(*undo, "--dry-run")
    unasked = tuner.run(*undo)
    other = tuner.write("other.yaml", text=STUDY.format(url=web.ssh_url, more="").replace("web", "other", 1))
    of_other = tuner.run("apply", other, *where, "--undo", "--yes")
    unchanged = look_at(web)
    undone = tuner.run(*undo, "--yes")

    assert in_force != before
    assert kept.returncode == 0, kept.stderr
    assert "Nothing to restore" in restored.stderr
    assert still == unchanged == in_force
    assert shown.returncode == 0, shown.stderr
    assert "/etc/nginx/nginx.conf" in shown.stdout
    assert "Nothing was changed" in shown.stderr
    assert unasked.returncode == 2
    assert "Agree with --yes" in unasked.stderr
    assert of_other.returncode == 2
    assert "belongs to the study" in of_other.stderr
    assert undone.returncode == 0, undone.stderr
    assert look_at(web) == before
    assert "nothing is applied" in tuner.run(*undo).stderr
    never_ran = tuner.run("apply", other, *where, "--undo")
    assert never_ran.returncode == 2
    assert "never ran" in never_ran.stderr


@pytest.mark.more
@pytest.mark.alone
def test_nothing_is_applied_while_somebody_else_changes_the_host(finished, tuner: CommandLine, web: TestHost):
    _, study, _ = finished
    before = look_at(web)
    web.run(["sh", "-c", "cp /bin/sleep /tmp/apt-get; setsid /tmp/apt-get 60 >/dev/null 2>&1 &"])

    try:
        done = tuner.run("apply", study, "--host", web.ssh_url, "--yes")
    finally:
        web.run(["pkill", "-x", "apt-get"])

    assert done.returncode == 3
    assert "apt-get" in done.stderr
    assert look_at(web) == before


@pytest.mark.more
@pytest.mark.alone
def test_what_nobody_confirms_is_taken_back_by_the_host_itself(finished, tuner: CommandLine, web: TestHost):
    from tests.e2e.traces import eventually

    _, study, _ = finished
    before = look_at(web)
    where = ("--host", web.ssh_url)

    applied = tuner.run("apply", study, *where, "--yes", "--confirm-within", "10s")

    assert applied.returncode == 0, applied.stderr
    assert look_at(web) != before
    web.cut()
    try:
        assert eventually(lambda: look_at(web) == before, within_s=25)
    finally:
        web.heal()
    assert tuner.run("confirm", *where).returncode == 3

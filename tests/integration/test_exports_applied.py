"""Exports that know no server, applied to test hosts by their real consumers, and undone."""

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.faults.look import differing, look_at
from tests.integration.random_winners import (
    PORTS,
    SPACES,
    WINNERS,
    draw_winner,
    prepare_study,
    read_winner,
    values_in_force,
)
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.testbed.namespaces import entrance
from tuner.commands.outputs import write_export, write_results
from tuner.errors import TargetError
from tuner.study.folder import make_folder
from tuner.study.open_storage import open_storage

pytestmark = pytest.mark.more


@dataclass(frozen=True, kw_only=True)
class Hand:
    """How an export is put on a host and taken back, as its head says; returns what was printed."""

    apply: Callable[[TestHost, Path], str]
    undo: Callable[[TestHost, Path], str]


def play(host: TestHost, playbook: Path, *options: str, fails: bool = False) -> str:
    """Run a playbook from here, over the SSH of the host."""
    environment = {
        **os.environ, "ANSIBLE_HOME": str(playbook.parent.parent / ".ansible"), "LC_ALL": "C.UTF-8",
        "ANSIBLE_PIPELINING": "1",
    }  # fmt: skip
    arguments = (
        f"--inventory={host.address},", f"--user={host.user.name}", f"--private-key={host.identity}",
        f"--ssh-common-args=-o UserKnownHostsFile={host.home}/.ssh/known_hosts",
        "--extra-vars=ansible_python_interpreter=/usr/bin/python3",
    )  # fmt: skip
    done = subprocess.run(
        ["ansible-playbook", *arguments, *options, playbook.name],
        cwd=playbook.parent, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout


def run_script(name: str) -> Callable[[TestHost, Path], str]:
    """Run a script of the shell format on the host itself."""

    def run(host: TestHost, folder: Path) -> str:
        script = (folder / "tuner-shell" / name).read_bytes()
        return host.run(["sh", "-s"], stdin=script).stdout.decode()

    return run


def run_playbook(name: str) -> Callable[[TestHost, Path], str]:
    return lambda host, folder: play(host, folder / "tuner-ansible" / name)


def follow_heads(way: str) -> Callable[[TestHost, Path], str]:
    """Do what the heads of the formats of servers say: lines that begin with `apply:` or `undo:`."""

    def follow(host: TestHost, folder: Path) -> str:
        place = host.root / "root"
        for path in folder.iterdir():
            (place / path.name).write_bytes(path.read_bytes())
        heads = [path.read_text() for path in sorted(folder.iterdir()) if "-undo." not in path.name]
        lines = (line for head in heads for line in re.findall(rf"(?m)^# {way}: +(.*)$", head))
        said = "".join(host.run(["sh", "-c", f"cd /root && {line}"]).stdout.decode() for line in lines)
        for line in re.findall(r"(?m)^Stop and start the server now: (.*)$", said):
            host.run(["sh", "-c", line])
        return said

    return follow


HANDS = {
    "native": Hand(apply=follow_heads("apply"), undo=follow_heads("undo")),
    "shell": Hand(apply=run_script("apply.sh"), undo=run_script("undo.sh")),
    "ansible": Hand(apply=run_playbook("apply.yml"), undo=run_playbook("undo.yml")),
}


@pytest.fixture
def host(own_bed: Testbed) -> TestHost:
    return own_bed.add_host("web")


@pytest.mark.parametrize("form", HANDS)
@pytest.mark.parametrize("server", SPACES)
@pytest.mark.parametrize("number", range(WINNERS))
def test_a_random_winner_is_in_force_when_applied_and_every_byte_is_back_when_undone(
    host: TestHost, tmp_path: Path, server: str, form: str, number: int
) -> None:
    host.install(server)
    setup, hand = prepare_study(host, server, tmp_path), HANDS[form]
    before, port = look_at(host), PORTS.get(server, 80)
    winner, folder = draw_winner(setup, seed=f"{server} {number}"), tmp_path / "out"
    for name in (server, "sysctl") if form == "native" else (form,):
        write_export(read_winner(setup, winner), name, folder)

    hand.apply(host, folder)
    host.wait_until_it_answers(port)
    changed = {name: new for name, (_, new) in setup.space.changes(winner).items()}
    assert values_in_force(setup, changed) == changed
    assert look_at(host) != before

    hand.undo(host, folder)
    host.wait_until_it_answers(port)
    assert differing(before, look_at(host)) == {}, changed


def recap(said: str) -> dict[str, int]:
    """Read the last line that a playbook prints: how many tasks were ok, changed, failed."""
    return {word: int(number) for word, number in re.findall(r"(\w+)=(\d+)", said.splitlines()[-2])}


def test_playbooks_can_be_tried_first_change_nothing_twice_and_leave_what_they_do_not_know(
    host: TestHost, tmp_path: Path
) -> None:
    host.install("nginx")
    setup = prepare_study(host, "nginx", tmp_path)
    winner = setup.space.complete({"worker_connections": 4000, "net.core.somaxconn": 9000})
    write_export(read_winner(setup, winner), "ansible", tmp_path)
    apply, undo = (tmp_path / f"tuner-ansible/{name}.yml" for name in ("apply", "undo"))
    before = look_at(host)

    tried = play(host, apply, "--check", "--diff")
    assert "+\tworker_connections 4000;" in tried
    assert recap(tried)["failed"] == 0
    assert differing(before, look_at(host)) == {}

    assert recap(play(host, apply))["changed"] > 0
    for options in ((), ("--check",)):
        assert recap(play(host, apply, *options))["changed"] == 0

    main = host.root / "etc/nginx/nginx.conf"
    applied = main.read_bytes()
    main.write_bytes(applied + b"# ours, since then\n")
    refused = play(host, undo, fails=True)
    assert "nginx.conf has changed since this was written; nothing was changed" in refused
    assert main.read_bytes() == applied + b"# ours, since then\n"

    main.write_bytes(applied)
    play(host, undo)
    assert differing(before, look_at(host)) == {}


def test_what_nginx_refuses_is_put_back_by_the_playbook(host: TestHost, tmp_path: Path) -> None:
    host.install("nginx")
    setup = prepare_study(host, "nginx", tmp_path)
    winner = setup.space.complete({"worker_connections": 4000, "net.core.somaxconn": 9000})
    write_export(read_winner(setup, winner), "ansible", tmp_path)
    role = tmp_path / "tuner-ansible/roles/tuner"
    file = role / "files/apply/etc/nginx/nginx.conf"
    file.write_bytes(file.read_bytes().replace(b"worker_connections 4000;", b"worker_connections none;"))
    before = look_at(host)

    said = play(host, tmp_path / "tuner-ansible/apply.yml", fails=True)

    assert "Let the servers check their files" in said
    assert "Everything was restored." in said
    assert differing(before, look_at(host)) == {}


def test_a_server_that_does_not_start_is_put_back_and_runs_and_no_play_is_green_while_it_is_down(
    host: TestHost, tmp_path: Path
) -> None:
    host.install("nginx")
    setup = prepare_study(host, "nginx", tmp_path)
    write_export(read_winner(setup, setup.space.complete({"worker_connections": 4000})), "ansible", tmp_path)
    # The check of nginx accepts a port that is taken; what is started finds that out.
    folder, port = tmp_path / "tuner-ansible", 8099
    vars_file = folder / "roles/tuner/vars/apply.yml"
    file = folder / "roles/tuner/files/apply/etc/nginx/nginx.conf"
    good, good_vars = file.read_bytes(), vars_file.read_text()
    bad = good.replace(b"http {", b"http {\n    server { listen 127.0.0.1:%d; }" % port)
    file.write_bytes(bad)
    sums = (hashlib.sha256(each).hexdigest() for each in (good, bad))
    vars_file.write_text(good_vars.replace(*sums))
    before = look_at(host)

    with taken(host, port):
        said = play(host, folder / "apply.yml", fails=True)
    assert "Activate the services" in said
    assert "Everything was restored." in said
    host.wait_until_it_answers(80)
    assert differing(before, look_at(host)) == {}

    file.write_bytes(good)
    vars_file.write_text(good_vars)
    play(host, folder / "apply.yml")
    host.run(["service", "nginx", "stop"])
    with taken(host, 80):
        assert "Make sure that the services run" in play(host, folder / "apply.yml", fails=True)
    assert recap(play(host, folder / "apply.yml"))["changed"] > 0
    host.wait_until_it_answers(80)


@contextmanager
def taken(host: TestHost, port: int) -> Iterator[None]:
    """Let another program listen on a port of the host."""
    program = f"""
import socket, sys
with socket.create_server(("", {port})):
    print("here", flush=True)
    sys.stdin.read()
"""
    command = [*entrance(host.pid), "/usr/bin/python3", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == b"here\n"
        yield
        listener.communicate(b"")


def test_exports_are_written_when_the_target_is_gone(host: TestHost, tmp_path: Path) -> None:
    host.install("nginx")
    setup = prepare_study(host, "nginx", tmp_path)
    reading = read_winner(setup, setup.space.complete({"worker_connections": 4000}))
    make_folder(setup.settings.folder)
    open_storage(setup.settings.storage_url, setup.settings.name)
    write_results(reading)
    forms = ("nginx", "shell", "ansible", "markdown", "json")
    known = {form: read_files(write_export(reading, form, tmp_path / "known" / form)) for form in forms}

    host.kill_sshd()
    later, warned = replace(reading, setup=None), list[str]()
    for form in forms:
        written = write_export(later, form, tmp_path / "later" / form, warn=warned.append)
        assert read_files(written) == known[form]
    assert len(warned) == len(forms) - 1, "json asks no target"
    assert all("the target at the end of the study" in each for each in warned)
    other = read_winner(setup, setup.space.complete({"worker_connections": 5000}))
    with pytest.raises(TargetError):
        write_export(replace(other, setup=None), "shell", tmp_path / "other")


def read_files(paths: Sequence[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize("form", HANDS)
def test_the_limits_of_a_unit_of_systemd_are_raised_and_put_back(
    own_bed: Testbed, tmp_path: Path, form: str
) -> None:
    host = own_bed.add_host("web", systemd=True)
    host.limit_open_files("nginx", 2000)
    host.install_nginx()
    setup, hand = prepare_study(host, "nginx", tmp_path), HANDS[form]
    before = look_at(host)
    winner, folder = setup.space.complete({"worker_connections": 4000}), tmp_path / "out"
    write_export(read_winner(setup, winner), "nginx" if form == "native" else form, folder)

    hand.apply(host, folder)
    host.wait_until_it_answers(80)
    assert int(host.show_unit("nginx", "LimitNOFILE")) > 4000
    assert host.show_unit("nginx", "NeedDaemonReload") == "no"

    hand.undo(host, folder)
    host.wait_until_it_answers(80)
    assert host.show_unit("nginx", "LimitNOFILE") == "2000"
    assert host.show_unit("nginx", "NeedDaemonReload") == "no"
    assert differing(before, look_at(host)) == {}

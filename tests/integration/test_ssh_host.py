"""Commands and files over SSH: exactly what was asked, in few round trips, whatever happens on the way."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.waiting import wait_until
from tests.more import examples
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner.adapters.hosts.ssh import SshHost
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import ABSENT, Command, FileState

SHELLS = {"dash": "/usr/bin/dash", "bash": "/usr/bin/bash", "busybox": "/usr/bin/busybox"}
ANYTHING = st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"")).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)  # fmt: skip
NASTY = st.sampled_from(
    ["", "-n", "--", "'", '"', "$(id)", "`id`", "\n", "a\nend\n", "\\", "%s", "*", "~", ";", "é"]
)


@pytest.fixture(scope="module", params=SHELLS)
def shell(bed: Testbed, request: pytest.FixtureRequest) -> TestHost:
    """Give a host whose sh is one that hosts really have."""
    machine = bed.add_host(request.param)
    machine.run(["ln", "-sf", SHELLS[request.param], "/usr/bin/sh"])
    return machine


@pytest.fixture(scope="module")
def any_shell(shell: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(shell.ssh_url)) as host:
        yield host


@pytest.fixture(scope="module")
def machine(bed: Testbed) -> TestHost:
    return bed.add_host("web")


@pytest.fixture
def host(machine: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(machine.ssh_url)) as made:
        yield made


@settings(max_examples=examples(25), deadline=None)
@given(words=st.lists(NASTY | ANYTHING, max_size=5), stdin=st.binary(max_size=200))
def test_any_argument_and_any_stdin_arrive_as_they_are(any_shell: SshHost, words: list[str], stdin: bytes):
    printed, copied = any_shell.run_all(
        [Command(argv=("printf", "%s\\0", *words, "end")), Command(argv=("cat",), stdin=stdin)]
    )

    assert printed.stdout == b"".join(
        word.encode("utf-8", "surrogateescape") + b"\0" for word in (*words, "end")
    )
    assert copied.stdout == stdin


@settings(max_examples=examples(15), deadline=None)
@given(name=NASTY | ANYTHING, content=st.binary(max_size=300))
def test_any_content_at_any_path_is_read_as_it_was_written(any_shell: SshHost, name: str, content: bytes):
    path = PurePosixPath(f"/tmp/x{name.replace('/', '')}")  # noqa: S108 - of a machine that lives for a second
    state = FileState(content=content, mode=0o640, uid=0, gid=0)

    any_shell.write(path, state)

    assert any_shell.read(path) == state
    assert any_shell.look([path, path / "nothing"]).read(path) == state
    any_shell.write(path, ABSENT)
    assert any_shell.read(path) == ABSENT


def test_every_byte_and_long_stdin_and_long_output_arrive(any_shell: SshHost):
    for content in (bytes(range(256)) * 3, bytes(range(256)) * 9000):
        assert any_shell.run(["cat"], timeout_s=30, stdin=content).stdout == content

    printed = any_shell.run(["sh", "-c", "head -c 9000000 /dev/zero; echo last >&2; echo last"], timeout_s=30)

    assert printed.stdout.startswith(b"[611397 earlier bytes left out]\n")
    assert (len(printed.stdout), printed.stdout[-6:], printed.stderr) == (
        8 * 2**20 + 32,
        b"\0last\n",
        b"last\n",
    )


def test_what_a_command_used_and_how_it_ended_is_told(any_shell: SshHost):
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; kill -TERM $$"

    ended = any_shell.run(["sh", "-c", busy], timeout_s=30)

    assert ended.returncode == -15
    assert 0.02 < ended.cpu_s <= ended.duration_s + 0.05
    assert not ended.timed_out


def test_the_deadline_kills_all_that_the_command_has_started(shell: TestHost, any_shell: SshHost):
    left = any_shell.run(["sh", "-c", "setsid sleep 601 & sleep 602 & echo on; sleep 603"], timeout_s=0.3)

    assert (left.timed_out, left.returncode, left.stdout) == (True, -9, b"on\n")
    wait_until(lambda: not shell.processes("sleep"))
    assert any_shell.run(["echo", "on"], timeout_s=5).stdout == b"on\n"


def test_words_of_the_shell_are_no_programs(any_shell: SshHost):
    for word in ("cd", "tuner_kill", "exit", "export", "-n", "", "/etc"):
        with pytest.raises(TargetError, match=f"there is no program '{word}'"):
            any_shell.run([word, "1"], timeout_s=5)
    assert any_shell.run(["echo", "a\\nb"], timeout_s=5).stdout == b"a\\nb\n"


def test_a_daemon_that_keeps_its_output_does_not_hold_up_the_answer(shell: TestHost, any_shell: SshHost):
    assert any_shell.run(["sh", "-c", "setsid sleep 604 & echo on"], timeout_s=10).stdout == b"on\n"

    shell.run(["pkill", "sleep"])


def test_nothing_is_left_behind(shell: TestHost):
    host = SshHost(shell.ssh_url)
    host.run_all([Command(argv=("true",))] * 20)
    host.start(["sleep", "605"])
    host.close()

    wait_until(lambda: not shell.processes("sleep"))


def test_a_look_and_many_commands_are_one_round_trip_each(machine: TestHost, host: SshHost):
    machine.install_nginx()
    pid = int(host.read(PurePosixPath("/run/nginx.pid")).content)
    workers = machine.run(["pgrep", "--parent", str(pid)]).stdout.split()
    before = host.requests

    look = host.look([PurePosixPath("/proc/loadavg"), PurePosixPath("/proc/no")], trees=[pid])
    host.run_all(
        [
            Command(argv=("nginx", "-t"), may_fail=True),
            Command(argv=("cat",), stdin=b"x"),
            Command(argv=("id",)),
        ]
    )
    assert host.requests == before + 2

    assert look.read(PurePosixPath(f"/proc/{pid}/task/{pid}/children")).content.split() == workers
    for each in workers:
        assert (
            look.read(PurePosixPath(f"/proc/{each.decode()}/cmdline")).content == b"nginx: worker process\0"
        )
        assert b"Max open files" in look.read(PurePosixPath(f"/proc/{each.decode()}/limits")).content
    assert look.read(PurePosixPath("/proc/no")) == ABSENT
    assert host.requests == before + 2
    assert look.read(PurePosixPath("/proc/uptime")).content
    assert host.requests == before + 3


def test_what_may_not_be_read_or_written_says_why(machine: TestHost, host: SshHost):
    with pytest.raises(TargetError, match="/etc cannot be read: Is a directory"):
        host.read(PurePosixPath("/etc"))
    with pytest.raises(TargetError, match="/no/where cannot be written: No such file or directory"):
        host.write(PurePosixPath("/no/where"), FileState(content=b""))
    with pytest.raises(ConfigRejected, match="somaxconn: the kernel refused 'x': Invalid argument"):
        host.write(PurePosixPath("/proc/sys/net/core/somaxconn"), FileState(content=b"x"))

    machine.fill_disk()
    with pytest.raises(TargetError, match="cannot be written: No space left on device"):
        host.write(PurePosixPath("/etc/hosts"), FileState(content=b"x" * 10**6))
    machine.free_disk()
    assert b"localhost" in host.read(PurePosixPath("/etc/hosts")).content
    assert not list((machine.root / "etc").glob(".hosts*"))


def test_more_open_files_than_are_allowed_are_refused(host: SshHost):
    assert host.run(["sh", "-c", "ulimit -n"], timeout_s=5, open_files=100).stdout == b"100\n"
    with pytest.raises(ConfigRejected, match="needs 2000000000 open files, and fewer are allowed"):
        host.run(["true"], timeout_s=5, open_files=2_000_000_000)


def test_a_link_is_followed_and_labels_are_kept(machine: TestHost, host: SshHost):
    machine.run(["sh", "-c", "mkdir -p /srv/a && echo old >/srv/a/file && ln -s a/file /srv/link"])
    os.setxattr(machine.root / "srv/a/file", "trusted.label", b"mine")

    host.write(PurePosixPath("/srv/link"), FileState(content=b"new\n"))

    assert (machine.root / "srv/link").is_symlink()
    assert machine.run(["cat", "/srv/a/file"]).stdout == b"new\n"
    assert os.getxattr(machine.root / "srv/a/file", "trusted.label") == b"mine"


def test_threads_have_a_shell_each(host: SshHost):
    done: list[bytes] = []

    def ask(number: int) -> None:
        done.append(host.run(["sh", "-c", f"sleep 0.2; echo {number}"], timeout_s=10).stdout)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(done) == sorted(b"%d\n" % number for number in range(12))


def test_a_command_that_was_cut_off_is_not_repeated_but_reading_is(machine: TestHost, host: SshHost):
    def kill_when_it_runs() -> None:
        wait_until(lambda: machine.processes("sleep"))
        machine.kill_sshd()

    killer = threading.Thread(target=kill_when_it_runs)
    killer.start()
    with pytest.raises(TargetError, match=r"the connection broke.*`sleep 607` may or may not have run"):
        host.run(["sleep", "607"], timeout_s=3)
    killer.join()
    with pytest.raises(TargetError, match="cannot be reached"):
        host.read(PurePosixPath("/etc/hosts"))

    machine.start_sshd()
    assert host.read(PurePosixPath("/etc/hosts")).content
    # The shells of before have noticed, and have taken their private files with them.
    wait_until(lambda: len(list((machine.root / "dev/shm").iterdir())) == 1)


def test_a_started_program_whose_connection_broke_is_ended_and_not_said_to_have_ended(
    machine: TestHost, host: SshHost
):
    process = host.start(["sleep", "606"])
    machine.kill_sshd()

    with pytest.raises(TargetError, match="the connection broke"):
        wait_until(lambda: process.poll() is not None)
    wait_until(lambda: not machine.processes("sleep"))
    machine.start_sshd()


def test_after_a_cut_link_has_healed_the_same_host_goes_on(machine: TestHost, host: SshHost):
    host.run(["true"], timeout_s=5)
    machine.cut()
    threading.Timer(0.5, machine.heal).start()

    assert host.read(PurePosixPath("/etc/hosts")).content
    assert host.run(["echo", "on"], timeout_s=5).stdout == b"on\n"

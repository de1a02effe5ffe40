from pathlib import Path, PurePosixPath

import pytest

from tuner.errors import HostLost, RestoreFailed, TargetError, Unreachable
from tuner.ports import Completed, FileState, Service
from tuner.restore.journal import Journal
from tuner.restore.lease import Lease
from tuner.testing.fakes import MemoryHost, completed

CONF = PurePosixPath("/etc/nginx/nginx.conf")
NGINX = Service(
    name="nginx",
    check=("nginx", "-t"),
    stop=("systemctl", "stop", "nginx"),
    start=("sh", "-c", "echo 'it'; nginx"),
    reload=None,
    is_systemd=True,
    pid_file=PurePosixPath("/run/nginx.pid"),
)


def test_without_root_nothing_is_armed(tmp_path: Path):
    refusal = completed(returncode=1, stderr=b"sudo: a password is required")
    host = MemoryHost(commands={"/bin/sh": lambda *_: refusal})
    with Journal(tmp_path) as journal, pytest.raises(TargetError, match="a password is required"):
        Lease(host, journal=journal, study="s").arm([NGINX])


def test_a_keeper_that_may_not_be_installed_is_told(tmp_path: Path):
    missing = completed(returncode=127, stderr=b"sh: cannot open /var/lib/tuner/keeper")
    refusal = completed(returncode=1, stderr=b"sudo: not allowed")
    commands = {"/bin/sh": lambda *_: missing, "/usr/bin/install": lambda *_: refusal}
    with (
        Journal(tmp_path) as journal,
        pytest.raises(TargetError, match=r"cannot be installed \(sudo: not allowed"),
    ):
        Lease(MemoryHost(commands=commands), journal=journal, study="s").arm([NGINX])


def test_the_targets_word_is_not_enough_when_a_file_reads_differently(tmp_path: Path):
    answers = {"arm": b"", "restore": b"back\t/etc/nginx/nginx.conf\n"}
    original = FileState(content=b"one\n", mode=0o644, uid=0, gid=0)
    host = MemoryHost(
        files={CONF: original},
        commands={
            "/bin/sh": lambda _, argv, __: completed(argv, stdout=answers.get(argv[2], b"") + b"end\t2\n")
        },
    )
    with Journal(tmp_path) as journal:
        lease = Lease(host, journal=journal, study="s")
        lease.arm([])
        lease.command_to_change({CONF: b"two\n"})
        host.files[CONF] = FileState(content=b"two\n", mode=0o644, uid=0, gid=0)

        with pytest.raises(
            RestoreFailed, match=r"everything is restored, but /etc/nginx/nginx\.conf differs"
        ):
            lease.restore()
        assert [each.path for each in journal.originals("memory")] == [CONF]

        host.files[CONF] = original
        lease.restore()
        assert journal.originals("memory") == ()


@pytest.mark.parametrize(
    ("error", "raised", "told"),
    [
        (
            Unreachable("memory: it is away."),
            HostLost,
            "watchdog of the host restores .* 120 s .* To resume, run the same",
        ),
        (TargetError("memory: it is odd."), RestoreFailed, "To restore now, run: tuner restore"),
    ],
)
def test_a_host_that_was_not_reached_is_told_apart_from_one_that_is_not_back(
    tmp_path: Path, error: TargetError, raised: type[RestoreFailed], told: str
):
    def answer(_: MemoryHost, argv: tuple[str, ...], __: bytes) -> Completed:
        if argv[2] == "restore":
            raise error
        return completed(argv, stdout=b"end\t2\n")

    with Journal(tmp_path) as journal:
        lease = Lease(MemoryHost(commands={"/bin/sh": answer}), journal=journal, study="s")
        lease.arm([])

        with pytest.raises(RestoreFailed, match=told) as failed:
            lease.restore()
    assert type(failed.value) is raised


def test_a_file_is_only_overwritten_if_it_is_the_one_that_was_read(tmp_path: Path):
    host = MemoryHost(
        files={CONF: FileState(content=b"new\n", mode=0o644, uid=0, gid=0)},
        commands={"/bin/sh": lambda _, argv, __: completed(argv, stdout=b"end\t2\n")},
    )
    with Journal(tmp_path) as journal, pytest.raises(TargetError, match=r"nginx\.conf: somebody else has"):
        Lease(host, journal=journal, study="s").arm([], files={CONF: b"old\n"})

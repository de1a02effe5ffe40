from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest

from tuner.deploy.discovery import read_pid
from tuner.errors import ConfigRejected, RestoreFailed, TargetError
from tuner.ports import ABSENT, FileState, Service
from tuner.restore.journal import HostRecord, Journal, Original
from tuner.restore.keeper import replies, requests
from tuner.restore.lease import Lease
from tuner.restore.recovery import describe_use, restore_host
from tuner.testing.fakes import MemoryHost, completed

CONF = PurePosixPath("/etc/nginx/nginx.conf")
SETTING = PurePosixPath("/proc/sys/net/core/somaxconn")
NGINX = Service(
    name="nginx",
    check=("nginx", "-t"),
    stop=("systemctl", "stop", "nginx"),
    start=("sh", "-c", "echo 'it'; nginx"),
    reload=None,
    is_systemd=True,
    pid_file=PurePosixPath("/run/nginx.pid"),
)


def arming(*services: Service, watchdog_s: float = 120.0, urls: tuple[str, ...] = ()) -> list[str]:
    command = requests.arming(
        "run",
        session="0a",
        owner=[("by", "me"), ("study", "two\nlines\x1b")],
        watchdog_s=watchdog_s,
        services=services,
        urls=urls,
    )
    return command.stdin.decode().splitlines()


def test_the_keeper_is_told_all_that_it_needs_without_the_controller():
    assert arming(NGINX, urls=("http://web1/",)) == [
        "session 0a",
        "ticking 6 20 30",
        "by me",
        "study two?lines?",
        "service nginx",
        "systemd yes",
        "stop systemctl stop nginx",
        "start sh -c 'echo '\"'\"'it'\"'\"'; nginx'",
        "check nginx -t",
        "pid-file /run/nginx.pid",
        "url http://web1/",
        "end",
    ]


@pytest.mark.parametrize(
    ("watchdog_s", "told"),
    [(1, "0.05 20 1"), (20, "1 20 20"), (30, "1 30 30"), (119.5, "5 24 30"), (600, "30 20 30")],
)
def test_the_watchdog_never_waits_less_than_asked(watchdog_s: float, told: str):
    assert arming(watchdog_s=watchdog_s)[1] == f"ticking {told}"
    tick_s, ticks, _ = (float(word) for word in told.split())
    assert watchdog_s <= tick_s * ticks <= watchdog_s * 1.05


@pytest.mark.parametrize("name", ["", "-rf", ".", "../nginx", "a b", "nginx\n", "$(reboot)", "ngin\u00e9"])
def test_a_service_has_the_name_of_a_unit(name: str):
    service = Service(name=name, check=None, stop=("true",), start=("true",), reload=None)

    with pytest.raises(TargetError, match="is not a name of a service"):
        arming(service)


def test_no_line_is_sent_that_would_be_two():
    service = Service(name="a", check=None, stop=("true", "\nend"), start=("true",), reload=None)
    with pytest.raises(TargetError, match="control characters"):
        arming(service)
    with pytest.raises(TargetError, match="control characters"):
        arming(urls=("http://a/\nend",))
    path = PurePosixPath("/etc/a\nput 1 absent /etc/b")
    with pytest.raises(TargetError, match="control characters"):
        requests.change("run", "0a", put={path: b""}, back=[], originals={path: requests.ABSENT})
    with pytest.raises(TargetError, match="control characters"):
        requests.change("run", "0a", put={}, back=[PurePosixPath("/etc/a\n")], originals={})
    with pytest.raises(ConfigRejected, match="not a value of one line"):
        requests.change("run", "0a", put={SETTING: b"1\n2\n"}, back=[], originals={})


def test_a_change_names_its_files_first_and_gives_their_contents_then():
    put = {CONF: b"worker_processes 2;\n", SETTING: b"4096\t8192\n", CONF.parent / "b": b"\x00\n"}

    originals = {CONF: requests.checksum(b""), CONF.parent / "b": requests.ABSENT}

    command = requests.change("run", "0a", put=put, back=[CONF.parent / "c d"], originals=originals)

    head = b"put 20 %s /etc/nginx/nginx.conf\n" % sha256(b"").hexdigest().encode()
    head += b"set /proc/sys/net/core/somaxconn\n4096\t8192\nput 2 absent /etc/nginx/b\n"
    head += b"back /etc/nginx/c d\n"
    assert command.stdin == head + b"worker_processes 2;\n\x00\n"
    assert command.argv[2:] == ("change", "run", "0a", str(len(head)), str(len(head) + 22))
    assert command.as_root


def test_every_root_command_is_one_that_sudo_is_told_of():
    allowed = requests.commands_needing_root()

    assert {command.argv for command in requests.installation()} == set(allowed)
    assert requests.step("beat", "run", "0a", "1").argv[: len(requests.KEEPER)] == requests.KEEPER
    assert all(argv[0].startswith("/") for argv in (*allowed, requests.KEEPER))


def test_what_is_not_back_is_told_with_its_reason():
    printed = b"back\t/etc/a\ntrouble\t/etc/b c\tit is immutable\ntrouble\tnginx\tit does not start: no\n"

    with pytest.raises(
        RestoreFailed, match=r"web1: .*: /etc/b c \(it is immutable\); nginx \(it does .*tuner restore"
    ):
        replies.read_reply("web1", completed(returncode=replies.INCOMPLETE, stdout=printed))


@pytest.mark.parametrize(
    ("returncode", "error", "told"),
    [
        (1, TargetError, "web1: sudo: a password is required"),
        (127, TargetError, "web1: the keeper is not at /var/lib/tuner/keeper"),
        (replies.ENDED, TargetError, "web1: sudo: a password"),
        (replies.REJECTED, ConfigRejected, "web1: sudo: a password"),
    ],
)
def test_an_exit_status_says_whose_fault_it_is(returncode: int, error: type[Exception], told: str):
    with pytest.raises(error, match=told):
        replies.read_reply("web1", completed(returncode=returncode, stderr=b"sudo: a password is required\n"))


def test_a_keeper_that_hangs_is_no_success():
    with pytest.raises(TargetError, match="did not end within"):
        replies.read_reply("web1", completed(returncode=-9, timed_out=True))


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


def test_a_host_that_never_had_a_keeper_is_not_asked_for_root(tmp_path: Path):
    host = MemoryHost(commands={"test": lambda *_: completed(returncode=1)})

    with Journal(tmp_path) as journal:
        assert restore_host(host, journal) == ()

    assert describe_use(host) == ()
    assert {argv[0] for argv in host.ran} == {"test"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"back\t/etc/a\n",
        b"end\t2",  # a last line that was cut is no last line, whatever it holds
        b"end\t2\nback\t/etc/a\n",
        b"end\t1\n",
        b" end\t2\n",
        b"back\tend\t2\n",
        b"\xff\x00\n",
    ],
)
def test_only_an_answer_with_its_last_line_is_a_success(printed: bytes):
    answered = completed(stdout=printed)

    with pytest.raises(TargetError, match=r"web1: the keeper .* its answer has no end"):
        replies.read_reply("web1", answered)

    assert replies.needs_installation(answered)
    assert replies.read_reply("web1", completed(stdout=b"back\t/etc/a\nend\t2\n"))["back"] == ["/etc/a"]


@pytest.mark.parametrize(
    "told",
    [b"", b"0", b"check\t", b"check\t-1", b"check\t1e3", "check\t²".encode(), b"check\t9999", b"other\t0"],
)
def test_an_end_of_a_command_that_makes_no_sense_is_the_targets_fault(told: bytes):
    answered = completed(stdout=b"ran\t%b\nend\t2\n" % told)

    with pytest.raises(TargetError, match="which is no end of a command"):
        replies.read_activation("web1", answered, {"check": ("nginx", "-t")})


def test_what_a_service_answers_is_read_as_if_it_had_been_run_by_itself():
    printed = b"ran\tcheck\t1\nout\tone\nout\ttwo\nerr\t[emerg] \xff\nend\t2\n"
    answered = completed(returncode=replies.SERVICE_FAILED, stdout=printed)

    ran = replies.read_activation("web1", answered, {"check": ("nginx", "-t")})

    assert (ran.argv, ran.returncode) == (("nginx", "-t"), 1)
    assert (ran.stdout, ran.stderr) == (b"one\ntwo\n", b"[emerg] \xff\n")


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
        host.files[CONF] = FileState(content=b"one\n", mode=0o600, uid=0, gid=0)

        with pytest.raises(RestoreFailed, match=r"says that all is back, but /etc/nginx/nginx\.conf differs"):
            lease.restore()
        assert [each.path for each in journal.originals("memory")] == [CONF]

        host.files[CONF] = original
        lease.restore()
        assert journal.originals("memory") == ()


def test_a_file_is_only_overwritten_if_it_is_the_one_that_was_read(tmp_path: Path):
    host = MemoryHost(
        files={CONF: FileState(content=b"new\n", mode=0o644, uid=0, gid=0)},
        commands={"/bin/sh": lambda _, argv, __: completed(argv, stdout=b"end\t2\n")},
    )
    with Journal(tmp_path) as journal, pytest.raises(TargetError, match=r"nginx\.conf: somebody else has"):
        Lease(host, journal=journal, study="s").arm([], files={CONF: b"old\n"})


def test_a_target_that_lost_everything_is_told_plan_and_originals_in_one_request():
    command = requests.arming(
        "run", session="0a", owner=[("by", "me")], watchdog_s=120.0, services=[NGINX], urls=["http://web1/"]
    )
    answer = {"ran": ["nginx yes"], "answered": ["200 http://web1/"], "boot": ["b1"], "since": ["today"]}
    record = HostRecord(
        plan=requests.plan_to_keep("run", "0a", command, answer),
        originals=(
            Original(path=CONF, state=FileState(content=b"a\n", mode=0o640, uid=7, gid=8)),
            Original(path=SETTING, state=FileState(content=b"4096\n")),
            Original(path=CONF.parent / "new d", state=ABSENT),
        ),
        written={CONF: (requests.checksum(b"b"),)},
        made=(CONF.parent / "d",),
    )

    adoption = requests.adoption(record)

    head, size = int(adoption.argv[-2]), int(adoption.argv[-1])
    assert adoption.argv[2:4] == ("adopt", "run")
    assert adoption.argv[5] == "0a"
    assert adoption.stdin[head:] == b"a\n4096\n"
    assert len(adoption.stdin) == size
    lines = adoption.stdin[:head].decode().splitlines()
    assert lines[lines.index("service nginx") + 1] == "ran yes"
    assert lines[-8:] == [
        "answered 200 http://web1/",
        "boot b1",
        "since today",
        "made /etc/nginx/d",
        f"written {requests.checksum(b'b')}  -",
        "file 2 640 7 8 /etc/nginx/nginx.conf",
        "setting 5 /proc/sys/net/core/somaxconn",
        "absent /etc/nginx/new d",
    ]


@pytest.mark.parametrize("printed", ["", "0", "-1", "\u00b2", "\u0661", "1e3", "9" * 5000, "1 2"])
def test_an_id_that_no_kernel_gives_is_no_process(printed: str):
    assert read_pid(completed(stdout=printed.encode())) is None

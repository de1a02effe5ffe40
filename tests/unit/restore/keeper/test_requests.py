from hashlib import sha256
from pathlib import PurePosixPath

import pytest

from tuner.errors import ConfigRejected, TargetError
from tuner.ports import ABSENT, FileState, Service
from tuner.restore.journal import HostRecord, Original
from tuner.restore.keeper import requests

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


def test_a_target_that_lost_everything_is_told_plan_and_originals_in_one_request():
    command = requests.arming(
        "run", session="0a", owner=[("by", "me")], watchdog_s=120.0, services=[NGINX], urls=["http://web1/"]
    )
    answer = {
        "found": ["nginx ran yes"],
        "answered": ["200 http://web1/"],
        "boot": ["b1"],
        "since": ["today"],
    }
    record = HostRecord(
        plan=requests.plan_to_keep("run", "0a", "machine boot 1:2", command, answer),
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

import json
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.adapters.servers.golden import FOLDER, RecordedHost, RecordedProcess
from tuner.adapters.servers.apache import OPEN_FILES, SPARE_FILES, Apache, ApachePrefork
from tuner.adapters.servers.h2o import H2o
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.sysctl import Sysctl, path_of
from tuner.errors import ConfigRejected, NotReady, TargetError, UsageError
from tuner.ports import Completed, Facts, Site

SITE = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/site/www"))
NOBODY = RecordedHost(commands={}, files={})


def linux(**changes: object) -> Facts:
    stored = json.loads((FOLDER / "sysctl" / "detect-linux-6.18.json").read_text())["facts"]
    return Facts(current={**stored["current"], **changes})


def checked(printed: bytes) -> Completed:
    return Completed(argv=("check",), returncode=0, stdout=b"", stderr=printed, duration_s=0.1)


@pytest.mark.parametrize(("server", "package"), [(Apache(), "apache2"), (Nginx(), "nginx")])
def test_a_missing_server_is_answered_with_the_package_to_install(server, package):
    with pytest.raises(TargetError, match=f"apt-get install {package}"):
        server.detect(NOBODY)


def test_a_program_that_names_no_version_is_refused_with_what_it_said():
    host = RecordedHost(commands={"nginx -V": "I am a wrapper"}, files={})

    with pytest.raises(TargetError, match="I am a wrapper"):
        Nginx().detect(host)


def test_a_server_outside_the_path_of_ordinary_users_is_found():
    host = RecordedHost(
        commands={"/usr/sbin/nginx -V": "nginx version: nginx/1.22.1"},
        files={"/sys/devices/system/cpu/online": "0-3,8\n"},
    )

    facts = Nginx().detect(host)

    assert (facts.program, facts.version, facts.cores) == (PurePosixPath("/usr/sbin/nginx"), (1, 22, 1), 5)


@pytest.mark.parametrize("server", [Apache(), Nginx()])
@pytest.mark.parametrize("path", ['/a"b', "/a\nb", "/a{b", "/a$b"])
def test_a_path_that_would_be_read_as_syntax_is_refused(server, path):
    site = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath(path))

    with pytest.raises(UsageError, match="Use a folder without this character"):
        server.render({}, site, Facts())


@pytest.mark.parametrize(
    ("server", "config", "said"),
    [
        (Nginx(), {"etag": "off; root /etc"}, "nginx: etag: 'off; root /etc' is none of on, off"),
        (Nginx(), {"listen_backlog": "1\n;"}, "nginx: listen_backlog: '1.*' is no whole number from 1"),
        (Apache(), {"KeepAlive": "On\nUser root"}, "apache: KeepAlive = 'On.*' is not one value"),
        (H2o(), {"access-log": "|sh"}, "h2o: access-log: '.*' is neither on nor off"),
    ],
)
def test_a_value_that_holds_more_than_one_value_is_refused(server, config, said):
    with pytest.raises(ConfigRejected, match=said):
        server.render(config, SITE, Facts())


@pytest.mark.parametrize(
    ("server", "config"),
    [
        (Nginx(), {"read_ahead": "512k"}),
        (Apache(), {"GracefulShutdownTimeout": 3}),
        (H2o(), {"user": "root"}),
        (Sysctl(), {"vm.swappiness": 3}),
    ],
)
def test_a_setting_without_a_rule_of_its_own_is_refused(server, config):
    with pytest.raises(ConfigRejected, match=r"is no setting that tuner changes|does not have this setting"):
        server.render(config, SITE, linux())


def test_integers_are_written_in_plain_decimal_because_apache_reads_them_with_atoi():
    text = Apache().render({"MaxConnectionsPerChild": 10**6}, SITE, Facts())

    assert "\nMaxConnectionsPerChild 1000000\n" in text[PurePosixPath("/site/apache2.conf")].decode()


@pytest.mark.parametrize(
    ("cpus", "line"),
    [
        (frozenset(), "worker_cpu_affinity auto;"),
        (frozenset({0}), "worker_cpu_affinity auto 1;"),
        (frozenset({1, 2}), "worker_cpu_affinity auto 110;"),
    ],
)
def test_workers_are_bound_only_to_cpus_that_the_instance_was_given(cpus, line):
    site = Site(directory=SITE.directory, document_root=SITE.document_root, cpus=cpus)

    text = Nginx().render({"worker_cpu_affinity": "auto"}, site, Facts())[PurePosixPath("/site/nginx.conf")]

    assert line in text.decode().splitlines()


def test_modules_that_are_compiled_in_are_not_loaded_again():
    text = Apache().render({}, SITE, Facts(modules=frozenset({"status"})))[
        PurePosixPath("/site/apache2.conf")
    ]

    assert b"mod_status.so" not in text
    assert b"mod_dir.so" in text


def test_nginx_is_given_as_many_open_files_as_its_workers_ask_for():
    assert Nginx().needs({"worker_rlimit_nofile": 5000}).open_files == 5000
    assert Nginx().needs({}).open_files is None


def test_apache_is_given_the_open_files_that_apachectl_gives_it():
    apachectl = Path("/usr/sbin/apachectl").read_text()

    assert f"ulimit -n {Apache().needs({}).open_files}" in apachectl


def test_an_apache_whose_processes_hold_more_connections_is_given_more():
    held = {"ThreadsPerChild": 400, "AsyncRequestWorkerFactor": 24}

    assert Apache().needs(held).open_files == 400 * 25 + SPARE_FILES
    assert ApachePrefork().needs({"MaxRequestWorkers": 10_000}).open_files == OPEN_FILES


def test_an_ordinary_user_may_leave_the_user_directive_in_place():
    printed = (
        b'2026/11/21 02:48:13 [warn] 24597#24597: the "user" directive makes sense only if the master '
        b"process runs with super-user privileges, ignored in /site/nginx.conf:4\n"
    )

    assert Nginx().refusals(checked(printed)) == ()


def test_apache_without_its_status_page_is_not_ready():
    host = RecordedHost(
        commands={
            "ss -ltnH sport = :8080": "LISTEN 0 511 *:8080 *:*",
            "curl -sS --max-time 5 http://127.0.0.1:8080/server-status?auto": "<html>403 Forbidden</html>",
        },
        files={},
    )

    with pytest.raises(NotReady, match="403 Forbidden"):
        Apache().effective(host, {"MaxRequestWorkers": 4}, SITE, Facts(), None)


def test_a_missing_curl_is_answered_with_the_package_to_install():
    host = RecordedHost(commands={"ss -ltnH sport = :8080": ""}, files={})

    with pytest.raises(TargetError, match="apt-get install curl"):
        Apache().effective(host, {"MaxRequestWorkers": 4}, SITE, Facts(), None)


def test_a_server_whose_workers_are_gone_has_none_in_force():
    host = RecordedHost(commands={"ss -ltnH sport = :8080": ""}, files={"/proc/7/cmdline": "nginx: master"})

    found = Nginx().effective(host, {"worker_processes": 0}, SITE, Facts(), RecordedProcess(pid=7))

    assert found == {"worker_processes": 0}


def test_a_log_that_repeats_one_complaint_is_told_once():
    line = "2026/11/21 03:07:30 [alert] 5#5: *{} 20 worker_connections are not enough\n"
    log = "".join(line.format(number) for number in range(5000)).encode()

    assert Nginx().complaints(log) == ("[alert] 20 worker_connections are not enough",)


@pytest.mark.parametrize("server", [Apache(), Nginx(), Sysctl()])
def test_an_empty_log_has_no_complaints(server):
    assert server.complaints(b"") == ()


def test_elements_of_a_vector_are_written_as_the_whole_vector():
    files = Sysctl().render({"net.ipv4.tcp_wmem[1]": 65536}, SITE, linux())

    assert files == {PurePosixPath("/proc/sys/net/ipv4/tcp_wmem"): b"4096\t65536\t4194304\n"}


@pytest.mark.parametrize(
    "config",
    [
        {"net.ipv4.tcp_wmem[1]": 8388608},
        {"net.ipv4.tcp_rmem[1]": 1, "net.ipv4.tcp_rmem[2]": 1},
        {"net.ipv4.ip_local_port_range[0]": 61000},
        {"net.ipv4.tcp_wmem[3]": 4096},
        {"net.ipv4.tcp_fin_timeout": -1},
        {"net.ipv4.tcp_limit_output_bytes": 0.5},
        {"net.ipv4.tcp_congestion_control": "reno\nbbr"},
    ],
)
def test_nonsense_that_the_kernel_would_take_is_refused(config):
    with pytest.raises(ConfigRejected, match=r"^sysctl: net\."):
        Sysctl().render(config, SITE, linux())


@pytest.mark.parametrize(
    "name",
    [
        "net.ipv4.tcp_syncookies",
        "net.ipv4.conf.all.rp_filter",
        "net.ipv4.conf.eth0/1.accept_redirects",
        "kernel.randomize_va_space",
        "vm.overcommit_memory",
        "net.ipv4.tcp_mem[1]",
    ],
)
def test_what_protects_the_machine_is_never_written(name):
    with pytest.raises(UsageError, match="never tuned"):
        Sysctl().render({name: 1}, SITE, linux())


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "net..core", "net", "net.core.somaxconn[x]", "net.core.a b"]
)
def test_what_is_no_key_is_refused(name):
    with pytest.raises(UsageError, match="is no key"):
        Sysctl().render({name: 1}, SITE, linux())


def test_a_slash_in_a_key_stands_for_a_dot_in_a_file_name():
    assert path_of("net.ipv4.conf.eth0/100.mtu") == PurePosixPath("/proc/sys/net/ipv4/conf/eth0.100/mtu")


def test_a_host_without_proc_is_refused():
    without = (
        "--exclude=*_key --exclude-dir=conf --exclude-dir=neigh --exclude-dir=route --exclude-dir=random"
    )
    grep = f"grep -rs {without}  /proc/sys/net/core /proc/sys/net/ipv4 /proc/sys/net/ipv6 /proc/sys/net/unix"

    with pytest.raises(TargetError, match="Mount /proc"):
        Sysctl().detect(RecordedHost(commands={grep: ""}, files={}))


def test_a_key_that_has_gone_is_not_read_back():
    assert Sysctl().effective(NOBODY, {"net.core.somaxconn": 4096}, SITE, linux(), None) == {}

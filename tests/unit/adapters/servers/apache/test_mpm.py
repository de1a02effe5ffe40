"""What differs between Apache's multi-processing modules: directives, defaults, and what each forbids."""

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.apache.layouts import DEBIAN, RHEL, Layout, find, with_file, with_mpm
from tuner.adapters.servers.apache import Apache, ApacheMpm, ApachePrefork, ApacheWorker
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Config, Facts, FileState, Scalar, Site
from tuner.testing.fakes import MemoryHost

SECURITY = "/etc/apache2/conf-enabled/security.conf"
SITE = Site(directory=PurePosixPath("/site"), document_root=PurePosixPath("/site/www"))
SERVERS = {"prefork": ApachePrefork(), "worker": ApacheWorker()}


def reading(mpm: str, text: str = "") -> Config:
    """Say what is active under an MPM with these lines added on Debian."""
    return find(with_file(with_mpm(mpm), SECURITY, text), SERVERS[mpm]).facts.current


def loaded_by(server: ApacheMpm, config: Config) -> list[str]:
    (content,) = server.render(config, SITE, Facts()).values()
    return re.findall(r"^LoadModule (mpm_\w+)_module ", content.decode(), re.MULTILINE)


def test_prefork_as_debian_ships_it_has_processes_and_no_threads():
    found = reading("prefork")

    assert {
        "StartServers": 5, "MinSpareServers": 5, "MaxSpareServers": 10, "MaxRequestWorkers": 150,
        "ServerLimit": 256, "MaxConnectionsPerChild": 0,
    }.items() <= found.items()  # fmt: skip
    assert not [name for name in found if "Thread" in name or name == "AsyncRequestWorkerFactor"]


def test_worker_as_debian_ships_it_has_the_threads_of_event_and_not_its_factor():
    found = reading("worker")

    event = dict(find(DEBIAN).facts.current)
    del event["AsyncRequestWorkerFactor"]
    assert found == event


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("MaxRequestWorkers 300\n", "MaxRequestWorkers", 256),
        ("MaxClients 200\n", "MaxRequestWorkers", 200),
        ("ServerLimit 400\nMaxRequestWorkers 300\n", "MaxRequestWorkers", 300),
        ("ServerLimit 300000\n", "ServerLimit", 200_000),
        ("ServerLimit 0\n", "MaxRequestWorkers", 1),
        ("MaxRequestWorkers 0\n", "MaxRequestWorkers", 1),
        ("MaxRequestWorkers 3\n", "StartServers", 3),
        ("StartServers 500\n", "StartServers", 150),
        ("MinSpareServers 0\n", "MinSpareServers", 1),
        ("MinSpareServers 10\n", "MaxSpareServers", 11),
        ("ListenCoresBucketsRatio 2\nMinSpareServers 1\n", "MinSpareServers", 2),
        ("ListenCoresBucketsRatio 2\nMinSpareServers 9\n", "MaxSpareServers", 11),
        ("ListenCoresBucketsRatio 1\nMaxRequestWorkers 1\n", "MaxRequestWorkers", 4),
        ("<IfModule mpm_event_module>\nStartServers 9\n</IfModule>\n", "StartServers", 5),
        ("<IfModule prefork.c>\nStartServers 9\n</IfModule>\n", "StartServers", 9),
    ],
)
def test_what_prefork_makes_of_its_settings_is_in_force(text: str, name: str, value: Scalar):
    assert reading("prefork", text)[name] == value


@pytest.mark.parametrize(("mpm", "limit"), [("worker", 20_000), ("event", 30_000)])
def test_worker_allows_fewer_threads_in_a_process_than_event(mpm: str, limit: int):
    text = "ThreadLimit 30000\n"
    found = find(with_file(DEBIAN, SECURITY, text)).facts.current if mpm == "event" else reading(mpm, text)

    assert found["ThreadLimit"] == limit


@pytest.mark.parametrize("mpm", SERVERS)
def test_what_is_in_force_under_any_mpm_changes_no_file(mpm: str):
    found = find(with_mpm(mpm), SERVERS[mpm])
    present = {key: value for key, value in found.facts.current.items() if key != "Processes"}

    assert SERVERS[mpm].rewrite(present, found) == {}


def test_a_drop_in_for_prefork_gives_the_limit_before_what_needs_it():
    found = find(with_mpm("prefork"), ApachePrefork())
    config = {"MaxRequestWorkers": 400, "ServerLimit": 400, "MinSpareServers": 20, "MaxSpareServers": 401,
              "StartServers": 5}  # fmt: skip

    (content,) = ApachePrefork().rewrite(config, found).values()

    assert content.decode().splitlines()[1:] == [
        "ServerLimit 400",
        "MaxRequestWorkers 400",
        "MaxSpareServers 401",
        "MinSpareServers 20",
    ]


def test_a_size_that_prefork_would_change_is_refused():
    found = find(with_mpm("prefork"), ApachePrefork())

    with pytest.raises(ConfigRejected, match="the prefork MPM changes MaxSpareServers 3 to 6"):
        ApachePrefork().rewrite({"MaxSpareServers": 3}, found)


def test_threads_are_no_setting_of_an_installed_prefork():
    found = find(with_mpm("prefork"), ApachePrefork())

    with pytest.raises(ConfigRejected, match="ThreadsPerChild"):
        ApachePrefork().rewrite({"ThreadsPerChild": 25}, found)


@pytest.mark.parametrize(
    ("layout", "server", "words"),
    [
        (
            with_mpm("prefork"),
            Apache(),
            ["runs with mpm_prefork", "apache is Apache with mpm_event", "`tuner init apache-prefork`",
             "a2dismod mpm_worker mpm_prefork; a2enmod mpm_event"],
        ),
        (with_mpm("worker"), ApachePrefork(), ["`tuner init apache-worker`", "a2enmod mpm_prefork"]),
        (DEBIAN, ApacheWorker(), ["`tuner init apache`", "a2enmod mpm_worker"]),
        (RHEL, ApachePrefork(), ["`tuner init apache`", "mpm_prefork_module in /etc/httpd/conf.modules.d"]),
        (with_mpm("prefork", "php"), Apache(), ["mod_php needs prefork"]),
        (with_mpm("prefork", "php7", "mpm_itk"), ApacheWorker(), ["mod_mpm_itk needs prefork, mod_php7"]),
        (
            replace(DEBIAN, modules=(*DEBIAN.modules, "http2")),
            ApachePrefork(),
            ["mod_http2 serves no HTTP/2 under prefork"],
        ),
        (replace(DEBIAN, modules=DEBIAN.modules[:1]), Apache(), ["runs with no MPM"]),
    ],
)  # fmt: skip
def test_an_installed_server_with_another_mpm_is_refused_with_what_to_do(
    layout: Layout, server: Apache, words: list[str]
):
    with pytest.raises(TargetError) as refusal:
        find(layout, server)

    assert [each for each in words if each not in str(refusal.value)] == []


def test_a_module_that_works_with_both_is_not_named():
    with pytest.raises(TargetError) as refusal:
        find(with_mpm("prefork", "rewrite"), Apache())

    assert "needs prefork" not in str(refusal.value)


def test_an_mpm_with_more_behind_it_is_tuned_as_prefork():
    # mod_mpm_itk is loaded beside prefork, and is no MPM by itself since 2.4.7.
    assert find(with_mpm("prefork", "mpm_itk"), ApachePrefork()).facts.current["MaxRequestWorkers"] == 150


@pytest.mark.parametrize(
    ("server", "config", "mpm"),
    [
        (Apache(), {}, "mpm_event"),
        (ApacheWorker(), {}, "mpm_worker"),
        (ApachePrefork(), {"MinSpareServers": 5}, "mpm_prefork"),
        (ApacheMpm(), {}, "mpm_event"),
        (ApacheMpm(), {"MPM": "worker", "ThreadsPerChild": 25}, "mpm_worker"),
        (ApacheMpm(), {"MPM": "prefork", "MinSpareServers": 5}, "mpm_prefork"),
    ],
)
def test_a_private_instance_loads_one_mpm(server: ApacheMpm, config: Config, mpm: str):
    assert loaded_by(server, config) == [mpm]


@pytest.mark.parametrize(
    ("server", "config", "words"),
    [
        (ApachePrefork(), {"ThreadsPerChild": 25}, "the prefork MPM has no ThreadsPerChild"),
        (ApacheWorker(), {"AsyncRequestWorkerFactor": 2}, "the worker MPM has no AsyncRequestWorkerFactor"),
        (ApacheMpm(), {"MPM": "worker", "MinSpareServers": 5}, "the worker MPM has no MinSpareServers"),
        (ApacheMpm(), {"MPM": "itk"}, "'itk' is no MPM; known are event, worker, prefork"),
        (ApacheMpm(), {"MPM": "event\nInclude /x"}, "is no MPM"),
        (ApacheMpm(), {"MPM": 1}, "'1' is no MPM"),
    ],
)
def test_what_an_mpm_does_not_know_reaches_no_file(server: ApacheMpm, config: Config, words: str):
    with pytest.raises(ConfigRejected, match=words):
        server.render(config, SITE, Facts())


def test_processes_of_prefork_are_as_many_tasks():
    assert (
        ApacheWorker().needs({"ServerLimit": 10, "ThreadsPerChild": 20}).tasks
        - ApachePrefork().needs({"ServerLimit": 10}).tasks
        == 10 * 22 - 10
    )


@pytest.mark.parametrize(("modules", "children", "started"), [((), 5, 5), ((), 3, 3), (("cgid",), 6, 5)])
def test_children_of_an_installed_prefork_are_counted_without_the_daemon_of_cgi(
    modules: tuple[str, ...], children: int, started: int
):
    found = replace(find(with_mpm("prefork", *modules), ApachePrefork()), port=None)
    pids = range(2, 2 + children)
    tree = {
        "/proc/1/task/1/children": " ".join(map(str, pids)),
        **{f"/proc/{pid}/cmdline": "/usr/sbin/apache2\0-k\0start\0" for pid in (1, *pids)},
        **{f"/proc/{pid}/task/{pid}/children": "" for pid in pids},
        **{f"/proc/{pid}/status": "Name:\tapache2\nThreads:\t1\n" for pid in pids},
    }
    host = MemoryHost(
        files={PurePosixPath(path): FileState(content=text.encode()) for path, text in tree.items()}
    )

    assert ApachePrefork().in_force(host, host, {"StartServers": 5}, found, 1) == {"StartServers": started}

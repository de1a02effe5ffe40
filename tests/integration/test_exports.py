"""Exports applied to the configurations that Debian ships, on copies in a place of their own."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.simulated_study import make_summary
from tuner.adapters.servers.apache import DROP_IN, Apache
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.sysctl import Sysctl
from tuner.campaign.prepare import prepare
from tuner.commands.outputs import write_export
from tuner.commands.session import Reading
from tuner.export import export, paths_to_read, render_both
from tuner.ports import Facts, FileState, Scalar, Server
from tuner.report.summary import Arm, Summary
from tuner.space import Space, SpaceFacts, load_space
from tuner.study import load_study

COPIES = {"nginx": "/etc/nginx", "apache2": "/etc/apache2", "states": "/var/lib/apache2"}
FACTS = {"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096}


def load(name: str, server: str, **more: object) -> Space:
    version = {"nginx": (1, 22, 1), "apache": (2, 4, 62), "sysctl": (6, 1)}[server]
    facts = SpaceFacts(names=FACTS, versions={server: version}, **more)
    return load_space([name, {"allow": ["semantic"]}], facts=facts, base=Path())


def summarize_winner(space: Space, winning: Mapping[str, Scalar]) -> Summary:
    """A confirmed study of another space, whose winner is now this one."""
    summary = make_summary(searches=4)
    config = space.complete(winning)
    arm = Arm(
        config=config, goodput_rps=130_000.0, latency_p99_ms=3.0, latency_corrected=True,
        failures=0, requests=1_000_000, starts=6,
    )  # fmt: skip
    return replace(summary, space=space, winner=arm, changes=space.changes(config))


def export_real(
    server: Server, summary: Summary, facts: Facts, installed: Mapping[PurePosixPath, FileState]
) -> dict[str, bytes]:
    assert summary.winner is not None
    rendered = {server.name: render_both(server, summary.space, summary.winner.config, facts)}
    contents = {
        path: installed[path].content or b""
        for path in paths_to_read(server.name, rendered)
        if path in installed
    }
    return export(summary, server.name, rendered=rendered, installed=contents)


def run_apart(script: str, folder: Path) -> str:
    """Run a script with copies in the place of the host's folders; all that it starts ends with it."""
    mounts = [f"mount --bind {folder / copy} {place}" for copy, place in COPIES.items()]
    mounts += [f"mount -t tmpfs tmpfs {place}" for place in ("/run", "/var/log", "/var/lib/nginx")]
    folders = "mkdir -p /run/lock /var/log/nginx /var/log/apache2"
    whole = "\n".join(["set -eu", "ip link set lo up", *mounts, folders, script])
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    apart = ("unshare", *user, "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    done = subprocess.run(
        [*apart, "sh", "-c", whole], capture_output=True, text=True, timeout=60, cwd=folder, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with copies of what is stock; scripts see them in the place of the originals."""
    for copy, place in COPIES.items():
        shutil.copytree(place, tmp_path / copy, symlinks=True)
    return tmp_path


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def tree(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


NGINX_WINNER: Mapping[str, Scalar] = {
    "worker_processes": 3, "worker_connections": 4096, "multi_accept": True, "sendfile": False,
    "open_file_cache": 2000, "keepalive_requests": 100000, "listen_backlog": 4000,
    "listen_reuseport": True, "access_log": "off", "epoll_events": 64,
}  # fmt: skip


def test_the_nginx_patch_applies_to_the_stock_configuration_works_and_is_undone(folder: Path) -> None:
    before = tree(folder / "nginx")
    summary = summarize_winner(load("nginx", "nginx"), NGINX_WINNER)
    installed = {
        PurePosixPath("/etc/nginx") / name: FileState(content=(folder / "nginx" / name).read_bytes())
        for name in ("nginx.conf", "sites-available/default")
    }
    write(folder, export_real(Nginx(), summary, Facts(version=(1, 22, 1)), installed))

    said = run_apart(
        "patch -p1 -d /etc/nginx < tuner-nginx.patch\nnginx -t\nnginx\n"
        "for i in $(seq 100); do [ $(pgrep -c -f '^nginx: worker') = 3 ] && break; sleep 0.05; done\n"
        "echo workers: $(pgrep -c -f '^nginx: worker')\nss -Hltn 'sport = :80'\nnginx -T",
        folder,
    )

    assert "test is successful" in said
    assert "[warn]" not in said
    assert "workers: 3" in said
    assert len(re.findall(r"LISTEN 0 +4000 +0.0.0.0:80", said)) == 3, "one queue of 4000 for each worker"
    for line in ("worker_connections 4096;", "multi_accept on;", "access_log off;", "epoll_events 64;"):
        assert len(re.findall(rf"^\s*{line}$", said, re.MULTILINE)) == 1
    assert not re.search(r"^\s*sendfile on;", said, re.MULTILINE)

    run_apart("patch -p1 -d /etc/nginx < tuner-nginx-undo.patch\nnginx -t", folder)
    assert tree(folder / "nginx") == before


APACHE_WINNER: Mapping[str, Scalar] = {
    "ThreadsPerChild": 100, "Processes": 2, "StartServers": 2, "ListenBacklog": 2000,
    "KeepAliveTimeout": 15, "EnableSendfile": True, "RequestReadTimeout": False,
}  # fmt: skip


def test_the_apache_fragment_overrides_the_stock_configuration_and_is_undone(folder: Path) -> None:
    before = tree(folder / "apache2")
    summary = summarize_winner(load("apache-event", "apache"), APACHE_WINNER)
    write(folder, export_real(Apache(), summary, Facts(version=(2, 4, 62), drop_in=DROP_IN), {}))

    said = run_apart(
        "cp tuner-apache.conf /etc/apache2/conf-available/\na2enconf tuner-apache\n"
        "apachectl configtest\napachectl -t -D DUMP_RUN_CFG\napachectl start\n"
        "for i in $(seq 100); do curl -s http://127.0.0.1/server-status?auto && break; sleep 0.05; done\n"
        "ss -Hltn 'sport = :80'\napachectl stop",
        folder,
    )

    assert "Syntax OK" in said
    assert not re.search(r"AH00\d{3}: WARNING", said)
    scoreboard = re.search(r"^Scoreboard: (\S+)$", said, re.MULTILINE)
    assert scoreboard is not None
    assert len(scoreboard[1]) == 200, "MaxRequestWorkers is what the winner had"
    assert re.search(r"LISTEN 0 +2000 ", said)

    run_apart("sh tuner-apache-undo.sh", folder)
    assert tree(folder / "apache2") == before


def test_the_sysctl_file_sets_the_keys_and_its_undo_puts_them_back(folder: Path) -> None:
    current = {
        "net.core.somaxconn": 4096, "net.ipv4.tcp_fin_timeout": 60,
        "net.ipv4.tcp_wmem[0]": 4096, "net.ipv4.tcp_wmem[1]": 16384, "net.ipv4.tcp_wmem[2]": 4194304,
    }  # fmt: skip
    space = load("sysctl-net", "sysctl", current=current)
    winning = {"net.core.somaxconn": 16384, "net.ipv4.tcp_wmem[1]": 65536}
    summary = summarize_winner(space, winning)
    ours = {
        PurePosixPath("/proc/sys/net/core/somaxconn"): FileState(content=b"5000\n"),
        PurePosixPath("/proc/sys/net/ipv4/tcp_wmem"): FileState(content=b"4096\t20000\t4194304\n"),
    }
    files = export_real(Sysctl(), summary, Facts(version=(6, 1), current=current), ours)
    write(folder, files)

    said = run_apart(
        "sysctl -q -p 99-tuner.conf\ncat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_wmem\n"
        "sysctl -q -p tuner-sysctl-undo.conf\ncat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_wmem",
        folder,
    )

    assert said.split() == ["16384", "4096", "65536", "4194304", "5000", "4096", "20000", "4194304"]


def origin_of_sysctl() -> dict[str, bytes]:
    space = load("sysctl-net", "sysctl", current={"net.core.somaxconn": 4096})
    summary = summarize_winner(space, {"net.core.somaxconn": 16384})
    return export_real(Sysctl(), summary, Facts(version=(6, 1), current={"net.core.somaxconn": 4096}), {})


def origin_of_apache() -> dict[str, bytes]:
    summary = summarize_winner(load("apache-event", "apache"), APACHE_WINNER)
    return export_real(Apache(), summary, Facts(version=(2, 4, 62), drop_in=DROP_IN), {})


def origin_of_nginx() -> dict[str, bytes]:
    summary = summarize_winner(load("nginx", "nginx"), NGINX_WINNER)
    path = PurePosixPath("/etc/nginx/nginx.conf")
    installed = {path: FileState(content=Path(path).read_bytes())}
    return export_real(Nginx(), summary, Facts(version=(1, 22, 1)), installed)


@pytest.mark.parametrize("make", [origin_of_nginx, origin_of_apache, origin_of_sysctl])
def test_every_export_and_its_undo_begin_with_where_they_come_from(
    make: Callable[[], dict[str, bytes]],
) -> None:
    files = make()

    assert len(files) >= 2, "an export and its undo"
    for content in files.values():
        head = [line for line in content.decode().split("--- ")[0].splitlines() if line.startswith("#")]
        for word in ("nginx-static", "2026-01-01", "web1", "nginx 1.22.1", "wrk 4.1.0", "× [", "6 pairs"):
            assert word in "\n".join(head)


def test_the_nginx_patch_says_how_it_is_undone() -> None:
    head = origin_of_nginx()["tuner-nginx.patch"].decode().split("--- ")[0]

    assert all(line.startswith("# ") for line in head.splitlines())
    assert "undo:" in head


def test_a_private_server_is_exported_as_the_change_to_what_is_installed_beside_it(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(
        "study: private\nservers: [h2o]\nspace: [h2o]\ntarget: {host: local, mode: sandbox}\n"
        "load: {path: /index.html}\n"
    )
    setup = prepare(load_study(study))
    winner = {"num-threads": 3, "max-connections": 2000}
    summary = summarize_winner(setup.space, winner)
    reading = Reading(settings=setup.settings, space=setup.space, summary=summary, setup=setup)

    patch, undo = write_export(reading, "h2o", tmp_path / "out")

    assert (patch.name, undo.name) == ("tuner-h2o.patch", "tuner-h2o-undo.sh")
    assert "+++ b/etc/h2o/h2o.conf" in patch.read_text()
    assert "+num-threads: 3" in patch.read_text()

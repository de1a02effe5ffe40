"""Exports applied to the configurations that Debian ships, on copies in a place of their own."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.simulated_study import make_summary
from tuner.adapters.servers.apache import Apache
from tuner.adapters.servers.apache.builds import BUILDS, DEBIAN, ApacheBuild, write_place
from tuner.adapters.servers.sysctl import Sysctl
from tuner.campaign.prepare import prepare
from tuner.commands.outputs import write_export
from tuner.commands.session import Reading
from tuner.export import Rewritten, export, render_both
from tuner.ports import Facts, Installation, Scalar
from tuner.report.summary import Arm, Summary
from tuner.space import Space, SpaceFacts, load_space
from tuner.study import load_study

STUDY = """\
study: private
servers: [{servers}]
space: [{spaces}, {{allow: [semantic]}}]
target: {{host: local, mode: sandbox}}
load: {{path: /index.html}}
"""
SPACES = {"nginx, sysctl": "nginx, sysctl-net"}
COPIES = {"nginx": "/etc/nginx", "h2o": "/etc/h2o", "apache2": "/etc/apache2", "states": "/var/lib/apache2"}
SYSCTL = PurePosixPath("/proc/sys/net")
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
        failures=0, requests=1_000_000, trials=6,
    )  # fmt: skip
    return replace(summary, space=space, winner=arm, changes=space.changes(config))


def read_winner(tmp_path: Path, servers: str, winning: Mapping[str, Scalar]) -> Reading:
    """Prepare a private study here, and take these values for its confirmed winner."""
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.format(servers=servers, spaces=SPACES.get(servers, servers)))
    setup = prepare(load_study(study))
    summary = summarize_winner(setup.space, winning)
    return Reading(settings=setup.settings, space=setup.space, summary=summary, setup=setup)


def export_apache(build: ApacheBuild = DEBIAN) -> dict[str, bytes]:
    summary = summarize_winner(load("apache-event", "apache"), APACHE_WINNER)
    facts = Facts(version=(2, 4, 62), drop_in=write_place(build, "apache"))
    assert summary.winner is not None
    rendered = {"apache": render_both(Apache(), summary.space, summary.winner.config, facts)}
    return export(summary, "apache", rendered=rendered)


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
    write_export(read_winner(folder, "nginx", NGINX_WINNER), "nginx", folder)

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


def customise(nginx: Path) -> None:
    """Change what administrators do: near one of tuner's lines, at the end, and a folder of drop-ins."""
    main = nginx / "nginx.conf"
    text = main.read_text().replace("types_hash_max_size 2048;", "types_hash_max_size 4096;")
    main.write_text(f"{text}# ours, since it was applied\n")
    site = nginx / "sites-available/default"
    site.write_text(f"# our site\n{site.read_text()}")
    for drop_in in (nginx / "conf.d").iterdir():
        drop_in.unlink()


def read_undo(folder: Path) -> str:
    """Return the command that takes the patch back, without the restart behind it."""
    (undo,) = re.findall(r"(?m)^# undo: +(.*) && (?:systemctl|service) \S+", (folder / PATCH).read_text())
    return str(undo)


PATCH = "tuner-nginx.patch"


def test_the_nginx_undo_leaves_what_was_customised_meanwhile(folder: Path) -> None:
    write_export(read_winner(folder, "nginx", NGINX_WINNER), "nginx", folder)
    expected = folder / "expected"
    shutil.copytree(folder / "nginx", expected, symlinks=True)
    customise(expected)

    run_apart(f"patch -p1 -d /etc/nginx < {PATCH}", folder)
    customise(folder / "nginx")
    run_apart(f"nginx -t\n{read_undo(folder)}", folder)

    assert tree(folder / "nginx") == tree(expected)
    assert (folder / "nginx/conf.d").is_dir(), "an empty folder of drop-ins stays"


def test_an_nginx_undo_that_does_not_fit_any_more_changes_nothing(folder: Path) -> None:
    write_export(read_winner(folder, "nginx", NGINX_WINNER), "nginx", folder)
    run_apart(f"patch -p1 -d /etc/nginx < {PATCH}", folder)
    main = folder / "nginx/nginx.conf"
    main.write_text(main.read_text().replace("worker_connections 4096;", "worker_connections 5000;"))
    before = tree(folder / "nginx")

    said = run_apart(f"{{ {read_undo(folder)}; }} || echo refused", folder)

    assert "refused" in said
    assert tree(folder / "nginx") == before


APACHE_WINNER: Mapping[str, Scalar] = {
    "ThreadsPerChild": 100, "Processes": 2, "StartServers": 2, "ListenBacklog": 2000,
    "KeepAliveTimeout": 15, "EnableSendfile": True, "RequestReadTimeout": False,
}  # fmt: skip


def test_the_apache_fragment_overrides_the_stock_configuration_and_is_undone(folder: Path) -> None:
    before = tree(folder / "apache2")
    write(folder, export_apache())

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


HTTPD_CONF = """\
ServerRoot "/etc/httpd"
ServerName localhost
Listen 80
Include conf.modules.d/*.conf
User www-data
Group www-data
ErrorLog "logs/error_log"
EnableSendfile on
<Location "/server-status">
    SetHandler server-status
</Location>
IncludeOptional conf.d/*.conf
"""
# Debian's program and modules, in the layout of Red Hat's package
HTTPD = '#!/bin/sh\nexec /usr/sbin/apache2 -d /etc/httpd -f conf/httpd.conf "$@"\n'
MODULES = "".join(
    f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
    for name in ("mpm_event", "status", "reqtimeout", "authz_core")
)
OVER_ETC = (
    "mkdir own\nmount -t tmpfs tmpfs own\nmkdir own/upper own/work\n"
    "mount -t overlay -o lowerdir=/etc,upperdir=own/upper,workdir=own/work overlay /etc\n"
    'cp -r httpd /etc/\nPATH="$PWD/bin:$PATH"\n'
)


def test_the_apache_fragment_is_in_force_in_the_layout_of_red_hat_and_is_undone(folder: Path) -> None:
    for name, text in (
        ("httpd/conf/httpd.conf", HTTPD_CONF), ("httpd/conf.modules.d/00-mpm.conf", MODULES),
        ("httpd/conf.d/welcome.conf", "# Here as in the package\n"), ("httpd/logs/error_log", ""),
        ("bin/httpd", HTTPD),
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bin/httpd").chmod(0o755)
    (build,) = (each for each in BUILDS if each.installer == "dnf")
    write(folder, export_apache(replace(build, drop_ins=build.directory / build.drop_ins)))
    (put,) = re.findall(r"(?m)^# apply: (.*)$", (folder / "tuner-apache.conf").read_text())

    said = run_apart(
        f"{OVER_ETC}httpd -t\n{put}\nhttpd -k start\n"
        "for i in $(seq 100); do curl -s http://127.0.0.1/server-status?auto && break; sleep 0.05; done\n"
        "ss -Hltn 'sport = :80'\nhttpd -k stop\n"
        "sh tuner-apache-undo.sh\nhttpd -t\n"
        "rm -f /etc/httpd/logs/*\n: >/etc/httpd/logs/error_log\ndiff -r httpd /etc/httpd",
        folder,
    )

    assert said.count("Syntax OK") == 4
    scoreboard = re.search(r"^Scoreboard: (\S+)$", said, re.MULTILINE)
    assert scoreboard is not None
    assert len(scoreboard[1]) == 200, "MaxRequestWorkers is what the winner had"
    assert re.search(r"LISTEN 0 +2000 ", said)


def test_the_sysctl_file_sets_the_keys_and_its_undo_puts_them_back(folder: Path) -> None:
    ours = {
        "net.core.somaxconn": 5000,
        "net.ipv4.tcp_wmem[0]": 4096, "net.ipv4.tcp_wmem[1]": 20000, "net.ipv4.tcp_wmem[2]": 4194304,
    }  # fmt: skip
    space = load(
        "sysctl-net", "sysctl", current={**ours, "net.core.somaxconn": 4096, "net.ipv4.tcp_wmem[1]": 16384}
    )
    winning = {"net.core.somaxconn": 16384, "net.ipv4.tcp_wmem[1]": 65536}
    installation = Installation(facts=Facts(current=ours), files={}, service=None)
    rewritten = Rewritten(
        before={SYSCTL / "core/somaxconn": b"5000\n", SYSCTL / "ipv4/tcp_wmem": b"4096\t20000\t4194304\n"},
        after=Sysctl().rewrite(winning, installation),
        service=None,
    )
    write(folder, export(summarize_winner(space, winning), "sysctl", rendered={"sysctl": rewritten}))

    said = run_apart(
        "sysctl -q -p 99-tuner.conf\ncat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_wmem\n"
        "sysctl -q -p tuner-sysctl-undo.conf\ncat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_wmem",
        folder,
    )

    assert said.split() == ["16384", "4096", "65536", "4194304", "5000", "4096", "20000", "4194304"]


def export_nginx_and_kernel(tmp_path: Path) -> dict[str, bytes]:
    reading = read_winner(tmp_path, "nginx, sysctl", {**NGINX_WINNER, "net.core.somaxconn": 5001})
    written = [path for form in ("nginx", "sysctl") for path in write_export(reading, form, tmp_path / "out")]
    return {path.name: path.read_bytes() for path in written}


def test_every_export_and_its_undo_begin_with_where_they_come_from(tmp_path: Path) -> None:
    files = {**export_nginx_and_kernel(tmp_path), **export_apache()}

    assert files.keys() == {
        "tuner-nginx.patch", "tuner-nginx-undo.patch", "99-tuner.conf", "tuner-sysctl-undo.conf",
        "tuner-apache.conf", "tuner-apache-undo.sh",
    }  # fmt: skip
    for content in files.values():
        head = [line for line in content.decode().split("--- ")[0].splitlines() if line.startswith("#")]
        for word in ("nginx-static", "2026-01-01", "web1", "nginx 1.22.1", "wrk 4.1.0", "× [", "6 pairs"):
            assert word in "\n".join(head)


def test_what_follows_from_other_settings_says_so_and_what_is_not_written_is_left_out(tmp_path: Path) -> None:
    reading = read_winner(tmp_path, "nginx", NGINX_WINNER)
    patch, _ = write_export(reading, "nginx", tmp_path / "out")
    listed, _ = write_export(reading, "json", tmp_path / "out")

    assert re.search(r"(?m)^# worker_rlimit_nofile 1024 → \d+: derived from the others$", patch.read_text())
    settings = json.loads(listed.read_text())["settings"]["nginx"]
    assert settings.keys() == {*NGINX_WINNER, "worker_rlimit_nofile"}


def test_the_nginx_patch_says_how_it_is_undone(tmp_path: Path) -> None:
    head = export_nginx_and_kernel(tmp_path)["tuner-nginx.patch"].decode().split("--- ")[0]

    assert all(line.startswith("# ") for line in head.splitlines())
    assert "# undo:  patch -p1 -d /etc/nginx" in head


def test_a_private_server_is_exported_as_the_change_to_what_is_installed_beside_it(folder: Path) -> None:
    before = tree(folder / "h2o")
    reading = read_winner(folder, "h2o", {"num-threads": 3, "max-connections": 2000})

    patch, undo = write_export(reading, "h2o", folder)

    assert (patch.name, undo.name) == ("tuner-h2o.patch", "tuner-h2o-undo.patch")
    assert "+++ b/h2o.conf" in patch.read_text()
    (apply,) = re.findall(r"(?m)^# apply: (.*) && \S+ \S*h2o restart$", patch.read_text())
    (take_back,) = re.findall(r"(?m)^# undo: +(.*) && \S+ \S*h2o restart$", undo.read_text())
    run_apart(f"{apply}\ngrep -x 'num-threads: 3' /etc/h2o/h2o.conf", folder)
    run_apart(take_back, folder)
    assert tree(folder / "h2o") == before


def test_what_the_installed_files_cannot_be_given_is_named_and_the_rest_is_exported(folder: Path) -> None:
    reading = read_winner(folder, "h2o", {"num-threads": 3, "access-log": "off"})

    patch, _ = write_export(reading, "h2o", folder)

    assert "+num-threads: 3" in patch.read_text()
    assert re.search(
        r"(?m)^#   access-log = off \(h2o: 'access-log' is no setting that tuner changes here\)$",
        patch.read_text(),
    )


def test_where_nothing_installed_can_be_changed_the_settings_are_listed(folder: Path) -> None:
    reading = read_winner(folder, "h2o", {"access-log": "off"})

    (listing,) = write_export(reading, "h2o", folder)

    assert listing.name == "tuner-h2o-settings.conf"
    assert re.search(
        r"(?m)^# the installed files are not changed: h2o: 'access-log' is no setting", listing.read_text()
    )
    assert re.search(r"(?m)^# was: access-log: ", listing.read_text())

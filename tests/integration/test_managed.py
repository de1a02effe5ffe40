"""Installed services of test hosts get other settings over SSH, and are as before afterwards."""

import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from benchmarks.faults.look import look_at
from tests.integration.waiting import wait_until
from tests.more import leave_to_more
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.testbed.namespaces import kill_each
from tuner import plugins
from tuner.campaign.prepare import find_target
from tuner.deploy.managed import ManagedTarget
from tuner.errors import ConfigRejected, Crashed, HostLost, NotReady, RestoreFailed, TargetError
from tuner.space import Space
from tuner.study import load_study

STUDY = """\
study: managed
servers: [{server}, sysctl]
space: [{space}, sysctl-net]
target: {{host: "{url}", mode: managed, watchdog_s: {watchdog_s}}}
load: {{path: "http://{address}{page}"}}
"""
SOMAXCONN = "net.core.somaxconn"
# Debian's h2o serves /var/www, the others /var/www/html.
PAGES = {"h2o": "/html/"}
CHANGES = {
    "apache": ("apache-event", {"ThreadsPerChild": 40, "ListenBacklog": 700}),
    "apache-prefork": ("apache-prefork", {"MaxRequestWorkers": 300, "ListenBacklog": 700}),
    "apache-worker": ("apache-worker", {"ThreadsPerChild": 40, "ListenBacklog": 700}),
    "nginx": ("nginx", {"worker_processes": 3, "listen_backlog": 700}),
    "h2o": ("h2o", {"num-threads": 3}),
    "php-fpm": ("php-fpm", {"pm": "static", "pm.max_children": 7}),
}


@pytest.fixture
def web(own_bed: Testbed) -> TestHost:
    host = own_bed.add_host("web")
    host.install_nginx()
    return host


TLS_SITE = """\
server {{ listen 443 ssl; ssl_certificate {file}; ssl_certificate_key /etc/key.pem; root /var/www/html; }}
server {{ listen 8080; return 301 https://{address}/index.html; }}
"""
MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=web "
    "-addext subjectAltName=IP:{address} -keyout /etc/key.pem -out {file}"
)


def find(
    host: TestHost, folder: Path, server: str = "nginx", watchdog_s: int = 10, page: str = ""
) -> tuple[ManagedTarget, Space]:
    path = folder / "managed.yaml"
    space = CHANGES[server][0]
    page = page or PAGES.get(server, "/")
    path.write_text(
        STUDY.format(
            server=server,
            space=space,
            url=host.ssh_url,
            address=host.address,
            page=page,
            watchdog_s=watchdog_s,
        )
    )
    found = find_target(load_study(path), plugins.make_host(host.ssh_url))
    return found.target, found.space


@pytest.mark.parametrize("server", leave_to_more(CHANGES, "apache", "nginx", "h2o", "php-fpm"))
def test_a_configuration_is_in_force_and_gone_again(own_bed: Testbed, tmp_path: Path, server: str):
    host = own_bed.add_host("web")
    host.install(server)
    before = look_at(host)
    target, space = find(host, tmp_path, server)
    changes = {**CHANGES[server][1], SOMAXCONN: 5000}

    with target.hold(print):
        with target.deploy(space.complete(changes)) as deployment:
            read_back = {name: deployment.effective[name] for name in changes if name in deployment.effective}
            assert len(read_back) > 1
            assert read_back == {name: changes[name] for name in read_back}
            deployment.check_alive()
            assert deployment.no_longer_effective() == ()
            assert look_at(host) != before
        with target.deploy(space.default()):
            assert look_at(host) == before

    assert look_at(host) == before


@pytest.mark.parametrize(
    "worsen",
    leave_to_more(
        [lambda bed, host: bed.loss(host, 0.05), lambda bed, host: bed.delay(host, round_trip_ms=100)]
    ),
    ids=["5 % loss", "100 ms"],
)
def test_over_a_bad_link_a_host_is_changed_held_and_given_back(
    own_bed: Testbed, web: TestHost, tmp_path: Path, worsen: Callable[[Testbed, TestHost], None]
):
    before = look_at(web)
    worsen(own_bed, web)
    target, space = find(web, tmp_path, watchdog_s=5)

    with target.hold(print), target.deploy(space.complete({"worker_processes": 3, SOMAXCONN: 5000})) as there:
        changed = look_at(web)
        time.sleep(7)  # longer than the watchdog waits for a controller that is gone
        assert there.effective["worker_processes"] == 3
        there.check_alive()
        assert look_at(web) == changed != before

    assert look_at(web) == before
    assert (web.root / "var/lib/tuner/log").read_text().count("restoring: ") == 1


def test_what_the_server_refuses_is_a_rejected_configuration_and_never_started(web: TestHost, tmp_path: Path):
    before = look_at(web)
    target, space = find(web, tmp_path)
    first = web.processes("nginx")

    with target.hold(print):
        (web.root / "etc/nginx/conf.d/broken.conf").write_text("nonsense on;\n")
        with pytest.raises(ConfigRejected, match='unknown directive "nonsense"'):
            target.deploy(space.complete({"sendfile": False})).__enter__()
        assert web.processes("nginx") == first
        (web.root / "etc/nginx/conf.d/broken.conf").unlink()

    assert look_at(web) == before


def test_a_port_that_somebody_else_has_taken_is_told_with_the_servers_words(web: TestHost, tmp_path: Path):
    target, space = find(web, tmp_path)

    with target.hold(print), target.deploy(space.complete({"sendfile": False})):
        # nginx goes, and another program is quicker to listen.
        web.run(["service", "nginx", "stop"])
        web.run(["sh", "-c", "setsid busybox nc -lk -p 80 -e /bin/false >/dev/null 2>&1 &"])
        with pytest.raises((Crashed, NotReady), match=r"Address already in use|gave"):
            target.deploy(space.complete({"sendfile": False, "multi_accept": True})).__enter__()
        kill_each(web.processes("nc") or web.processes("busybox"))

    assert web.status_of() == 200


def test_a_server_that_is_killed_is_seen_to_have_crashed_and_runs_again_afterwards(
    web: TestHost, tmp_path: Path
):
    before = look_at(web)
    target, space = find(web, tmp_path)

    with target.hold(print), target.deploy(space.complete({"sendfile": False})) as deployment:
        kill_each(web.processes("nginx"))
        # What was killed takes a moment to end.
        with pytest.raises(Crashed, match=r"its first process \(\d+\) has ended"):
            wait_until(lambda: (deployment.host.look(), deployment.check_alive())[1])

    assert look_at(web) == before


def test_a_setting_that_somebody_else_changes_is_noticed_and_stays(web: TestHost, tmp_path: Path):
    target, space = find(web, tmp_path)

    def run() -> None:
        with target.hold(print), target.deploy(space.complete({SOMAXCONN: 5000})) as deployment:
            web.run(["sh", "-c", "echo 6000 > /proc/sys/net/core/somaxconn"])
            deployment.host.look()
            assert deployment.no_longer_effective() == (
                "sysctl: net.core.somaxconn: 5000 was requested, 6000 is active",
            )

    with pytest.raises(RestoreFailed, match="somebody else has set it to '6000'"):
        run()
    assert web.run(["cat", "/proc/sys/net/core/somaxconn"]).stdout == b"6000\n"


def test_a_second_tuner_is_refused_with_the_name_of_the_first(web: TestHost, tmp_path: Path, monkeypatch):
    first, _ = find(web, tmp_path)
    second, _ = find(web, tmp_path)

    with first.hold(print):
        monkeypatch.setenv("TUNER_STATE", str(tmp_path / "another"))
        with pytest.raises(TargetError, match="study managed"):
            second.hold(print).__enter__()


def test_a_host_that_cannot_be_asked_puts_itself_back_and_is_held_again(web: TestHost, tmp_path: Path):
    before = look_at(web)
    target, space = find(web, tmp_path, watchdog_s=5)

    def run() -> None:
        with target.hold(print), target.deploy(space.complete({"sendfile": False})):
            web.kill_sshd()

    with pytest.raises(HostLost, match=r"cannot be reached: Connection refused.* run the same command again"):
        run()
    wait_until(lambda: "everything is back" in (web.root / "var/lib/tuner/log").read_text())
    assert look_at(web) == before
    web.start_sshd()
    with target.hold(print):
        pass


def test_what_cannot_be_put_back_is_told_and_can_be_later(web: TestHost, tmp_path: Path):
    before = look_at(web)
    target, space = find(web, tmp_path)

    def run() -> None:
        with target.hold(print), target.deploy(space.complete({"sendfile": False})):
            web.run(["mount", "--bind", "-o", "ro", "/etc/nginx", "/etc/nginx"])
            web.run(["mount", "-o", "remount,bind,ro", "/etc/nginx"])

    with pytest.raises(RestoreFailed, match=r"/etc/nginx/nginx\.conf .*tuner restore"):
        run()
    web.run(["umount", "/etc/nginx"])
    from tuner.restore.journal import open_journal
    from tuner.restore.recovery import restore_host

    with open_journal() as journal:
        restore_host(plugins.make_host(web.ssh_url), journal)

    assert look_at(web) == before


@pytest.mark.more
def test_a_page_that_is_replaced_during_a_run_is_learned_again(web: TestHost, tmp_path: Path):
    page = web.root / "var/www/html/index.html"
    target, space = find(web, tmp_path)
    configurations = [space.complete({"worker_processes": workers}) for workers in (3, 4)]
    lengths = []

    with target.hold(print):
        for config in (*configurations, space.default()):
            page.write_bytes(page.read_bytes() + b"<!-- -->")
            with target.deploy(config) as deployment:
                lengths.append(deployment.load.body_bytes)

    # What changes again and again has no length of its own.
    assert lengths[0] == len(page.read_bytes()) - 16
    assert lengths[1:] == [None, None]


SHOP = """\
server { listen 8081 default_server; return 301 http://$host/; }
server {
  listen 8081; server_name SHOP; root /var/www/html;
  location / { keepalive_requests 7; try_files $uri $uri/ =404; }
  location ~ \\.html$ { keepalive_requests 250; if ($http_cookie) { sendfile off; } }
}
"""


def test_what_answers_the_load_is_what_is_changed(web: TestHost, tmp_path: Path):
    (web.root / "etc/nginx/conf.d/shop.conf").write_text(SHOP.replace("SHOP", web.address))
    page = next((web.root / "var/www/html").glob("index*.html")).name
    web.run(["nginx", "-s", "reload"])
    wait_until(lambda: web.status_of(f"/{page}", port=8081) == 200)
    target, space = find(web, tmp_path, page=f":8081/{page}")

    def kept() -> int:
        """Return how many requests one connection takes."""
        url, count = f"http://{web.address}:8081/{page}?[1-300]", "%{num_connects}\\n"
        listed = web.run(["curl", "-s", "-o", "/dev/null", "-w", count, url]).stdout.split()
        return listed.index(b"1", 1)

    assert space.default()["keepalive_requests"] == kept() == 250
    assert "shop.conf:5 sets this only for some" in space.left_out["sendfile"]
    with target.hold(print), target.deploy(space.complete({"keepalive_requests": 120})):
        assert kept() == 120
    assert kept() == 250


def test_php_that_hands_on_an_environment_nobody_can_read_is_not_restarted(own_bed: Testbed, tmp_path: Path):
    host = own_bed.add_host("web")
    (pool,) = (host.root / "etc/php").glob("*/fpm/pool.d/www.conf")
    pool.write_text(pool.read_text() + "clear_env = no\n")
    host.install_php_fpm()

    with pytest.raises(TargetError, match="may need environment variables"):
        find(host, tmp_path, "php-fpm")


@pytest.mark.more
def test_a_certificate_that_nobody_else_trusts_is_named_or_accepted_and_a_redirect_leads_there(
    own_bed: Testbed, tmp_path: Path
):
    host = own_bed.add_host("web")
    file = PurePosixPath("/etc/own.pem")
    host.run(MAKE_CERTIFICATE.format(address=host.address, file=file).split())
    site = TLS_SITE.format(address=host.address, file=file)
    (host.root / "etc/nginx/conf.d/tls.conf").write_text(site)
    host.install_nginx()
    study = tmp_path / "managed.yaml"

    def look(path: str, more: str = "") -> ManagedTarget:
        text = STUDY.replace("http://{address}{page}", path).replace('"}}\n', f'"{more}}}}}\n')
        study.write_text(text.format(server="nginx", space="nginx", url=host.ssh_url, watchdog_s=10))
        return find_target(load_study(study), plugins.make_host(host.ssh_url)).target

    secure = f"https://{host.address}/index.html"
    with pytest.raises(TargetError, match=rf"answers 301 to {secure}\. Set load\.path to {secure}\."):
        look(f"http://{host.address}:8080/")
    with pytest.raises(TargetError, match=r"the certificate of the server is not trusted: .*`load\.ca:`"):
        look(secure)
    for more in (f", ca: {file}", ", verify: false"):
        assert look(secure, more).load.pages[0].kind.body_bytes

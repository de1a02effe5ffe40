"""Private instances on a host whose programs have the names, places and users of Fedora and Alpine.

They are Debian's programs, moved: what other distributions build is not on this machine.
"""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import PurePosixPath

import pytest

from tests.e2e.command_line import TUNER
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner.adapters.hosts.ssh import SshHost
from tuner.commands.host_check import check_host
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import link
from tuner.deploy.content import open_content
from tuner.deploy.sandbox import SandboxTarget
from tuner.hosts.placement import place
from tuner.plugins import make_installed_server, make_private_server
from tuner.ports import FileState, RequestKind

MOVE = """
set -e
sed -i '/^www-data:/d' /etc/passwd /etc/group /etc/shadow /etc/gshadow
for user in apache nginx; do groupadd -r $user; useradd -r -g $user -s /usr/sbin/nologin $user; done
rm -f /usr/sbin/apache2ctl /usr/sbin/apachectl
mv /usr/sbin/apache2 /usr/sbin/httpd
mkdir -p /usr/lib64/httpd
mv /usr/lib/apache2/modules /usr/lib64/httpd/modules
# Alpine's name
mv /usr/sbin/php-fpm8.* /usr/sbin/php-fpm83
# Fedora's and Arch's link
cp -a -n /usr/sbin/. /usr/bin/
rm -r /usr/sbin
ln -s bin /usr/sbin
"""

# As httpd.conf of RHEL 9 has it, as far as it acts here; its program is built for this file.
HTTPD = """
set -e
mkdir -p /etc/httpd/conf /etc/httpd/conf.d /etc/httpd/conf.modules.d /etc/sysconfig /var/log/httpd /run/httpd
ln -s ../../usr/lib64/httpd/modules /etc/httpd/modules
ln -s /run/httpd /etc/httpd/run
cat >/etc/httpd/conf/httpd.conf <<end
ServerRoot "/etc/httpd"
Listen 80
Include conf.modules.d/*.conf
User apache
Group apache
ServerName localhost
PidFile run/httpd.pid
DocumentRoot "/var/www/html"
ErrorLog "/var/log/httpd/error_log"
IncludeOptional conf.d/*.conf
end
for module in mpm_event authz_core dir status; do
    echo "LoadModule ${module}_module modules/mod_$module.so"
done >/etc/httpd/conf.modules.d/00-base.conf
echo 'OPTIONS="-d /etc/httpd -f conf/httpd.conf"' >/etc/sysconfig/httpd
"""


@pytest.fixture(scope="module")
def machine(bed: Testbed) -> TestHost:
    made = bed.add_host("rhel")
    made.run(["sh", "-c", MOVE])
    made.run(["sh", "-c", HTTPD])
    return made


@pytest.fixture(scope="module")
def host(machine: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(machine.ssh_url)) as made:
        yield made


def test_a_check_without_a_study_names_what_is_there_and_what_is_missing(machine: TestHost, host: SshHost):
    programs = machine.root / "usr/bin"
    (programs / "apt-get").unlink()
    (programs / "h2o").unlink()
    (programs / "dnf").write_text("#!/bin/sh\n")
    (programs / "dnf").chmod(0o755)

    found = check_host(host)

    builds = {each.server: (each.program, each.build) for each in found.servers}
    assert builds["apache"] == ("httpd", "RHEL, Fedora")
    assert builds["php-fpm"] == ("/usr/sbin/php-fpm83", "Alpine")
    assert found.missing == {"h2o": "not found. Install it: dnf; Debian calls the package h2o"}
    assert (found.sandbox, found.trouble) == ("", "")


def test_a_check_ends_with_1_where_nothing_can_be_tuned():
    checked = subprocess.run(
        [TUNER, "check"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False, timeout=60
    )

    assert (checked.returncode, checked.stderr) == (1, "")
    assert checked.stdout.splitlines()[-1].startswith("not ready: ")


@pytest.mark.parametrize(
    ("names", "program", "user"),
    [
        (("apache",), "httpd", "apache"),
        (("nginx",), "nginx", "nginx"),
        (("nginx", "php-fpm"), "php-fpm83", "nobody"),
    ],
)
def test_a_private_instance_serves_as_the_user_that_the_host_has(
    machine: TestHost, host: SshHost, names: tuple[str, ...], program: str, user: str
):
    content = open_content("builtin", "/page.php" if "php-fpm" in names else "/index.html")
    servers = {name: make_private_server(name) for name in names}
    facts = {name: server.detect(host) for name, server in servers.items()}
    target = SandboxTarget(
        host=host, servers=servers, facts=facts, chain=link(facts, {}), content=content,
        split=lambda config, _name: config, placement=place({0}),
        load=ExpectedLoad(page=RequestKind(path=content.path, body_bytes=content.body_bytes)),
    )  # fmt: skip

    with target.deploy({}):
        serving = machine.run(["ps", "-eo", "user=,comm="]).stdout.decode().split("\n")

    assert {tuple(line.split()) for line in serving if line.endswith(program)} == {
        ("root", program), (user, program),
    }  # fmt: skip


def test_the_installed_httpd_gets_other_settings_in_its_conf_d(machine: TestHost, host: SshHost):
    server = make_installed_server("apache")
    before = server.find(host)
    assert before.service is not None
    assert (before.service.name, before.port, before.log) == (
        "httpd",
        80,
        PurePosixPath("/var/log/httpd/error_log"),
    )

    changed = server.rewrite({"KeepAliveTimeout": 9, "Timeout": 77}, before)
    for path, content in changed.items():
        host.write(path, FileState(content=content, mode=0o644))
    for command in (before.service.check, before.service.start):
        assert machine.run(command or ["false"]).returncode == 0
    machine.wait_until_it_answers(80)

    assert [str(path) for path in changed] == ["/etc/httpd/conf.d/zz-tuner.conf"]
    after = server.find(host).facts.current
    assert (after["KeepAliveTimeout"], after["Timeout"]) == (9, 77)
    machine.run(before.service.stop)
    assert machine.processes("httpd") == []

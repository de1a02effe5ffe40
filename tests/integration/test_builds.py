"""Private instances on a host whose programs have the names, places and users of RHEL and Alpine.

They are Debian's programs, moved: what other distributions build is not on this machine.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tuner.adapters.hosts.ssh import SshHost
from tuner.deploy.asked import ExpectedLoad
from tuner.deploy.chain import link
from tuner.deploy.content import open_content
from tuner.deploy.sandbox import SandboxTarget
from tuner.hosts.placement import place
from tuner.plugins import make_private_server
from tuner.ports import RequestKind

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
"""


@pytest.fixture(scope="module")
def machine(bed: Testbed) -> TestHost:
    made = bed.add_host("rhel")
    made.run(["sh", "-c", MOVE])
    return made


@pytest.fixture(scope="module")
def host(machine: TestHost) -> Iterator[SshHost]:
    with closing(SshHost(machine.ssh_url)) as made:
        yield made


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

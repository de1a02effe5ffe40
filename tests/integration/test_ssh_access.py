"""Who is let in over SSH and whom we let in: keys, aliases, jump hosts, sudo."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.waiting import wait_until
from tests.testbed.bed import Testbed
from tests.testbed.host import Sudo, TestHost, User
from tuner.adapters.hosts.ssh import SshHost
from tuner.errors import TargetError
from tuner.plugins import make_host
from tuner.ports import Command

pytestmark = pytest.mark.usefixtures("web", "desk", "free", "home")
WRONG = "wrong-and-secret"
PASSWORD = "open; 'sesame' $HOME"  # noqa: S105 - of an account that lives for a second


@pytest.fixture(scope="module")
def desk(bed: Testbed) -> TestHost:
    return bed.add_host("desk", user=User(name="deploy", password=PASSWORD, sudo=Sudo.PASSWORD))


@pytest.fixture(scope="module")
def free(bed: Testbed) -> TestHost:
    return bed.add_host("free", user=User(name="deploy", sudo=Sudo.FREELY))


@pytest.fixture
def home(bed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test an own copy of the user's ~/.ssh."""
    subprocess.run(["cp", "-a", str(bed.home / ".ssh"), str(tmp_path)], check=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path


@pytest.fixture
def reach() -> Iterator[object]:
    """Make hosts that are closed after the test."""
    made: list[SshHost] = []

    def make(url: str, **options: object) -> SshHost:
        made.append(SshHost(url, **options))
        return made[-1]

    yield make
    for host in made:
        host.close()


def name_of(host: SshHost) -> str:
    return host.run(["hostname"], timeout_s=10).stdout.decode().strip()


def test_a_host_is_made_by_its_url(web: TestHost):
    host = make_host(web.ssh_url)
    assert (host.name, name_of(host)) == (web.ssh_url, "web")
    host.close()


def test_an_unknown_key_is_refused_with_its_fingerprint_and_what_accepts_it(web: TestHost, home: Path, reach):
    (home / ".ssh/known_hosts").write_text("")
    printed = web.run(["ssh-keygen", "-lf", "/etc/ssh/testbed_key.pub"]).stdout.decode()

    with pytest.raises(TargetError, match="the key of this host is not known") as refused:
        name_of(reach(web.ssh_url))

    assert printed.split()[1] in str(refused.value)
    accept = re.search(r"ssh-keyscan .*", str(refused.value))[0]
    subprocess.run(["sh", "-c", accept], check=True, capture_output=True)
    assert name_of(reach(web.ssh_url)) == "web"


def test_a_changed_key_is_refused_loudly(bed: Testbed, home: Path, reach):
    impostor = bed.add_host("impostor")
    (home / ".ssh/known_hosts").write_bytes(bed.known_hosts.read_bytes())
    impostor.change_host_key()

    with pytest.raises(
        TargetError, match=r"THE HOST KEY HAS CHANGED: .* SHA256:.* was offered, .* SHA256:.* is known"
    ):
        name_of(reach(impostor.ssh_url))


def host_key_of(host: TestHost) -> str:
    return (host.root / "etc/ssh/testbed_key.pub").read_text().rpartition(" ")[0]


@pytest.mark.parametrize("hosts", ["{address}", "*", "198.18.*,!other", "another.example"])
@pytest.mark.parametrize("is_hashed", [False, True], ids=["plain", "hashed"])
def test_a_revoked_key_is_refused_although_it_is_known(
    web: TestHost, home: Path, reach, hosts: str, *, is_hashed: bool
):
    known = home / ".ssh/known_hosts"
    with known.open("a") as file:
        file.write(f"@revoked {hosts.format(address=web.address)} {host_key_of(web)} compromised\n")
    if is_hashed:
        subprocess.run(["ssh-keygen", "-H", "-f", str(known)], check=True, capture_output=True)

    with pytest.raises(TargetError, match=r"THE HOST KEY IS REVOKED \(\S+known_hosts:\d+\): ssh-ed"):
        name_of(reach(web.ssh_url))


def test_a_revoked_key_at_another_port_or_of_a_jump_host_is_refused(bed: Testbed, home: Path, reach):
    hop, port = bed.add_host("hop"), 2200
    hop.run(["/usr/sbin/sshd", "-p", str(port)])
    # It listens once it is in the background.
    wait_until(lambda: str(port) in hop.run(["ss", "-tlnH", f"sport = :{port}"]).stdout.decode())
    key = host_key_of(hop)
    with (home / ".ssh/known_hosts").open("a") as file:
        file.write(f"{hop.address} {key}\n[{hop.address}]:{port} {key}\n")
        file.write(f"@revoked\t[{hop.address}]:{port}   {key}\n")
    (home / ".ssh/config").write_text(
        f"Host behind\n  HostName {bed.address}\n  ProxyJump root@{hop.address}\n"
    )

    for url in (f"ssh://root@{hop.address}:{port}", "ssh://root@behind"):
        with pytest.raises(TargetError, match="THE HOST KEY IS REVOKED"):
            name_of(reach(url))


def test_the_revoked_keys_of_ssh_config_are_heeded(web: TestHost, home: Path, reach):
    listed = home / "revoked"
    (home / ".ssh/config").write_text(f"Host *\n  RevokedHostKeys {listed}\n")

    with pytest.raises(TargetError, match=r"RevokedHostKeys .* cannot be read"):
        name_of(reach(web.ssh_url))
    subprocess.run(["ssh-keygen", "-k", "-f", listed, f"{web.identity}.pub"], check=True, capture_output=True)
    with pytest.raises(TargetError, match="is a binary list"):
        name_of(reach(web.ssh_url))
    listed.write_text(f"# stolen\n{host_key_of(web)}\n")
    with pytest.raises(TargetError, match=r"THE HOST KEY IS REVOKED \(\S+revoked:2\)"):
        name_of(reach(web.ssh_url))
    listed.write_text("")
    assert name_of(reach(web.ssh_url)) == "web"


def test_the_key_of_an_authority_is_no_key_of_a_host(web: TestHost, home: Path, reach):
    (home / ".ssh/known_hosts").write_text(
        f"@cert-authority {web.address} {host_key_of(web)}\n@cert-authority * {host_key_of(web)}\n"
    )

    with pytest.raises(TargetError, match="the key of this host is not known"):
        name_of(reach(web.ssh_url))


def test_a_key_that_the_host_does_not_know_is_not_let_in(web: TestHost, home: Path, reach):
    (home / ".ssh/id_ed25519").unlink()
    with pytest.raises(TargetError, match=r"cannot be reached: No authentication|the host refused the login"):
        name_of(reach(web.ssh_url))

    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / ".ssh/id_ed25519")], check=True
    )
    with pytest.raises(TargetError, match="the host refused the login"):
        name_of(reach(web.ssh_url))


def test_a_key_with_a_passphrase_says_to_use_the_agent(web: TestHost, home: Path, reach):
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-N", "geheim", "-f", str(home / ".ssh/id_ed25519")], check=True
    )

    with pytest.raises(TargetError, match=r"has a passphrase.*ssh-add"):
        name_of(reach(web.ssh_url))


@pytest.mark.parametrize("url", ["ssh://root@{address}:23", "ssh://no-such-host.invalid"])
def test_a_host_that_is_not_there_is_named(web: TestHost, reach, url: str):
    with pytest.raises(
        TargetError, match=r"ssh://.*(cannot be reached: Connection refused|no host has this name)"
    ):
        name_of(reach(url.format(address=web.address)))


def test_aliases_users_ports_and_keys_of_ssh_config_are_used(web: TestHost, home: Path, reach):
    (home / ".ssh/id_ed25519").rename(home / "elsewhere")
    (home / ".ssh/config").write_text(
        f"Host alias\n HostName {web.address}\n User root\n Port 22\n"
        " IdentityFile ~/elsewhere\n IdentityFile ~/none\n"
    )

    assert name_of(reach("ssh://alias")) == "web"


def test_a_jump_host_is_used_and_its_key_is_checked_as_well(
    bed: Testbed, web: TestHost, desk: TestHost, home: Path, reach
):
    (home / ".ssh/config").write_text(f"Host {web.address}\n ProxyJump deploy@{desk.address}\n")
    host = reach(web.ssh_url)

    assert name_of(host) == "web"
    assert desk.address in host.run(["sh", "-c", "echo $SSH_CONNECTION"], timeout_s=10).stdout.decode()

    known = bed.known_hosts.read_text().splitlines(keepends=True)
    (home / ".ssh/known_hosts").write_text("".join(line for line in known if desk.address not in line))
    with pytest.raises(TargetError, match=f"not known: .* of {desk.address}"):
        name_of(reach(web.ssh_url))


def test_a_proxy_command_is_used(web: TestHost, home: Path, reach):
    (home / ".ssh/config").write_text(
        f"Host far\n HostName {web.address}\n User root\n"
        " ProxyCommand ssh -W %h:%p -o StrictHostKeyChecking=yes"
        f" -o UserKnownHostsFile={home}/.ssh/known_hosts -i {home}/.ssh/id_ed25519 root@{web.address}\n"
    )

    assert name_of(reach("ssh://far")) == "web"


def test_the_password_of_sudo_is_asked_once_and_is_in_no_process_and_no_file(desk: TestHost, reach):
    questions: list[str] = []
    host = reach(desk.ssh_url, ask_password=lambda question: questions.append(question) or PASSWORD)
    whoami = Command(argv=("id", "-un"), as_root=True)

    done = host.run_all([whoami, Command(argv=("id", "-un")), whoami])

    assert [each.stdout for each in done] == [b"root\n", b"deploy\n", b"root\n"]
    assert questions == [f"{desk.ssh_url}: sudo wants the password."]
    # As root: all command lines, environments and the shells' private files, while one of them waits.
    search = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ /dev/shm/tuner.*/* | grep -ac sesam[e]"
    assert desk.run(["sh", "-c", search], check=False).stdout == b"0\n"


def test_a_password_that_expired_is_given_again_without_asking(desk: TestHost, reach):
    questions: list[str] = []
    host = reach(desk.ssh_url, ask_password=lambda question: questions.append(question) or PASSWORD)
    host.run(["true"], timeout_s=10, as_root=True)
    desk.run(["sh", "-c", "rm -r /run/sudo/ts"])

    assert host.run(["id", "-un"], timeout_s=10, as_root=True).stdout == b"root\n"
    assert len(questions) == 1


def test_a_wrong_password_is_refused_without_showing_it(desk: TestHost, reach):
    host = reach(desk.ssh_url, ask_password=lambda _question: WRONG)

    with pytest.raises(TargetError, match="sudo refused the password") as refused:
        host.run(["true"], timeout_s=10, as_root=True)

    assert WRONG not in repr(refused.getrepr(showlocals=True))


def test_sudo_without_a_password_asks_for_none(free: TestHost, reach):
    assert reach(free.ssh_url).run(["id", "-un"], timeout_s=10, as_root=True).stdout == b"root\n"


def test_what_sudo_may_not_kill_is_said_to_run_on(bed: Testbed, home: Path, reach):
    narrow = bed.add_host("narrow", user=User(name="deploy"))
    (home / ".ssh/known_hosts").write_bytes(bed.known_hosts.read_bytes())
    rule = narrow.root / "etc/sudoers.d/testbed"
    rule.write_text("deploy ALL=(root) NOPASSWD: /usr/bin/sleep 605\n")
    rule.chmod(0o440)
    host = reach(narrow.ssh_url)

    with pytest.raises(
        TargetError, match=r"`sleep 605` did not end .* and still runs, because sudo may not kill the command"
    ):
        host.run(["sleep", "605"], timeout_s=0.2, as_root=True)

    assert len(narrow.processes("sleep")) == 1
    assert host.run(["echo", "on"], timeout_s=5).stdout == b"on\n"


def test_without_a_terminal_nobody_is_asked(desk: TestHost):
    run = f"SshHost({desk.ssh_url!r}).run(['id'], timeout_s=9, as_root=True)"
    code = f"from tuner.adapters.hosts.ssh import SshHost; {run}"
    tried = subprocess.run(
        ["setsid", "--wait", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )

    assert "tuner has no terminal to ask you" in tried.stderr

"""One test host: how tests log in, run things, break its link and its sshd, and start its servers."""

import contextlib
import http.client
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.testbed.namespaces import kill_each, processes_of, run_in

SSHD_CONFIG = """\
Port {port}
HostKey /etc/ssh/testbed_key
AuthorizedKeysFile /etc/ssh/testbed_authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
PermitRootLogin yes
Subsystem sftp internal-sftp
"""
SSHD_UNIT = """\
[Service]
Type=notify
RuntimeDirectory=sshd
ExecStart=/usr/sbin/sshd -D
# As Debian's own: sessions outlive it.
KillMode=process
[Install]
WantedBy=multi-user.target
"""
PHP_PORT = 8000
PHP_ROOT = Path("/srv/php")
PHP_SITE = """\
server {{
    listen {port};
    root {root};
    location ~ \\.php$ {{
        include fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
        fastcgi_pass unix:{socket};
    }}
}}
"""
BOOTED = """
until case $(systemctl is-system-running --wait 2>/dev/null) in running | degraded) ;; *) false ;; esac
do sleep 0.05; done
"""
START_TIMEOUT_S = 20.0
POLL_S = 0.005


class Sudo(Enum):
    """What sudo lets a user do."""

    NEVER = "never"
    PASSWORD = "password"  # noqa: S105 - a kind, no secret
    FREELY = "freely"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who logs in."""

    name: str
    password: str = ""
    """For sudo; sshd takes the key alone."""
    sudo: Sudo = Sudo.NEVER


ROOT = User(name="root")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestHost:
    """A machine of its own; made by `Testbed.add_host`."""

    __test__ = False

    name: str
    pid: int
    """Its first process, as this machine numbers it."""
    address: str
    user: User
    switch: int
    """First process of the namespace where the other end of its link is."""
    home: Path
    """Of the user of ssh on this machine."""
    port: int = 22
    has_systemd: bool = False
    has_disk: bool = False
    """Whether it can be started again, and finds then what it wrote."""

    @property
    def ssh_url(self) -> str:
        return f"ssh://{self.user.name}@{self.address}:{self.port}"

    @property
    def identity(self) -> Path:
        """The private key that it accepts."""
        return self.home / ".ssh/id_ed25519"

    @property
    def root(self) -> Path:
        """Its root directory, as this machine reaches it: for looking at files and for writing them."""
        return Path(f"/proc/{self.pid}/root")

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", check: bool = True, timeout_s: float = 60
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a command on it as root, not over ssh; one that fails is an error, unless `check` is False."""
        return run_in(self.pid, argv, stdin=stdin, check=check, timeout_s=timeout_s)

    def processes(self, name: str = "") -> list[int]:
        """List its processes, all or those of a name, by this machine's ids."""
        found = []
        for pid in processes_of(self.pid):
            with contextlib.suppress(OSError):
                if name in ("", Path(f"/proc/{pid}/comm").read_text().strip()):
                    found.append(pid)
        return found

    def cut(self) -> None:
        """Pull the plug: nothing reaches it any more, nor leaves it."""
        run_in(self.switch, ["ip", "link", "set", self.name, "down"])

    def heal(self) -> None:
        """Put the plug in again."""
        run_in(self.switch, ["ip", "link", "set", self.name, "up"])

    def prepare(self) -> None:
        """Make keys and the user, and start sshd."""
        if self.has_systemd:
            self._make_units()
        self._make_keys()
        if self.user.name != "root":
            self._make_user()
        self.start_sshd()

    def start_sshd(self) -> None:
        """Start sshd; it answers when this returns."""
        if self.has_systemd:
            self.run(["systemctl", "start", "testbed-sshd"])
            return
        # It goes into the background first, and listens then: its pid file says that it does.
        started = self.root / "run/sshd.pid"
        started.unlink(missing_ok=True)
        self.run(["/usr/sbin/sshd"])
        deadline = time.monotonic() + START_TIMEOUT_S
        while not started.exists():
            if time.monotonic() > deadline:
                message = f"testbed: sshd of {self.name} does not start."
                raise RuntimeError(message)
            time.sleep(POLL_S)

    def kill_sshd(self) -> None:
        """Kill sshd with all its sessions, not what runs in them; its port is free when this returns."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while found := self.processes("sshd"):
            kill_each(found)
            if time.monotonic() > deadline:
                message = f"testbed: sshd of {self.name} does not end."
                raise RuntimeError(message)
            time.sleep(POLL_S)

    def change_host_key(self) -> None:
        """Give it another key, as an impostor or a new installation has; known_hosts stays."""
        self.kill_sshd()
        (self.root / "etc/ssh/testbed_key").unlink()
        self._make_host_key()
        self.start_sshd()

    def fill_disk(self) -> None:
        """Leave no space on its disk."""
        self.run(["dd", "if=/dev/zero", "of=/filler", "bs=64k"], check=False)

    def free_disk(self) -> None:
        """Give the space back."""
        (self.root / "filler").unlink()

    def install(self, server: str) -> None:
        """Start a packaged server by the name of its adapter; php-fpm comes with an nginx in front of it."""
        match server:
            case "apache":
                self.install_apache()
            case "apache-prefork" | "apache-worker":
                self.install_apache(mpm=server.removeprefix("apache-"))
            case "h2o":
                self.install_h2o()
            case "nginx":
                self.install_nginx()
            case "php-fpm":
                self.install_php_fpm()
                self.put_nginx_before_php()
            case _:
                message = f"testbed: {server} is no server that is packaged."
                raise ValueError(message)

    def install_nginx(self) -> None:
        """Start the packaged nginx with its own site, on port 80."""
        self.start_service("nginx", port=80)

    def install_apache(self, *, mpm: str = "event") -> None:
        """Start the packaged Apache with its own site, on port 80; another MPM is chosen as an owner does."""
        if mpm != "event":
            self.run(["a2dismod", "-q", "mpm_event"])
            self.run(["a2enmod", "-q", f"mpm_{mpm}"])
        # Not by its init script, which waits in whole seconds.
        self.run(["apache2ctl", "start"])
        self.wait_until_it_answers(80)

    def install_h2o(self) -> None:
        """Start the packaged h2o with its own site, on port 80."""
        self.start_service("h2o", port=80)

    def install_php_fpm(self) -> None:
        """Start the packaged php-fpm with its own pool, at its socket under /run/php."""
        self.start_service(f"php{self._php_version}-fpm")

    def put_nginx_before_php(self) -> None:
        """Start the packaged nginx, which hands /*.php at PHP_PORT on to php-fpm."""
        socket = f"/run/php/php{self._php_version}-fpm.sock"
        site = PHP_SITE.format(port=PHP_PORT, root=PHP_ROOT, socket=socket)
        (self.root / "etc/nginx/conf.d/php.conf").write_text(site)
        self.put_page("index.php", "<?php echo 'hello';\n")
        self.install_nginx()
        self.wait_until_it_answers(PHP_PORT)

    def put_page(self, name: str, content: str) -> None:
        """Write a page into the document root of php-fpm's site."""
        page = self.root / PHP_ROOT.relative_to("/") / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(content)

    @property
    def _php_version(self) -> str:
        """The newest that is installed, as the adapter takes it."""
        versions = [path.parent.name for path in (self.root / "etc/php").glob("*/fpm")]
        return max(versions, key=lambda version: [int(part) for part in version.split(".")])

    def start_service(self, name: str, *, port: int | None = None) -> None:
        """Start a service by its init script; with a port, wait until it answers HTTP there."""
        self.run(["service", name, "start"])
        if port is not None:
            self.wait_until_it_answers(port)

    def show_unit(self, unit: str, name: str) -> str:
        """Return a property of a unit of systemd."""
        argv = ["systemctl", "show", "--value", f"--property={name}", "--", unit]
        return self.run(argv).stdout.decode().strip()

    def limit_open_files(self, service: str, most: int) -> None:
        """Let systemd start a service with few open files, by a drop-in of the host's own."""
        own = self.root / f"etc/systemd/system/{service}.service.d"
        own.mkdir()
        (own / "own.conf").write_text(f"[Service]\nLimitNOFILE={most}\n")
        self.run(["systemctl", "daemon-reload"])

    def wait_until_it_answers(self, port: int) -> None:
        """Wait for an answer over HTTP, whatever its status."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.status_of("/", port=port) is None:
            if time.monotonic() > deadline:
                message = f"testbed: nothing answers at port {port} of {self.name}."
                raise RuntimeError(message)
            time.sleep(POLL_S)

    def status_of(self, path: str = "/", *, port: int = 80) -> int | None:
        """Ask it over HTTP; None when nothing answers."""
        connection = http.client.HTTPConnection(self.address, port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()

    def wait_until_booted(self) -> None:
        """Wait until systemd has started everything that it starts by itself."""
        # Its socket is not there at once.
        self.run(["sh", "-c", BOOTED], timeout_s=START_TIMEOUT_S)

    def _make_units(self) -> None:
        """Let it start what it needs for tests, and nothing of what this machine starts."""
        self.wait_until_booted()
        (self.root / "etc/systemd/system/testbed-sshd.service").write_text(SSHD_UNIT)
        self.run(["systemctl", "enable", "--quiet", "testbed-sshd"])
        self.run(["systemctl", "daemon-reload"])

    def _make_keys(self) -> None:
        ssh = self.root / "etc/ssh"
        (ssh / "sshd_config").write_text(SSHD_CONFIG.format(port=self.port))
        (ssh / "testbed_authorized_keys").write_bytes(self.identity.with_suffix(".pub").read_bytes())
        key = self._make_host_key()
        where = self.address if self.port == 22 else f"[{self.address}]:{self.port}"
        with (self.home / ".ssh/known_hosts").open("a") as file:
            file.write(f"{where} {key}\n")

    def _make_host_key(self) -> str:
        self.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/testbed_key"])
        return (self.root / "etc/ssh/testbed_key.pub").read_text().strip()

    def _make_user(self) -> None:
        user = self.user
        self.run(["useradd", "--create-home", "--shell", "/bin/sh", "--password", "*", user.name])
        if user.password:
            self.run(["chpasswd"], stdin=f"{user.name}:{user.password}\n".encode())
        if user.sudo is not Sudo.NEVER:
            tag = "NOPASSWD: " if user.sudo is Sudo.FREELY else ""
            rule = self.root / "etc/sudoers.d/testbed"
            rule.write_text(f"{user.name} ALL=(ALL:ALL) {tag}ALL\n")
            rule.chmod(0o440)

"""The servers that sequences happen to: how each is begun, and who writes what of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.testbed.host import TestHost

SETTING = "net.core.somaxconn"
PAGE = "the page\n"
DROP_IN = "zz-tuner.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """One server on a host without systemd; with it, its unit of the same name."""

    spaces: Mapping[str, str]
    """Adapters → their spaces, without those of the kernel."""
    winner: Mapping[str, object]
    trial: Mapping[str, object]
    folder: str
    """Of its configuration."""
    written: str
    """A file that tuner writes."""
    main: str
    """What somebody else edits, and breaks: a file that is always there."""
    own: str
    """A file that somebody else may put there."""
    packaged: str
    """One that an upgrade replaces."""
    unit: str
    program: str
    """As its processes are called."""
    binary: str
    start: str
    pid_file: str
    reload_by: str = "HUP"
    """The signal by which it reads its configuration again."""
    ends_when_broken: bool = False
    """Whether a reload with files that it refuses is its end."""
    broken: str = "this is no directive;"
    comment: str = "#"
    page: str = "/"
    files: Mapping[str, str] = field(default_factory=lambda: {"var/www/html/index.html": PAGE})
    before: str = "true"
    """What else has to run, begun first."""

    @property
    def restart(self) -> str:
        """Return the script that a package runs after an upgrade."""
        ends = f"pid=$(cat {self.pid_file}); kill $pid; while [ -d /proc/$pid ]; do sleep 0.02; done"
        return f"{ends}; {self.start}"

    def install(self, host: TestHost) -> None:
        """Start it; its page answers when this returns."""
        for path, content in self.files.items():
            (host.root / path).write_text(content)
        host.run(["rm", "-f", "/usr/sbin/policy-rc.d"])
        host.run(["sh", "-c", self.before])
        if host.has_systemd:
            host.run(["systemctl", "enable", "--quiet", "--now", self.unit])
        else:
            # Init scripts sleep for a second.
            (host.root / "etc/init.d" / self.unit).unlink()
            host.run(["sh", "-c", self.start])
        host.wait_until_it_answers(80)


NGINX = Tuned(
    spaces={"nginx": "nginx"},
    winner={"worker_connections": 2000, SETTING: 5000},
    trial={"worker_connections": 900, SETTING: 6000},
    folder="etc/nginx",
    written="/etc/nginx/nginx.conf",
    main="/etc/nginx/nginx.conf",
    own="/etc/nginx/conf.d/own.conf",
    packaged="/etc/nginx/mime.types",
    unit="nginx",
    program="nginx",
    binary="/usr/sbin/nginx",
    start="nginx",
    pid_file="/run/nginx.pid",
)
SERVERS: Mapping[str, Tuned] = {
    "nginx": NGINX,
    "sysctl": replace(
        NGINX,
        spaces={},
        winner={SETTING: 5000, "net.ipv4.tcp_notsent_lowat": 131072},
        trial={SETTING: 6000},
        written="/etc/sysctl.d/99-tuner.conf",
    ),
    "apache": Tuned(
        spaces={"apache": "apache-event"},
        winner={"KeepAliveTimeout": 3, SETTING: 5000},
        trial={"KeepAliveTimeout": 2, SETTING: 6000},
        folder="etc/apache2",
        written=f"/etc/apache2/conf-enabled/{DROP_IN}",
        main="/etc/apache2/apache2.conf",
        own="/etc/apache2/conf-enabled/own.conf",
        packaged="/etc/apache2/conf-available/charset.conf",
        unit="apache2",
        program="apache2",
        binary="/usr/sbin/apache2",
        start="apache2ctl start",
        pid_file="/run/apache2/apache2.pid",
        reload_by="USR1",
        ends_when_broken=True,
    ),
    "php-fpm": Tuned(
        spaces={"php-fpm": "php-fpm"},
        winner={"pm.max_children": 8, SETTING: 5000},
        trial={"pm.max_children": 6, SETTING: 6000},
        folder="etc/php",
        written=f"/etc/php/8.2/fpm/pool.d/{DROP_IN}",
        main="/etc/php/8.2/fpm/pool.d/www.conf",
        own="/etc/php/8.2/fpm/pool.d/own.conf",
        packaged="/etc/php/8.2/fpm/php.ini",
        unit="php8.2-fpm",
        program="php-fpm8.2",
        binary="/usr/sbin/php-fpm8.2",
        start="php-fpm8.2 --daemonize",
        pid_file="/run/php/php8.2-fpm.pid",
        reload_by="USR2",
        ends_when_broken=True,
        broken="this is no directive",
        comment=";",
        page="/page.php",
        files={
            "var/www/html/page.php": "<?php echo 'the page\n';\n",
            "etc/nginx/sites-available/default": (
                "server { listen 80 default_server; root /var/www/html; location ~ \\.php$ {"
                " include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php8.2-fpm.sock; } }\n"
            ),
        },
        before="mkdir -p /run/php; [ -d /run/systemd/system ] && systemctl enable -q --now nginx || nginx",
    ),
}

"""Servers accept what `tuner advise` proposes: the check of each real server reads the settings of a rule."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath

import pytest

from tests.integration.limits import NGINX, edit, serve
from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost
from tests.unit.advice.test_proposals import RULES, look, make_scopes
from tuner import plugins
from tuner.advice.findings import Finding
from tuner.advice.rules import known_settings
from tuner.advice.server_look import find_configured
from tuner.commands.advise import find_installation
from tuner.plugins import make_host
from tuner.ports import Installation, InstalledServer, Scalar
from tuner.space.parameters import identifier

LOOKS = 25
SITE = """
upstream app { server 127.0.0.1:81; %s }
%s
server { listen 8081; location / { proxy_pass http://app; } location /php { fastcgi_pass 127.0.0.1:9000; } }
"""
IN_HTTP = {
    "proxy_buffer_size": "proxy_buffer_size {}k;", "proxy_buffers": "proxy_buffers {} 4k;",
    "proxy_busy_buffers_size": "proxy_busy_buffers_size {}k;", "proxy_http_version": "proxy_http_version {};",
    "fastcgi_buffer_size": "fastcgi_buffer_size {}k;", "fastcgi_buffers": "fastcgi_buffers {} 4k;",
    "fastcgi_busy_buffers_size": "fastcgi_busy_buffers_size {}k;",
}  # fmt: skip
"""Settings of nginx that a user writes into the file, as a line of it."""
Settings = Mapping[str, Scalar]


def write_nginx(host: TestHost, settings: Settings, installation: Installation) -> None:
    """Write settings as a user does: those of a study by its adapter, the others by hand."""
    adapter = plugins.make_server("nginx")
    assert isinstance(adapter, InstalledServer)
    known = {name: value for name, value in settings.items() if name in {*installation.facts.current, LIMIT}}
    for path, content in adapter.rewrite(known, installation).items():
        (host.root / path.relative_to("/")).write_bytes(content)
    path = host.root / "etc/nginx/conf.d/site.conf"
    text = path.read_text()
    for name, line in IN_HTTP.items():
        if name in settings:
            text = re.sub(rf"^{name} .*\n", "", text, flags=re.MULTILINE)
            text = f"{line.format(settings[name])}\n{text}"
    if "keepalive" in settings:
        text = text.replace(
            "server 127.0.0.1:81;", f"server 127.0.0.1:81; keepalive {settings['keepalive']};"
        )
    path.write_text(text)


LIMIT = "worker_rlimit_nofile"


def append(file: str, form: str) -> Callable[[TestHost, Settings, Installation], None]:
    """Return what appends settings to a file of a host, of which the last counts."""

    def write(host: TestHost, settings: Settings, installation: Installation) -> None:
        (path,) = host.root.glob(file)
        names = {name: name.removeprefix("pool.") for name in settings if name in installation.facts.current}
        lines = [form.format(short, settings[name]) for name, short in names.items()]
        path.write_text(path.read_text() + "\n" + "".join(lines))

    return write


def write_haproxy(host: TestHost, settings: Settings, _: Installation) -> None:
    """Write settings of HAProxy into its section global, where a later line counts."""
    known = {name: value for name, value in settings.items() if name in {"maxconn", "nbthread"}}
    lines = "".join(f"\n\t{name} {value}" for name, value in known.items())
    edit(host, "etc/haproxy/haproxy.cfg", (r"^global", f"global{lines}"))


def prepare_nginx(host: TestHost, own: str = "") -> None:
    """Give nginx a site that passes requests on."""
    (host.root / "etc/nginx/conf.d/site.conf").write_text(SITE % ("", own))
    edit(host, NGINX, (r"gzip on;", "gzip on; gzip_comp_level 9;"))


def prepare_small_buffers(host: TestHost) -> None:
    """Give nginx a site with few buffers, and a size of busy ones."""
    sizes = "proxy_buffers 4 4k;\nproxy_busy_buffers_size 8k;\nfastcgi_buffers 4 4k;\n"
    prepare_nginx(host, f"{sizes}fastcgi_busy_buffers_size 8k;\nproxy_buffer_size 8k;\n")


def leave(_: TestHost) -> None:
    """Change nothing."""


PHP = "etc/php/*/fpm/pool.d/www.conf"
APACHE = append("etc/apache2/conf-available/charset.conf", "{} {}\n")
CASES = {
    "nginx": ("nginx", prepare_nginx, write_nginx, ["nginx", "-t"]),
    "nginx, small buffers": ("nginx", prepare_small_buffers, write_nginx, ["nginx", "-t"]),
    "apache": ("apache", leave, APACHE, ["apache2ctl", "-t"]),
    "apache-worker": ("apache-worker", leave, APACHE, ["apache2ctl", "-t"]),
    "apache-prefork": ("apache-prefork", leave, APACHE, ["apache2ctl", "-t"]),
    "php-fpm": ("php-fpm", leave, append(PHP, "{} = {}\n"), ["sh", "-c", "exec /usr/sbin/php-fpm[0-9]* -t"]),
    "haproxy": ("haproxy", leave, write_haproxy, ["haproxy", "-c", "-f", "/etc/haproxy/haproxy.cfg"]),
    "h2o": ("h2o", leave, append("etc/h2o/h2o.conf", "{}: {}\n"), ["h2o", "-t", "-c", "/etc/h2o/h2o.conf"]),
}


def find_proposals(
    server: str, file: str, installation: Installation
) -> dict[tuple[tuple[str, Scalar], ...], Finding]:
    """Return each set of settings that some finding proposes on this host, whatever else is read of it."""
    text = "\n".join(content.decode() for content in installation.files.values())
    own = {identifier(name): value for name, value in installation.facts.current.items()}
    known = {
        **own,
        **find_configured(RULES[file].file, text),
        "server": server,
        "workers": 2,
        "open_files_most": 65536,
    }
    current = installation.facts.current
    of_others = {identifier(name) for name in known_settings(tuple(RULES[file].file.servers))}
    found = {}
    for scope in islice(make_scopes(RULES[file], seed=3), LOOKS):
        read = {name: value for name, value in scope.items() if name not in of_others}
        for finding in look(file, {**read, **known}, current=current):
            settings = RULES[file].file.rules[finding.rule.partition(".")[2]].settings
            without = {each.name for each in finding.proposals if each.value is None}
            assert {name for name in without if settings[name].value is not None} == set(), finding.rule
            proposed = {each.name: each.value for each in finding.proposals if each.value is not None}
            found[tuple(proposed.items())] = finding
    return found


def run_check(host: TestHost, argv: Sequence[str]) -> str:
    """Return what the check of a server complains about; empty where it accepts its files."""
    done = host.run(["sh", "-c", '"$@" 2>&1; echo "status $?"', "check", *argv]).stdout.decode()
    complaints = re.findall(r"^.*(?:emerg|ALERT|ERROR|exceeds|AH00\d+: WARNING).*$", done, re.MULTILINE)
    return "" if done.endswith("status 0\n") and not complaints else done


@pytest.mark.parametrize("case", CASES)
def test_a_server_accepts_all_settings_that_a_finding_proposes(own_bed: Testbed, case: str):
    server, prepare, write, check = CASES[case]
    file = "apache" if server.startswith("apache") else server
    host = own_bed.add_host("web")
    prepare(host)
    serve(host, server)
    unread: list[str] = []
    command = f"haproxy -f {PurePosixPath('/etc/haproxy/haproxy.cfg')}" if server == "haproxy" else ""
    command = "nginx: master process /usr/sbin/nginx" if server == "nginx" else command
    name, found = find_installation(make_host(host.ssh_url), RULES[file].file, unread, command)
    before = {path: (host.root / path.relative_to("/")).read_bytes() for path in found.files}

    proposed = find_proposals(name, file, found)
    refused = {}
    for settings, finding in proposed.items():
        write(host, dict(settings), found)
        if said := run_check(host, check):
            refused[finding.rule] = (settings, said[-400:])
        for path, content in before.items():
            (host.root / path.relative_to("/")).write_bytes(content)

    assert run_check(host, check) == ""
    assert (name, unread) == (server, [])
    assert len(proposed) > 1
    assert refused == {}

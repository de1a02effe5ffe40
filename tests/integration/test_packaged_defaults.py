"""The default of a space is the server as the distribution ships it: same directives, modules and answers."""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

from tuner.adapters.hosts.local import LocalHost
from tuner.adapters.servers.apache import Apache, ApachePrefork, ApacheWorker
from tuner.adapters.servers.nginx import Nginx
from tuner.ports import Config, Facts, FileState, Sandbox, Server, Site
from tuner.space import SpaceFacts, load_space

PAGE = b"<!DOCTYPE html><title>packaged</title>\n" + b"<p>The same page for both.\n" * 200
PORT = 80
REQUESTS = (
    "/index.html",
    "/index.html -H 'Accept-Encoding: gzip'",
    "/index.html -H 'Connection: close'",
    "/index.html --http1.0",
    "/index.html --head",
    "/index.html --range 10-19",
    "/",
    "/missing.html",
    "/.htaccess",
    "/index.html -X POST",
)
# The packaged configuration runs with its own paths, on memory that only this sandbox sees.
PRIVATE = """
set -e
mount -t tmpfs none /run && mkdir /run/lock
mount -t tmpfs none /var/log && mkdir /var/log/nginx /var/log/apache2
mount -t tmpfs none /var/lib/nginx
mount -t tmpfs none /var/www && mkdir /var/www/html && cp -p {page} /var/www/html/index.html
set +e
"""
APACHES = {"event": Apache(), "worker": ApacheWorker(), "prefork": ApachePrefork()}
# Set by the program itself where the package says nothing: server/core.c, server/mpm_common.c,
# include/mpm_common.h (2.4.x).
APACHE_BUILT_IN = {
    "listenbacklog": ["511"],
    "maxmemfree": ["2048"],
    "sendbuffersize": ["0"],
    "readbuffersize": ["8192"],
    "flushmaxthreshold": ["65535"],
    "flushmaxpipelined": ["4"],
    "enablesendfile": ["Off"],
    "enablemmap": ["On"],
    "bufferedlogs": ["Off"],
    "acceptfilter": ["http data"],
}
# Of each MPM the file mpm_default.h.
MPM_BUILT_IN = {
    "event": {"serverlimit": ["16"], "threadstacksize": ["0"], "asyncrequestworkerfactor": ["2"]},
    "worker": {"serverlimit": ["16"], "threadstacksize": ["0"]},
    "prefork": {"serverlimit": ["256"]},
}
# src/core/nginx.c, src/event/ngx_event.c, src/http/ngx_http_core_module.c, src/http/modules (1.22.1).
# 1024 open files are systemd's.
NGINX_BUILT_IN = {
    "worker_rlimit_nofile": ["1024"],
    "timer_resolution": ["0ms"],
    "multi_accept": ["off"],
    "accept_mutex": ["off"],
    "epoll_events": ["512"],
    "sendfile_max_chunk": ["2048k"],
    "tcp_nodelay": ["on"],
    "aio": ["off"],
    "postpone_output": ["1460"],
    "open_file_cache": ["off"],
    "keepalive_requests": ["1000"],
    "connection_pool_size": ["512"],
    "request_pool_size": ["4096"],
    "client_header_buffer_size": ["1024"],
    "reset_timedout_connection": ["off"],
    "keepalive_timeout": ["75s"],
    "send_timeout": ["60s"],
    "client_header_timeout": ["60s"],
    "lingering_close": ["on"],
    "etag": ["on"],
    "server_tokens": ["on"],
    "gzip_comp_level": ["1"],
    "gzip_min_length": ["20"],
    "gzip_buffers": ["32 4k"],
    "gzip_static": ["off"],
}

Directives = Mapping[str, list[str]]


def default_config(server: Server, space_name: str) -> Config:
    names = {
        "cores": os.cpu_count() or 1,
        "memory_mib": 4096,
        "connections": 100,
        "open_files_max": 20000,
        "somaxconn": 4096,
    }
    space = load_space([space_name], facts=SpaceFacts(names=names), base=Path())
    return space.for_server(space.default(), server.name)


def rendered(server: Server, space_name: str) -> str:
    site = Site(directory=PurePosixPath("/own"), document_root=PurePosixPath("/var/www/html"), port=PORT)
    (content,) = server.render(default_config(server, space_name), site, Facts()).values()
    return content.decode()


def packaged_apache(mpm: str = "event") -> str:
    """Read what is installed, with the packaged lines of an MPM."""
    files = [Path("/etc/apache2/apache2.conf"), Path("/etc/apache2/ports.conf")]
    for folder in ("mods-enabled", "conf-enabled", "sites-enabled"):
        found = sorted(Path("/etc/apache2", folder).glob("*"))
        files += [path for path in found if not path.name.startswith("mpm_")]
    files.append(Path(f"/etc/apache2/mods-available/mpm_{mpm}.conf"))
    text = "\n".join(file.read_text() for file in files)
    # mod_alias is there, but what its section holds asks for mod_cgi.
    absent = "ssl_module|mod_gnutls.c|mod_include.c|mod_proxy.c|mod_alias.c"
    return re.sub(rf"(?ms)^\s*<IfModule (?:{absent})>.*?^</IfModule>", "", text)


def apache_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            yield " ".join(line.split())


def apache_directives(text: str) -> Directives:
    """Sort what stands outside of sections by lower-case name."""
    found: dict[str, list[str]] = defaultdict(list)
    depth = 0
    for line in apache_lines(text):
        name, _, value = line.partition(" ")
        transparent = name in {"<IfModule", "</IfModule>", "<VirtualHost", "</VirtualHost>"}
        depth += 0 if transparent else line.startswith("<") - 2 * line.startswith("</")
        if depth == 0 and not line.startswith("<"):
            found[name.lower()].append(value.replace('"/', "/").removesuffix('"'))
    return found


def apache_sections(text: str) -> Directives:
    """Sort what stands in sections by the section."""
    found: dict[str, list[str]] = defaultdict(list)
    section = ""
    for line in apache_lines(text):
        if line.startswith(("<IfModule", "</IfModule", "<VirtualHost", "</VirtualHost")):
            continue
        if line.startswith("<"):
            section = "" if line.startswith("</") else line.replace('"', "").rstrip("/>")
        elif section:
            found[section].append(line)
    return found


def nginx_directives(text: str) -> Directives:
    found: dict[str, list[str]] = defaultdict(list)
    for statement in re.split(r"[;{}]", re.sub(r"(?m)#.*$", "", text)):
        name, _, value = " ".join(statement.split()).partition(" ")
        if name:
            found[name].append(value)
    return found


@pytest.mark.parametrize("mpm", APACHES)
def test_what_apache_ships_is_in_the_default(mpm: str):
    packaged = apache_directives(packaged_apache(mpm))
    own = apache_directives(rendered(APACHES[mpm], f"apache-{mpm}"))
    # Paths and names of the instance; tables that only directory listings and languages read.
    elsewhere = {
        "user", "group", "pidfile", "defaultruntimedir", "errorlog", "customlog", "include",
        "includeoptional", "loadmodule", "addicon", "addiconbytype", "addiconbyencoding", "defaulticon",
        "readmename", "headername", "addlanguage", "removetype", "addcharset", "logformat",
    }  # fmt: skip

    assert {name: values for name, values in packaged.items() if name not in elsewhere} == {
        name: own.get(name, []) for name in packaged if name not in elsewhere
    }


def test_sections_that_apache_passes_for_each_request_are_those_that_it_ships():
    packaged = apache_sections(packaged_apache())
    own = apache_sections(rendered(Apache(), "apache-event"))

    assert own == {name.replace("/var/www", "/var/www/html"): lines for name, lines in packaged.items()}


def test_requests_are_logged_as_apache_ships_it():
    packaged, own = (
        apache_directives(packaged_apache()),
        apache_directives(rendered(Apache(), "apache-event")),
    )

    assert set(own["logformat"]) <= set(packaged["logformat"])
    logs = {
        name: sorted(Path(line).name.replace('"', "") for line in lines["customlog"])
        for name, lines in (("own", own), ("packaged", packaged))
    }
    assert logs["own"] == logs["packaged"]


@pytest.mark.parametrize("mpm", APACHES)
def test_what_apache_ships_no_line_for_is_at_the_programs_own_default(mpm: str):
    packaged = apache_directives(packaged_apache(mpm))
    own = apache_directives(rendered(APACHES[mpm], f"apache-{mpm}"))
    only_own = {name: values for name, values in own.items() if name not in packaged}

    built_in = {**APACHE_BUILT_IN, **MPM_BUILT_IN[mpm]}
    assert only_own == {**built_in, "serverroot": ["/own"], "servername": ["localhost"]}


def test_what_nginx_ships_is_in_the_default():
    files = (Path("/etc/nginx/nginx.conf"), Path("/etc/nginx/sites-enabled/default"))
    packaged = nginx_directives("\n".join(file.read_text() for file in files))
    own = nginx_directives(rendered(Nginx(), "nginx"))
    elsewhere = {
        "pid", "error_log", "access_log", "include", "listen", "ssl_protocols", "ssl_prefer_server_ciphers",
    }  # fmt: skip

    assert {name: values for name, values in packaged.items() if name not in elsewhere} == {
        name: own.get(name, []) for name in packaged if name not in elsewhere
    }
    paths = {"daemon", "lock_file", *(name for name in own if name.endswith("_temp_path"))}
    assert {name: own[name] for name in own if name not in {*packaged, *paths}} == NGINX_BUILT_IN


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with LocalHost().sandbox() as opened:
        opened.write(opened.directory / "www" / "index.html", FileState(content=PAGE, mode=0o644))
        # ETag and Last-Modified are made of it.
        opened.run(("touch", "-d", "2026-01-01", str(opened.directory / "www" / "index.html")), timeout_s=5)
        yield opened


def ask_all(*, before: str, after: str) -> str:
    """Write a script that starts a server, asks for everything, and stops it again."""
    curl = "curl -sS -D - --retry 50 --retry-delay 0 --retry-connrefused --max-time 10 http://127.0.0.1"
    return "\n".join(
        [before, *(f"echo; echo '== {shlex.quote(ask)[1:-1]}'; {curl}{ask}" for ask in REQUESTS), after]
    )


def run_script(sandbox: Sandbox, script: str) -> list[str]:
    # From outside: a program that the sandbox runs itself may not mount.
    enter = ("nsenter", f"--target={sandbox.pid}", "--net", "--pid", "--ipc", "--mount", "--")
    command = (*enter, "unshare", "--mount", "--propagation", "private", "sh", "-c", script)
    printed = LocalHost().run(command, timeout_s=30).stdout.decode(errors="replace")
    return [line for line in printed.splitlines() if not line.startswith("Date:")]


def answers_of_packaged(sandbox: Sandbox, *, start: str, stop: str) -> list[str]:
    private = PRIVATE.format(page=sandbox.directory / "www" / "index.html")
    return run_script(sandbox, private + ask_all(before=start, after=stop))


def answers_of_default(sandbox: Sandbox, server: Server, space_name: str) -> list[str]:
    site = Site(directory=sandbox.directory / "own", document_root=sandbox.directory / "www", port=PORT)
    facts, config = server.detect(sandbox), default_config(server, space_name)
    for path, content in server.render(config, site, facts).items():
        sandbox.write(path, FileState(content=content))
    process = sandbox.start(server.start(site, facts) or (), open_files=server.needs(config).open_files)
    answers = run_script(sandbox, ask_all(before="", after=""))
    process.stop(timeout_s=10)
    return answers


def test_the_default_answers_byte_for_byte_as_the_packaged_nginx(sandbox):
    packaged = answers_of_packaged(sandbox, start="nginx 2>/dev/null", stop="nginx -s stop 2>/dev/null")

    assert answers_of_default(sandbox, Nginx(), "nginx") == packaged
    assert len([line for line in packaged if line.startswith("HTTP/1")]) >= len(REQUESTS)


def test_the_default_answers_byte_for_byte_as_the_packaged_apache(sandbox):
    packaged = answers_of_packaged(sandbox, start="apachectl start 2>/dev/null", stop="apachectl stop")

    assert answers_of_default(sandbox, Apache(), "apache-event") == packaged
    assert len([line for line in packaged if line.startswith("HTTP/1")]) >= len(REQUESTS)


def test_the_default_loads_the_modules_that_the_packaged_apache_loads(sandbox):
    server, site = (
        Apache(),
        Site(directory=sandbox.directory / "own", document_root=sandbox.directory / "www"),
    )
    facts = server.detect(sandbox)
    for path, content in server.render(default_config(server, "apache-event"), site, facts).items():
        sandbox.write(path, FileState(content=content))

    own = run_script(sandbox, f"apache2 -M -f {site.directory / 'apache2.conf'}")
    packaged = run_script(sandbox, PRIVATE.format(page=site.document_root / "index.html") + "apachectl -M")

    assert sorted(own) == sorted(packaged)
    assert " status_module (shared)" in own

"""Installed configurations of nginx: as distributions lay them out, and as people write them."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tuner.adapters.servers.nginx import Nginx
from tuner.ports import Argv, Completed, Files, FileState, Installation
from tuner.testing.fakes import MemoryHost, completed

ROOT = PurePosixPath("/etc/nginx")
MAIN = ROOT / "nginx.conf"
PID_FILE = PurePosixPath("/run/nginx.pid")
ACCESS_LOG = "/var/log/nginx/access.log"
FOLDER = Path(__file__).parent / "installed"
CPUS = PurePosixPath("/sys/devices/system/cpu/online")
# Of those that distributions build it with, the ones that have settings.
MODULES = "--with-threads --with-http_ssl_module --with-http_v2_module --with-http_gzip_static_module"
VERSIONS = {"ubuntu-22.04": "1.18.0", "rhel-9": "1.20.1"}


def read_layout(folder: Path) -> Files:
    """Read the files of one distribution, the main one first."""
    found = {
        PurePosixPath("/") / path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {MAIN: found.pop(MAIN), **found}


TABS_AND_CRLF = b"""\
worker_processes\t\t2 ;\t# not "auto"; {\r
events\t{\r
\t\tmulti_accept\ton;\r
}\r
http\t{\r
\r
\taccess_log\toff;\r
\tserver\t{\r
\t\tlisten\t80\tbacklog=1024;\r
\t}\r
}\r
"""

ONE_LINE = b"events{}http{server{listen 80;}}"

BY_HAND = {
    MAIN: b"""\
# } a brace { in a comment; and "a quote
include machine.conf;
events { worker_connections 0004096; }
http {
    log_format odd '{"who": "$remote_addr;", "what": "it\\'s }"}';  # {"
    map $uri $sendfile { sendfile on; default off; "~^/a;{2}" off; }
    include conf.d/*.conf;
    access_log
        "/var/log/nginx/odd.log"   # where
        odd                        # how
        buffer=32k
        if=$sendfile
    ;
    keepalive_timeout 1m 30s;
    open_file_cache inactive=1m max=500;
    output_buffers 4 1m;
    server { listen 127.0.0.1:8081; server_name status; keepalive_timeout 0; }
    server {
        server_name "${sendfile}x" other\\;name;
        listen *:8080 default_server;
        listen [::]:8080 default_server ipv6only=on;
        keepalive_timeout 2m; # the site's own
        if ($sendfile) { set $etag 1; }
        location / { sendfile on; return 200 "}"; }
    }
    # the end }
}""",
    ROOT / "conf.d/a.conf": b"sendfile 'off' ;\n",
    ROOT / "conf.d/b.conf": b"server_tokens off;\ttcp_nopush on;",
    ROOT / "machine.conf": b"worker_processes 3;\nworker_rlimit_nofile 20000;\n",
}

LAYOUTS: Mapping[str, Files] = {
    **{folder.name: read_layout(folder) for folder in sorted(FOLDER.iterdir())},
    "tabs-and-crlf": {MAIN: TABS_AND_CRLF},
    "one-line": {MAIN: ONE_LINE},
    "by-hand": BY_HAND,
}


def make_host(
    files: Files,
    version: str = "1.22.1",
    *,
    answers: Mapping[str, int] | None = None,
    logs: str = f"--http-log-path={ACCESS_LOG} --error-log-path=/var/log/nginx/error.log",
) -> MemoryHost:
    """Make a host on which nginx is installed with these files; `answers` are exit codes of `test`."""

    def run_nginx(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        if argv[1] == "-V":
            paths = "--conf-path=/etc/nginx/nginx.conf --pid-path=/run/nginx.pid"
            built = f"nginx version: nginx/{version}\nconfigure arguments: --prefix=/usr/share/nginx {paths}"
            return completed(argv, stderr=f"{built} {logs} {MODULES}".encode())
        dumped = b"".join(b"# configuration file %s:\n%s\n" % (bytes(path), files[path]) for path in files)
        return completed(argv, stdout=dumped)

    def run_test(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv, returncode=(answers or {}).get(argv[-1], 1))

    def say_nothing(_host: MemoryHost, argv: Argv, _stdin: bytes) -> Completed:
        return completed(argv)

    states = {path: FileState(content=content, mode=0o644) for path, content in files.items()}
    return MemoryHost(
        files={**states, CPUS: FileState(content=b"0-1\n")},
        commands={"nginx": run_nginx, "test": run_test, "sh": say_nothing, "stat": say_nothing},
    )


def find(name: str, files: Files | None = None) -> Installation:
    """Find the installation of one layout, with other files if there are."""
    return Nginx().find(make_host(LAYOUTS[name] if files is None else files, VERSIONS.get(name, "1.22.1")))

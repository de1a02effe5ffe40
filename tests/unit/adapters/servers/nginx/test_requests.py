"""Which settings of an installed nginx act on the requests of a load, and where they are changed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.nginx.layouts import MAIN, ROOT, make_host
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.nginx.layout import Layout
from tuner.adapters.servers.nginx.tree import join_files
from tuner.errors import ConfigRejected
from tuner.ports import Files, FileState, Installation, SentRequest
from tuner.testing.fakes import completed

PAGES = ("/var/www/html/index.html", "/var/www/html/app.php", "/var/www/html/docs/index.html")


def files_of(http: str, **more: str) -> Files:
    text = f"events {{ }}\nhttp {{\n{http}\n}}\n"
    return {MAIN: text.encode(), **{ROOT / "conf.d" / name: each.encode() for name, each in more.items()}}


def send(url: str, *addresses: str) -> SentRequest:
    """Return the request for a URL, as the client of the load sends it."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    host, _, port = authority.partition(":")
    usual = 443 if scheme == "https" else 80
    return SentRequest(
        scheme=scheme, addresses=addresses or ("127.0.0.1",), port=int(port or usual), host=host,
        server_name=host if scheme == "https" else "", path=f"/{path}",
    )  # fmt: skip


def aim(files: Files, *requests: SentRequest) -> Installation:
    """Find an installation and aim it at requests."""
    host = make_host(files)
    folders = {str(folder) for page in PAGES for folder in PurePosixPath(page).parents}

    def stat(_host: object, argv: tuple[str, ...], _stdin: bytes) -> object:
        kind = "directory" if argv[-1] in folders else "regular file" if argv[-1] in PAGES else ""
        return completed(argv, stdout=kind.encode(), returncode=0 if kind else 1)

    host.commands |= {"env": stat, "getent": resolve}
    host.files |= {path: FileState(content=content, mode=0o644) for path, content in files.items()}
    return Nginx().aim(host, Nginx().find(host), requests)


def resolve(_host: object, argv: tuple[str, ...], _stdin: bytes) -> object:
    """Resolve names in `.test` alone, each to the first address of this machine."""
    known = argv[-1].endswith(".test")
    return completed(argv, stdout=b"127.0.0.1  STREAM x\n127.0.0.1  DGRAM\n" if known else b"")


def changed(installation: Installation, **values: object) -> dict[str, str]:
    """Rewrite, and return the lines that are new, by file name."""
    files = Nginx().rewrite(values, installation)
    return {
        path.name: "\n".join(
            set(content.decode().splitlines()) - set(installation.files[path].decode().splitlines())
        )
        for path, content in files.items()
    }


TLS = """\
server { listen 80 default_server; return 301 https://$host$request_uri; }
server { listen 443 ssl http2; server_name shop.example; root /var/www/html; sendfile off;
  keepalive_requests 7; gzip off; }"""
BY_NAME = """\
server { listen 80 default_server; root /var/www/html; }
server { listen 80; server_name shop.example;
  keepalive_requests 7; root /var/www/html; }"""
BY_ADDRESS = """\
server { listen 10.9.9.9:80 default_server; return 444; keepalive_requests 7; }
server { listen 80; root /var/www/html;
  keepalive_requests 55; }"""
SILENT = """\
server { server_name a.example; keepalive_requests 7; root /var/www/html; }
server { listen 8080; keepalive_requests 8; root /var/www/html; }"""
LOCATION = """\
keepalive_requests 1;
server { listen 80; root /var/www/html; keepalive_requests 2;
  location / { keepalive_requests 3; }
  location ~ \\.php$ { keepalive_requests 4; fastcgi_pass unix:/run/php.sock; }
  location /docs/ { try_files $uri @app; }
  location @app { keepalive_requests 5; return 200 app; } }"""


@pytest.mark.parametrize(
    ("http", "request_", "value"),
    [
        (TLS, send("https://shop.example/"), 7),
        (TLS, send("http://shop.example/"), 1000),
        (BY_NAME, send("http://shop.example/"), 7),
        (BY_NAME, send("http://SHOP.example./"), 7),
        (BY_NAME, send("http://127.0.0.1/"), 1000),
        (BY_ADDRESS, send("http://127.0.0.1/"), 55),
        (BY_ADDRESS, send("http://10.9.9.9/", "10.9.9.9"), 7),
        (SILENT, send("http://127.0.0.1/"), 7),
        (SILENT, send("http://127.0.0.1:8000/"), 7),
        (SILENT, send("http://127.0.0.1:8080/"), 8),
        # What nginx does not listen at comes from another server, or from an address that is translated.
        (SILENT, send("http://a.example:8443/", "192.0.2.7"), 7),
        (LOCATION, send("http://127.0.0.1/index.html"), 3),
        (LOCATION, send("http://127.0.0.1/app.php"), 4),
        (LOCATION, send("http://127.0.0.1/docs/page"), 5),
        (LOCATION, send("http://127.0.0.1/docs/index.html"), 2),
    ],
)
def test_the_value_is_that_of_the_server_and_the_location_that_answer(http, request_, value):
    assert aim(files_of(http), request_).facts.current["keepalive_requests"] == value


def test_a_value_is_changed_where_it_acts():
    installation = aim(files_of(TLS), send("https://shop.example/"))

    assert changed(installation, keepalive_requests=900) == {
        "nginx.conf": "  keepalive_requests 900; gzip off; }"
    }
    assert installation.port == 443


def test_what_a_location_gives_is_changed_there():
    files = files_of(
        "server { listen 80; root /var/www/html; include conf.d/site; }", site="location / {\ngzip on;\n}\n"
    )

    assert changed(aim(files, send("http://127.0.0.1/index.html")), gzip=False) == {"site": "gzip off;"}


def test_an_index_leads_to_another_location():
    http = LOCATION.replace("root /var", "index none.html app.php; root /var")
    installation = aim(files_of(http), send("http://127.0.0.1/"))

    assert installation.facts.current["keepalive_requests"] == 4
    assert installation.passes_to == ("unix:/run/php.sock",)


OF_A_CONDITION = """\
server { listen 80; root /var/www/html;
  location / { if ($http_cookie ~ user) { sendfile on; } } }"""


def test_what_a_condition_overrides_is_left_out_with_its_place():
    installation = aim(files_of(OF_A_CONDITION), send("http://127.0.0.1/index.html"))

    assert installation.facts.withheld["sendfile"].startswith(f"{MAIN}:4 sets this only for some req")
    with pytest.raises(ConfigRejected, match=r"tuner does not change sendfile here: .*nginx\.conf:4"):
        Nginx().rewrite({"sendfile": True}, installation)


OF_A_VARIABLE = """\
map $http_x $where { default /a; x /b; }
server { listen 80; root /var/www/html; location / { keepalive_requests 3; rewrite ^ $where last; }
  location /a { keepalive_requests 4; return 200 a; } location /b { sendfile on; return 200 b; } }"""


def test_where_a_variable_leads_may_be_any_location():
    installation = aim(files_of(OF_A_VARIABLE), send("http://127.0.0.1/index.html"))

    assert "a certain value" in installation.facts.withheld["keepalive_requests"]
    assert f"{MAIN}:5" in installation.facts.withheld["sendfile"]
    assert installation.facts.current["keepalive_timeout"] == 75


@pytest.mark.parametrize(("name", "kept"), [("shop.test", 7), ("elsewhere.example", 55)])
def test_a_host_name_in_a_listen_is_an_address(name: str, kept: int):
    http = (
        "server { listen 80; root /var/www/html; keepalive_requests 55; }\n"
        f"server {{ listen {name}:80; root /var/www/html; keepalive_requests 7; }}"
    )
    installation = aim(files_of(http), send("http://127.0.0.1/index.html"))

    assert installation.facts.current["keepalive_requests"] == kept


def test_a_mix_leaves_out_what_its_requests_do_not_share():
    installation = aim(
        files_of(LOCATION), send("http://127.0.0.1/index.html"), send("http://127.0.0.1/app.php")
    )

    assert "keepalive_requests" not in installation.facts.current
    assert installation.facts.withheld["keepalive_requests"].startswith(f"{MAIN}:")
    assert installation.facts.current["sendfile"] is False


def test_settings_of_connections_are_those_of_the_default_server():
    http = """\
server { listen 80 default_server; client_header_buffer_size 2k; connection_pool_size 1024; }
server { listen 80; server_name a.example; client_header_buffer_size 4k; root /var/www/html; }
server { listen 443 ssl; ssl_session_timeout 1m; ssl_buffer_size 4k; }
server { listen 443 ssl; server_name a.example; ssl_session_timeout 2m; ssl_buffer_size 8k; }"""
    plain = aim(files_of(http), send("http://a.example/")).facts.current
    encrypted = aim(files_of(http), send("https://a.example/")).facts.current

    assert (plain["client_header_buffer_size"], plain["connection_pool_size"]) == (2048, 1024)
    assert (encrypted["ssl_session_timeout"], encrypted["ssl_buffer_size"]) == (60, 8192)


WITHHELD: Mapping[str, tuple[str, str]] = {
    "masks": ("worker_processes 2;\nworker_cpu_affinity 01 10;", "worker_processes"),
    "the masks": ("worker_processes 2;\nworker_cpu_affinity 01 10;", "worker_cpu_affinity"),
    "a mask": ("\nworker_cpu_affinity 0101;", "worker_processes"),
}


@pytest.mark.parametrize("name", WITHHELD)
def test_numbers_of_workers_that_masks_are_for_are_left_out_with_them(name):
    text, parameter = WITHHELD[name]
    files = {MAIN: f"{text}\nevents {{ }}\nhttp {{ server {{ listen 80; }} }}\n".encode()}
    withheld = Nginx().find(make_host(files)).facts.withheld

    assert withheld[parameter].startswith(f"{MAIN}:2 ")


def test_masks_that_any_number_of_workers_shares_leave_it_free():
    files = {MAIN: b"worker_cpu_affinity auto 0101;\nevents { }\nhttp { server { listen 80; } }\n"}

    assert "worker_processes" not in Nginx().find(make_host(files)).facts.withheld


class CountedFiles(dict[PurePosixPath, bytes]):
    """Files that count how often each is read."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self.reads: Counter[PurePosixPath] = Counter()

    def __getitem__(self, path: PurePosixPath) -> bytes:
        self.reads[path] += 1
        return super().__getitem__(path)


def test_of_many_sites_each_file_is_read_once_and_a_rewrite_reads_only_what_it_changes():
    sites = {
        f"s{number}.conf": f"server {{ listen 80; server_name s{number}.test; include conf.d/*.inc;\n"
        "include conf.d/common.inc; }\n"
        for number in range(60)
    }
    files = files_of("include conf.d/*.conf;", **sites, **{"common.inc": "etag off;\n"})
    installation = Nginx().find(make_host(files))
    counted = CountedFiles(installation.files)

    layout = Layout(join_files(MAIN, counted), counted, {})
    read = dict(counted.reads)
    Nginx().rewrite({"sendfile": True}, replace(installation, files=counted, layout=layout))

    assert read == dict.fromkeys(files, 1)
    assert counted.reads == Counter({**read, MAIN: read[MAIN] + 2})

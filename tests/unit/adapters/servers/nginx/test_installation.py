"""The installed nginx: what is found in its files, and which words of them change."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from tests.unit.adapters.servers.nginx.layouts import LAYOUTS, MAIN, PID_FILE, ROOT, find, make_host
from tuner.adapters.servers.nginx import Nginx
from tuner.adapters.servers.nginx.rewrite import PARAMETERS
from tuner.errors import ConfigRejected, TargetError
from tuner.ports import Config, Files, Scalar
from tuner.space import describe_space
from tuner.testing.fakes import completed

SITE = ROOT / "sites-enabled" / "default"


def find_in(text: str, **more: str) -> Mapping[str, Scalar]:
    """Find what a main file, and files of conf.d, set."""
    return find("debian-12", files_of(text, **more)).facts.current


def files_of(text: str, **more: str) -> Files:
    return {MAIN: text.encode(), **{ROOT / "conf.d" / name: each.encode() for name, each in more.items()}}


def change(text: str, **values: Scalar) -> str:
    """Rewrite a main file."""
    installation = find("debian-12", files_of(text))
    return Nginx().rewrite(values, installation).get(MAIN, text.encode()).decode()


def serve(text: str = "", listen: str = "80") -> str:
    return f"events {{ }}\nhttp {{ {text} server {{ listen {listen}; }} }}\n"


def test_every_setting_of_the_space_can_be_changed_in_an_installed_nginx():
    entries = {entry["name"]: entry["scope"] for entry in describe_space("nginx") if not entry["internal"]}

    assert entries.keys() >= PARAMETERS
    # What follows from such a setting has no scope of its own.
    assert {entries[name] for name in entries.keys() - PARAMETERS} == {"private", ""}
    # How many open files it may have is said by who starts it, unless its own files say so.
    assert set(find("debian-12").facts.current) == PARAMETERS - {"worker_rlimit_nofile"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("debian-12", {"worker_connections": 768, "keepalive_timeout": 75, "sendfile_max_chunk": 2048}),
        ("ubuntu-22.04", {"worker_connections": 768, "keepalive_timeout": 65, "keepalive_requests": 100}),
        ("rhel-9", {"worker_connections": 1024, "keepalive_timeout": 65, "sendfile_max_chunk": 0}),
        ("tabs-and-crlf", {"worker_processes": 2, "access_log": "off", "listen_backlog": 1024}),
        ("one-line", {"worker_processes": 1, "worker_connections": 512, "sendfile": False}),
        (
            "by-hand",
            {
                "worker_processes": 3, "worker_connections": 4096, "worker_rlimit_nofile": 20000,
                "sendfile": False, "tcp_nopush": True, "server_tokens": False, "access_log_buffer": 32,
                "open_file_cache": 500, "output_buffers_size": 1024, "keepalive_timeout": 120,
            },
        ),
    ],
)  # fmt: skip
def test_values_in_force_are_those_of_the_tested_server_else_the_programs_own(name, expected):
    current = find(name).facts.current

    assert expected.items() <= current.items()


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_port_the_pid_file_and_the_log_are_found(name):
    found = find(name)

    assert found.port == (8080 if name == "by-hand" else 80)
    assert found.service.pid_file == PID_FILE
    assert found.log == PurePosixPath("/var/log/nginx/error.log")


SYSTEMD, SCRIPT = {"/run/systemd/system": 0}, {"/etc/init.d/nginx": 0}
UNIT = {"/usr/lib/systemd/system/nginx.service": 0}


@pytest.mark.parametrize(
    ("answers", "start", "stop"),
    [
        (SYSTEMD | UNIT | SCRIPT, "systemctl start nginx", "systemctl stop nginx"),
        (SYSTEMD | SCRIPT, "setsid --wait /etc/init.d/nginx start", "service nginx stop"),
        (UNIT | SCRIPT, "setsid --wait /etc/init.d/nginx start", "service nginx stop"),
        (SYSTEMD, "setsid --wait nginx -c /etc/nginx/nginx.conf", "sh -c"),
    ],
)
def test_the_service_is_started_by_what_runs_on_the_host(answers, start, stop):
    service = Nginx().find(make_host(LAYOUTS["debian-12"], answers=answers)).service

    assert " ".join(service.start) == start
    assert " ".join(service.stop).startswith(stop)
    assert service.check == ("nginx", "-t", "-c", "/etc/nginx/nginx.conf")
    assert service.is_systemd == start.startswith("systemctl")


def test_who_may_not_dump_the_configuration_follows_the_includes():
    host = make_host(LAYOUTS["by-hand"])
    nginx = host.commands["nginx"]
    listed = b"".join(
        b"/etc/nginx/conf.d/%s\0" % name for name in (b"b.conf", b"a.conf", b".c.conf", b"d.bak")
    )
    host.commands["nginx"] = lambda host, argv, stdin: (
        completed(argv, returncode=1, stderr=b"sudo: a password is required")
        if argv[1] == "-T"
        else nginx(host, argv, stdin)
    )
    host.commands["find"] = lambda _host, argv, _stdin: completed(argv, stdout=listed)

    found = Nginx().find(host)

    assert found.files == LAYOUTS["by-hand"]
    assert found.facts.current == find("by-hand").facts.current


@pytest.mark.parametrize(
    ("running", "read"),
    [
        (b"7 nginx: master process nginx -c /srv/own.conf\n", "/srv/own.conf"),
        (b"7 nginx: master process nginx -g daemon off;\n", "/etc/nginx/nginx.conf"),
        (b"7 nginx: master process nginx -c /a\n8 nginx: master process nginx\n", "/etc/nginx/nginx.conf"),
    ],
)
def test_what_the_running_nginx_was_told_to_read_is_read(running: bytes, read: str):
    host = make_host({PurePosixPath(read): LAYOUTS["debian-12"][MAIN]})
    host.commands["sh"] = lambda _host, argv, _stdin: completed(argv, stdout=running)

    assert Nginx().find(host).service.check == ("nginx", "-t", "-c", read)


def test_a_configuration_that_nginx_refuses_is_refused_with_its_words():
    host = make_host(LAYOUTS["debian-12"])
    nginx = host.commands["nginx"]
    said = b'nginx: [emerg] unknown directive "\xef\xbb\xbfuser" in /etc/nginx/nginx.conf:1\n'
    host.commands["nginx"] = lambda host, argv, stdin: (
        completed(argv, returncode=1, stderr=said) if argv[1] == "-T" else nginx(host, argv, stdin)
    )

    with pytest.raises(TargetError, match=r"nginx\.conf:1"):
        Nginx().find(host)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "events { }\n",
            r"nginx\.conf has no http block, so this nginx serves no pages that tuner could tune\. Add such",
        ),
        ("http { }\n", "no events block"),
        ("events { }\nhttp { server {\n", r"nginx\.conf:3"),
        ("events { }\nhttp { log_format a 'b; }\n", r"nginx\.conf:2"),
        ("events { } }\nhttp { }\n", r"nginx\.conf:1"),
        ("events { }\nhttp { include nginx.conf; }\n", "includes itself"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text, message):
    with pytest.raises(TargetError, match=message):
        find_in(text)


def test_lua_is_passed_over():
    lua = "content_by_lua_block { local s = '}' -- }\n if s then ngx.say([[ } ]]) end }"

    assert find_in(serve(f"{lua} sendfile on;"))["sendfile"] is True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("aio threads=slow;", "aio"),
        ("server_tokens build;", "server_tokens"),
        ("keepalive_timeout 1500ms;", "keepalive_timeout"),
        ("sendfile_max_chunk 1000;", "sendfile_max_chunk"),
        ("access_log /a.log; access_log /b.log;", "access_log"),
        ("access_log /$host.log;", "access_log_buffer"),
        ("access_log syslog:server=[::1];", "access_log_buffer"),
        ("access_log /a.log combined gzip=1;", "access_log_buffer"),
    ],
)
def test_what_the_space_has_no_word_for_is_left_out_and_never_changed(text, name):
    installation = find("debian-12", files_of(serve(text)))

    assert name not in installation.facts.current
    with pytest.raises(ConfigRejected, match=name):
        Nginx().rewrite({name: 1}, installation)


@pytest.mark.parametrize(
    ("logs", "path"),
    [
        ("", "/usr/share/nginx/logs/access.log"),
        ("--http-log-path=own/access.log", "/usr/share/nginx/own/access.log"),
        ("--http-log-path=/srv/log/nginx.log", "/srv/log/nginx.log"),
    ],
)
def test_a_log_that_no_line_names_is_where_this_build_writes_it(logs, path):
    installation = Nginx().find(make_host(files_of(serve()), logs=logs))

    written = Nginx().rewrite({"access_log_buffer": 64}, installation)[MAIN].decode()

    assert f"access_log {path} combined buffer=64k flush=1s;" in written


def test_masks_of_cpus_are_left_as_they_are():
    assert "worker_cpu_affinity" not in find_in("worker_cpu_affinity 01 10;\n" + serve())
    assert find_in("worker_cpu_affinity auto;\n" + serve())["worker_cpu_affinity"] == "auto"


def test_a_file_that_two_servers_include_is_not_changed_for_one_of_them():
    include = "include conf.d/site.inc;"
    text = f"events {{ }}\nhttp {{ server {{ listen 80; {include} }} server {{ listen 81; {include} }} }}\n"

    current = find_in(text, **{"site.inc": "keepalive_timeout 3;\n"})

    assert "keepalive_timeout" not in current
    assert current["send_timeout"] == 60


@pytest.mark.parametrize(
    ("servers", "port", "backlog"),
    [
        ("server { listen 81 default_server backlog=1; } server { listen 80 backlog=2; }", 80, 2),
        ("server { listen 8000 backlog=1; } server { listen 8001 default_server backlog=2; }", 8001, 2),
        ("server { listen 80; } server { listen 80 backlog=3; }", 80, 3),
        ("server { listen 80 backlog=4; listen [::]:80 backlog=4; }", 80, 4),
        ("server { listen 80 backlog=4; listen [::]:80 backlog=5; }", 80, None),
        ("server { listen 80 backlog=4; listen [::]:80; }", 80, None),
        ("server { listen 80 backlog=4; listen 127.0.0.1:80; }", 80, 4),
        ("server { listen 80 backlog=4; listen 127.0.0.1:80 backlog=5; }", 80, None),
        ("server { listen 127.0.0.1 backlog=6; }", 80, 6),
        ("server { listen localhost:8000 backlog=7; }", 8000, 7),
        ("server { listen unix:/run/a.sock; listen 443 ssl; }", None, None),
        ("server { listen 80 proxy_protocol; listen 8080 backlog=8; }", 8080, 8),
        ("server { }", 80, None),
    ],
)
def test_the_tested_sockets_are_those_of_the_plain_port(servers, port, backlog):
    found = find("debian-12", files_of(f"events {{ }}\nhttp {{ {servers} }}\n"))

    assert found.port == port
    assert found.facts.current.get("listen_backlog") == backlog


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        (serve("sendfile   on ; # kept\n"), {"sendfile": False}, serve("sendfile   off ; # kept\n")),
        (serve("keepalive_timeout 65 60;"), {"keepalive_timeout": 5}, serve("keepalive_timeout 5s 60;")),
        (serve('keepalive_timeout "1m";'), {"keepalive_timeout": 5}, serve("keepalive_timeout 5s;")),
        (serve("open_file_cache max=9 inactive=20s;"), {"open_file_cache": 0}, serve("open_file_cache off;")),
        (serve("access_log /a.log;"), {"access_log": "off"}, serve("access_log off;")),
        (
            serve("access_log /a.log # here\n ;"),
            {"access_log_buffer": 8},
            serve("access_log /a.log combined buffer=8k flush=1s # here\n ;"),
        ),
        (
            serve('access_log "/a b.log" main buffer=32k flush=5m if=$x;'),
            {"access_log_buffer": 8},
            serve('access_log "/a b.log" main buffer=8k flush=5m if=$x;'),
        ),
        (
            serve('access_log "/a b.log" main buffer=32k flush=5m if=$x;'),
            {"access_log_buffer": 0},
            serve('access_log "/a b.log" main if=$x;'),
        ),
        (
            serve("access_log off;"),
            {"access_log": "on", "access_log_buffer": 8},
            serve("access_log /var/log/nginx/access.log combined buffer=8k flush=1s;"),
        ),
        (serve(listen="80 backlog=9"), {"listen_backlog": 5}, serve(listen="80 backlog=5")),
        (
            serve(listen="80 deferred fastopen=3 sndbuf=64k"),
            {"listen_deferred": False, "listen_sndbuf": 0, "listen_reuseport": True},
            serve(listen="80 fastopen=3 reuseport"),
        ),
        ("worker_cpu_affinity auto;\n" + serve(), {"worker_cpu_affinity": "off"}, serve()),
        (
            "thread_pool default threads=8 max_queue=9;\nthread_pool other threads=1;\n" + serve(),
            {"thread_pool_threads": 4},
            "thread_pool default threads=4 max_queue=9;\nthread_pool other threads=1;\n" + serve(),
        ),
        (serve(), {"worker_rlimit_nofile": 9}, "worker_rlimit_nofile 9;\n" + serve()),
        (serve(), {"worker_processes": 2}, "worker_processes 2;\n" + serve()),
        ("events {}\nhttp {}\n", {"multi_accept": True}, "events {multi_accept on; }\nhttp {}\n"),
        (
            "events {\r\n\tmulti_accept on;\r\n}\r\nhttp {}\r\n",
            {"epoll_events": 9},
            "events {\r\n\tmulti_accept on;\r\n\tepoll_events 9;\r\n}\r\nhttp {}\r\n",
        ),
    ],
)
def test_only_the_words_of_what_changes_are_rewritten(text, values, expected):
    assert change(text, **values) == expected


def test_several_new_directives_are_written_in_one_order():
    expected = "events { }\nhttp {\n  gzip on;\n  etag off;\n}\n".replace(
        "  etag off;", "  aio threads;\n  postpone_output 0;\n  etag off;"
    )
    values: dict[str, Scalar] = {"etag": False, "postpone_output": 0, "aio": "threads"}

    assert change("events { }\nhttp {\n  gzip on;\n}\n", **values) == expected


def test_each_socket_of_the_port_gets_the_options_once():
    changed = Nginx().rewrite({"listen_backlog": 4000}, find("debian-12"))

    assert list(changed) == [SITE]
    assert (
        b"\tlisten 80 default_server backlog=4000;\n\tlisten [::]:80 default_server backlog=4000;\n"
        in changed[SITE]
    )


def test_what_a_server_overrides_is_changed_there():
    changed = Nginx().rewrite({"keepalive_timeout": 7, "sendfile": True}, find("by-hand"))

    assert changed[MAIN] == LAYOUTS["by-hand"][MAIN].replace(b"timeout 2m; # the", b"timeout 7s; # the")
    assert changed[ROOT / "conf.d/a.conf"] == b"sendfile on ;\n"


def test_what_other_sites_and_paths_give_otherwise_is_told_with_its_places():
    text = (
        "events { }\nhttp {\n  sendfile on;\n  server { listen 80;\n"
        "    location /a { sendfile off; }\n    location /b { sendfile on; }\n  }\n"
        "  server { listen 80; server_name b; sendfile off; keepalive_timeout 9; }\n}\n"
    )
    installation = find("debian-12", files_of(text))

    found = Nginx().find_overrides({"sendfile": True, "worker_processes": 3, "etag": False}, installation)

    assert found == {"sendfile": f"{MAIN}:5, {MAIN}:8"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_present_configuration_changes_no_file(name):
    installation = find(name)

    assert Nginx().rewrite(installation.facts.current, installation) == {}
    assert Nginx().rewrite({}, installation) == {}


NO_WORDS = (
    "on; root /", "on\n", "on\r\nuser root", "on}", "{", "on #", "'on'", '"on"', "on on", "$on", "\\on",
    "on\0", "on\t", "", "on\u2028", "ön", "../on",
)  # fmt: skip
NO_NUMBERS: tuple[Scalar, ...] = (
    "1",
    "1k",
    "1; root /",
    "1\n",
    "$n",
    -1,
    2**31,
    1.0,
    0.5,
    float("nan"),
    True,
)


@pytest.mark.parametrize(
    "name", ["sendfile", "aio", "access_log", "lingering_close", "worker_cpu_affinity", "listen_deferred"]
)
def test_what_is_no_choice_never_reaches_a_file(name):
    expect_refused(name, *NO_WORDS, 1, 2.0)


@pytest.mark.parametrize(
    "name",
    [
        "worker_processes", "worker_connections", "listen_backlog", "listen_sndbuf", "keepalive_timeout",
        "open_file_cache", "open_file_cache_inactive", "output_buffers_number", "thread_pool_threads",
        "access_log_buffer", "connection_pool_size", "timer_resolution",
    ],
)  # fmt: skip
def test_what_is_no_number_never_reaches_a_file(name):
    expect_refused(name, *NO_NUMBERS, beside={"open_file_cache": 9})


def test_a_zero_that_nginx_would_take_and_then_serve_nobody_is_refused():
    for name in ("worker_processes", "worker_connections", "listen_backlog", "epoll_events"):
        expect_refused(name, 0)


def test_a_name_that_is_no_setting_never_reaches_a_file():
    for name in ("load_module", "include", "root", "sendfile on; root", "", "a\nb", "../x"):
        with pytest.raises(ConfigRejected, match="Remove this setting from the search space"):
            Nginx().rewrite({name: "on"}, find("debian-12"))


def test_each_virtual_host_has_an_address_by_its_first_plain_name():
    text = (
        "events { } http {"
        " server { listen 80 default_server; server_name _; }"
        " server { listen 80; server_name *.wild.test ~^a Shop.test www.shop.test; }"
        " server { listen 8080; listen 443 ssl; server_name img.test; }"
        " server { listen 444 quic; server_name quic.test; }"
        " }"
    )

    sites = find("debian-12", files_of(text)).sites

    assert sites == ("http://shop.test/", "http://img.test:8080/", "https://img.test/")


def expect_refused(name: str, *values: Scalar, beside: Config | None = None) -> None:
    """Check that each value is refused in a sentence that names the setting."""
    installation = find("debian-12")
    for value in values:
        with pytest.raises(ConfigRejected, match=name):
            pytest.fail(f"{value!r}: {Nginx().rewrite({**(beside or {}), name: value}, installation)}")

"""The nginx patch, over small files."""

from pathlib import PurePosixPath

from tests.unit.simulated_study import make_summary
from tuner.export import Rendered, export

MAIN = PurePosixPath("/etc/nginx/nginx.conf")
SITE = PurePosixPath("/etc/nginx/sites-available/default")
INSTALLED = {
    MAIN: b"worker_processes auto;\nevents {\n}\nhttp {\n\tsendfile on;\n"
    b"\taccess_log /srv/log/a.log;\n\tinclude /etc/nginx/conf.d/*.conf;\n}\n",
    SITE: b"server {\n\tlisten 80 default_server;\n\tlisten 8081;\n}\n",
}


def render(text: str) -> dict[PurePosixPath, bytes]:
    return {PurePosixPath("/run/tuner-export/nginx.conf"): text.encode()}


def export_change(before: str, after: str, installed: dict[PurePosixPath, bytes]) -> dict[str, str]:
    rendered = {"nginx": Rendered(default=render(before), winner=render(after))}
    files = export(make_summary(searches=4), "nginx", rendered=rendered, installed=installed)
    return {name: content.decode() for name, content in files.items()}


def added(patch: str) -> list[str]:
    return [line[1:].strip() for line in patch.splitlines() if line.startswith("+") and line[1:2] != "+"]


def removed(patch: str) -> list[str]:
    return [line[1:].strip() for line in patch.splitlines() if line.startswith("-") and line[1:2] != "-"]


def test_what_the_installed_file_sets_is_changed_there() -> None:
    patch = export_change("http { sendfile on; }", "http { sendfile off; }", INSTALLED)["tuner-nginx.patch"]

    assert removed(patch) == ["sendfile on;"]
    assert added(patch) == ["sendfile off;"]


def test_a_new_directive_of_http_goes_to_a_file_in_conf_d() -> None:
    patch = export_change("http { }", "http { open_file_cache max=9; }", INSTALLED)["tuner-nginx.patch"]

    assert "+++ b/conf.d/tuner.conf" in patch
    assert "open_file_cache max=9;" in added(patch)
    assert removed(patch) == []


def test_a_new_directive_goes_into_http_itself_where_conf_d_is_not_included() -> None:
    installed = {MAIN: b"events {\n}\nhttp {\n}\n"}
    patch = export_change("http { }", "http { open_file_cache max=9; }", installed)["tuner-nginx.patch"]

    assert "conf.d" not in patch
    assert added(patch) == ["open_file_cache max=9;"]


def test_events_and_main_are_changed_in_their_blocks() -> None:
    patch = export_change("events { }", "worker_rlimit_nofile 9; events { multi_accept on; }", INSTALLED)[
        "tuner-nginx.patch"
    ]

    assert added(patch) == ["worker_rlimit_nofile 9;", "multi_accept on;"]


def test_the_log_of_the_private_instance_becomes_the_installed_one() -> None:
    patch = export_change(
        "http { access_log /run/tuner-export/access.log; }",
        "http { access_log /run/tuner-export/access.log combined buffer=64k; }",
        INSTALLED,
    )["tuner-nginx.patch"]

    assert added(patch) == ["access_log /srv/log/a.log combined buffer=64k;"]


def test_listen_options_are_given_to_the_default_server_only() -> None:
    patch = export_change(
        "http { server { listen 8080 default_server; } }",
        "http { server { listen 8080 default_server backlog=9 reuseport; } }",
        INSTALLED,
    )["tuner-nginx.patch"]

    assert removed(patch) == ["listen 80 default_server;"]
    assert added(patch) == ["listen 80 default_server backlog=9 reuseport;"]


def test_a_directive_that_the_winner_does_not_give_is_taken_out() -> None:
    patch = export_change("http { sendfile on; }", "http { }", INSTALLED)["tuner-nginx.patch"]

    assert removed(patch) == ["sendfile on;"]
    assert added(patch) == []


def test_nothing_is_written_when_no_directive_differs() -> None:
    assert export_change("http { sendfile on; }", "http { sendfile on; }", INSTALLED) == {}


def test_without_an_installed_nginx_the_changes_are_listed_by_block() -> None:
    files = export_change("worker_processes auto; http { }", "worker_processes 2; http { sendfile off; }", {})

    listing = files["tuner-nginx-settings.conf"]
    assert "worker_processes 2;  # was: worker_processes auto;" in listing
    assert "http {\n    sendfile off;  # was: not given\n}" in listing


def test_a_file_without_a_line_end_survives_the_patch() -> None:
    installed = {MAIN: b"events { }\nhttp { sendfile on; }"}
    patch = export_change("http { sendfile on; }", "http { sendfile off; }", installed)["tuner-nginx.patch"]

    assert patch.count("\\ No newline at end of file") == 2

import os
from pathlib import Path

import pytest

from tuner.commands.template import space_for, write_study
from tuner.errors import TargetError, UsageError
from tuner.plugins import make_host, make_server
from tuner.study import load_study


@pytest.mark.parametrize("server", ["nginx", "apache"])
def test_what_is_written_can_be_read_and_names_what_was_found(tmp_path, server):
    path = write_study(server, tmp_path / f"{server}.yaml")

    study = load_study(path)
    assert (study.name, study.servers, study.space) == (server, (server,), (space_for(server),))
    assert study.load.keepalive == (server == "nginx")
    assert f"Found here: {server} " in path.read_text()
    assert study.folder.name in path.read_text()


def test_a_server_that_only_passes_requests_on_stands_before_one_that_answers(tmp_path):
    study = load_study(write_study("haproxy", tmp_path / "haproxy.yaml"))

    front, behind = study.servers
    assert (front, study.space, study.load.keepalive) == ("haproxy", ("haproxy",), True)
    assert make_server(behind).detect(make_host("local")).passes_to


def test_a_server_that_only_a_study_describes_has_an_example_to_replace(tmp_path):
    study = load_study(write_study("command", tmp_path / "app.yaml"))

    assert (study.name, study.servers, study.load.path) == ("app", ("command",), "/")
    study.options["command"].refuse_unknown({"workers"})


def test_an_example_takes_no_options_of_other_servers(tmp_path):
    with pytest.raises(UsageError, match="the study of command itself describes the server"):
        write_study("command", tmp_path / "app.yaml", backend="h2o")


@pytest.mark.parametrize(
    ("name", "meant"), [("httpd", "apache"), ("apache2", "apache"), ("kernel", "sysctl")]
)
def test_a_server_is_found_by_other_names_of_it(tmp_path, name, meant):
    with pytest.raises(UsageError, match=f"there is no '{name}'. Did you mean {meant}\\?"):
        write_study(name, tmp_path / "a.yaml")


def test_a_server_that_tuner_does_not_know_is_described_by_a_study(tmp_path):
    with pytest.raises(UsageError, match="For a server without an adapter, begin with: tuner init command"):
        write_study("lighttpd", tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("name", "study_name"),
    [
        ("my study.yaml", "my-study"),
        ("a: b.yaml", "a-b"),
        (".hidden", "hidden"),
        ("-x.yaml", "x"),
        ("Über.yaml", "ber"),
        ("{}.yaml", "nginx"),
        ("#1.yaml", "1"),
        (f"{'n' * 90}.yaml", "n" * 64),
        ("a.b.yaml", "a.b"),
        ("null.yaml", "nginx-null"),
        ("On.yaml", "nginx-On"),
        ("2026-11-21.yaml", "2026-11-21"),
    ],
)
def test_any_file_name_gives_a_study_that_can_be_loaded(tmp_path, name, study_name):
    assert load_study(write_study("nginx", tmp_path / name)).name == study_name


def test_a_builtin_content_is_asked_for_by_its_name(tmp_path):
    assert load_study(write_study("nginx", tmp_path / "a.yaml", content="images")).load.content == "images"


@pytest.mark.parametrize(
    ("server", "content", "message"),
    [
        ("nginx", "picture", "--content: there is no built-in content 'picture'. Known are index, tiny"),
        ("nginx", "php", "nginx runs no programs.* Use index, tiny, html, images"),
        ("php-fpm", "tiny", "php-fpm serves no files.* Use php"),
    ],
)
def test_a_content_that_the_server_cannot_make_is_refused(tmp_path, server, content, message):
    with pytest.raises(UsageError, match=message):
        write_study(server, tmp_path / "study.yaml", content=content)


def test_missing_folders_are_made(tmp_path):
    assert write_study("nginx", tmp_path / "a" / "b" / "nginx.yaml").is_file()


def test_a_file_that_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "nginx.yaml").write_text("mine\n")

    with pytest.raises(UsageError, match="this file already exists"):
        write_study("nginx", tmp_path / "nginx.yaml")
    assert (tmp_path / "nginx.yaml").read_text() == "mine\n"


def test_a_broken_link_is_not_followed(tmp_path):
    (tmp_path / "nginx.yaml").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match="this file already exists"):
        write_study("nginx", tmp_path / "nginx.yaml")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("path", [".", "/"])
def test_a_folder_is_refused(path):
    with pytest.raises(UsageError, match="this is a folder"):
        write_study("nginx", Path(path))


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises((TargetError, UsageError)) as refused:
        write_study("nginx", tmp_path / "file" / "nginx.yaml")
    assert str(tmp_path / "file" / "nginx.yaml") in str(refused.value)


def test_an_unknown_server_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UsageError, match="ngnix"):
        write_study("ngnix", tmp_path / "new" / "study.yaml")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - names are enough


def test_a_server_without_a_space_of_its_own_is_told_to_bring_one():
    with pytest.raises(UsageError, match=r"varnish: tuner has no search space for this server\. Write a"):
        space_for("varnish")


@pytest.mark.parametrize(
    ("server", "backend", "expected"),
    [
        ("nginx", "php-fpm", ("[nginx, php-fpm]", "  - nginx\n  - php-fpm\n", "path: /page.php", "")),
        ("apache", "h2o", ("[apache, h2o]", "  - apache-event\n", "path: /index.html", "")),
        ("nginx", "websocket-echo", ("[nginx]", "  - nginx\n", "path: /  ", "backend: websocket-echo\n")),
    ],
)
def test_a_server_is_written_with_what_stands_behind_it(tmp_path, server, backend, expected):
    text = write_study(server, tmp_path / "both.yaml", backend=backend).read_text()

    servers, spaces, page, application = expected
    assert f"servers: {servers}\n{application}" in text
    assert f"space:\n{spaces}\n" in text
    assert page in text
    assert ("generator: websocket" in text, "keepalive: true" in text) == (
        bool(application), bool(application) or server == "nginx",
    )  # fmt: skip
    assert load_study(tmp_path / "both.yaml").servers


@pytest.mark.parametrize(
    ("server", "backend", "said"),
    [
        ("nginx", "sysctl", "nginx cannot pass requests to sysctl, which answers no requests"),
        ("h2o", "websocket-echo", r"h2o cannot pass requests to websocket-echo \(websocket\)"),
        ("nginx", "varnish", r"no backend has the name 'varnish'\. Use one of: apache, .*websocket-echo"),
    ],
)
def test_what_it_cannot_ask_is_refused(tmp_path, server, backend, said):
    with pytest.raises(UsageError, match=said):
        write_study(server, tmp_path / "both.yaml", backend=backend)

"""A study may describe a server by templates and commands of its own."""

from pathlib import Path

import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.plugins import make_private_server
from tuner.study import Study, load_study
from tuner.study.trust import name_programs

START = "start: [serve, '{directory}/web.conf', '-p{port}']"


def read(tmp_path: Path, entry: str, more: str = "") -> Study:
    (tmp_path / "web.conf.j2").write_text("workers {{ settings.workers }}\n")
    (tmp_path / "mime.types").write_text("html\n")
    path = tmp_path / "own.yaml"
    path.write_text(f"study: own\nservers:\n  - {{name: command, {entry}}}\nspace: [nginx]\n{more}")
    return load_study(path)


def test_templates_and_commands_are_read_and_belong_to_what_makes_starts_comparable(tmp_path):
    study = read(tmp_path, f"template: [web.conf.j2, mime.types], {START}, read_back: [ask], backend: nginx")

    options = study.options["command"]
    assert study.servers == ("command",)
    assert study.backends == {"command": "nginx"}
    assert dict(options.templates) == {
        "web.conf": "workers {{ settings.workers }}\n", "mime.types": "html\n",
    }  # fmt: skip
    assert options.arguments() == {
        "templates": options.templates, "folder": str(tmp_path.resolve()),
        "start": ("serve", "{directory}/web.conf", "-p{port}"), "read_back": ("ask",),
    }  # fmt: skip
    before = study.definition(space_of("sendfile"))["server command"]
    assert (
        before
        != read(tmp_path, f"template: mime.types, {START}").definition(space_of("sendfile"))["server command"]
    )


def test_a_check_names_each_command_and_file_of_it(tmp_path):
    study = read(
        tmp_path, f"template: web.conf.j2, check: [id], {START}, stop: [rm, -r, /x y], read_back: [ask]"
    )

    assert name_programs(study) == (
        "servers: command: check runs `id`",
        "servers: command: start runs `serve '{directory}/web.conf' '-p{port}'`",
        "servers: command: stop runs `rm -r '/x y'`",
        "servers: command: read_back runs `ask`",
        "servers: command: a template writes web.conf",
    )


def test_a_program_is_named_by_its_path_and_to_be_trusted(tmp_path):
    path = tmp_path / "study.yaml"
    text = "study: own\nservers: [{name: nginx, program: /opt/web/nginx}, h2o]\nspace: [nginx]\n"
    path.write_text(f"{text}target: {{mode: managed}}\n")

    study = load_study(path)

    assert study.adapter_options("nginx") == {"program": "/opt/web/nginx"}
    assert study.adapter_options("h2o") == {}
    assert study.definition(space_of("sendfile"))["program of nginx"] == "/opt/web/nginx"
    assert name_programs(study) == ("servers: nginx: program runs `/opt/web/nginx`",)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (f"template: none.j2, {START}", r"own\.yaml:3: servers\.0\.template: there is no file .*none\.j2"),
        (f"template: ['.j2'], {START}", "has an unusable or repeated file name"),
        (f"template: [web.conf.j2, web.conf.j2], {START}", "has an unusable or repeated file name"),
        (f"template: /, {START}", "has an unusable or repeated file name"),
        ("start: serve", r"own\.yaml:3: .*start: 'serve' is not a list"),
        ("start: []", "is no command"),
        ("start: ['  ']", "is no command"),
        ("start: [a], strat: [a]", r"this key is not known\. Did you mean start"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(tmp_path, entry: str, message: str):
    with pytest.raises(UsageError, match=message):
        read(tmp_path, entry)


def test_a_command_takes_places_and_settings_and_nothing_else(tmp_path):
    options = read(tmp_path, "start: [serve, '{port}', '-w{web.workers}', '${HOME}', '{prot}']").options[
        "command"
    ]

    with pytest.raises(
        UsageError, match=r"own\.yaml:3: .*start: \{prot\} is no known placeholder\. Did you mean port\?"
    ):
        options.refuse_unknown({"web.workers"})
    options.refuse_unknown({"web.workers", "prot"})


def test_a_server_that_is_not_told_where_the_pages_are_serves_its_own(tmp_path):
    (tmp_path / "with_root.j2").write_text("root {{ document_root }}\n")
    told = ("start: [serve, '{document_root}']", f"{START}, template: with_root.j2")

    assert not read(tmp_path, START).options["command"].serves_content
    assert all(read(tmp_path, each).options["command"].serves_content for each in told)


def test_an_installed_service_has_no_templates_of_a_study(tmp_path):
    with pytest.raises(
        UsageError, match="a study may bring templates and commands only for private instances"
    ):
        read(tmp_path, START, "target: {mode: managed}\n")


def test_a_template_is_no_device(tmp_path):
    with pytest.raises(UsageError, match="there is no file /dev/zero"):
        read(tmp_path, f"template: /dev/zero, {START}")


def test_a_server_that_tuner_knows_takes_none():
    with pytest.raises(UsageError, match=r"servers: nginx does not accept the options given \(start\)"):
        make_private_server("nginx", start=("x",))

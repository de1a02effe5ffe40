import pytest

from tests.unit.simulation import space_of
from tuner.errors import UsageError
from tuner.study import load_study
from tuner.study.backend import BackendSettings
from tuner.study.trust import name_programs

HEAD = "study: test\nservers: [nginx]\nspace: [nginx]\n"


@pytest.fixture
def study(tmp_path):
    def read(more: str):
        path = tmp_path / "study.yaml"
        path.write_text(HEAD + more)
        return load_study(path)

    return read


def test_an_application_is_told_its_port_or_has_one(study):
    told = study("backend: {command: [node, '{folder}/a.js', '{port}'], ready: /health}\n").backend
    fixed = study("backend: {command: [./a], port: 3000}\n").backend

    assert told == BackendSettings(command=("node", "{folder}/a.js", "{port}"), ready="/health")
    assert fixed == BackendSettings(command=("./a",), port=3000)


def test_another_application_is_another_study_and_none_is_what_it_was(study):
    space = space_of("sendfile")
    first, second = (
        study(f"backend: {{command: [{name}, '{{port}}']}}\n").definition(space) for name in "ab"
    )

    assert first != second
    assert "backend" not in study("").definition(space)


def test_one_that_is_registered_is_named_and_asks_for_no_trust(study):
    found = study("backend: websocket-echo\n")

    assert found.backend == BackendSettings(name="websocket-echo")
    assert found.definition(space_of("sendfile"))["backend"] == "websocket-echo"
    assert name_programs(found) == ()


def test_one_in_another_protocol_is_another_study(study):
    space = space_of("sendfile")
    command = "backend: {{command: [a, '{{port}}']{}}}\n"
    plain, messages = (
        study(command.format(more)).definition(space)["backend"] for more in ("", ", protocol: websocket")
    )

    assert (plain, messages) == ("a '{port}'", "a '{port}' (websocket)")


def test_its_command_asks_for_trust(study):
    assert name_programs(study("backend: {command: [node, '{port}', a b]}\n")) == (
        "backend.command runs `node '{port}' 'a b'`",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("backend: {}\n", "backend: the key command is missing"),
        ("backend: {command: []}\n", "backend.command: () is no command. Write [program, argument]"),
        (
            "backend: {command: [node, '{port}'], protocol: ws}\n",
            "'ws' is no known value. Known are http, websocket",
        ),
        ("backend: {command: node}\n", "is not a list"),
        ("backend: {command: ['', '{port}']}\n", "is no command"),
        ("backend: {command: [node]}\n", "the port is not given. Write {port} in the command, or"),
        ("backend: {command: [node, '{port}'], port: 1}\n", "the port is given twice"),
        ("backend: {command: [node, '{prot}']}\n", "{prot} is no known placeholder. Use {port} and {folder}"),
        ("backend: {command: [node], port: 70000}\n", "70000 is out of range"),
        ("backend: {command: [node, '{port}'], ready: health}\n", "'health' is not written as a URL path"),
        (
            "backend: {command: [node, '{port}'], redy: /}\n",
            "redy: this key is not known. Did you mean ready?",
        ),
        (
            "target: {mode: managed}\nbackend: {command: [node, '{port}']}\n",
            "tuner starts an application only behind private servers. Leave `backend:` out",
        ),
    ],
)
def test_an_application_that_cannot_be_started_so_is_refused_at_its_line(study, more, said):
    with pytest.raises(UsageError) as refused:
        study(more)

    assert said in str(refused.value)
    assert "study.yaml:" in str(refused.value)

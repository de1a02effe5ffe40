"""A server that a study describes: what its templates become, and what its commands say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pytest

from tuner.adapters.servers.command import Command
from tuner.errors import ConfigRejected, NotEffective, UsageError
from tuner.ports import Completed, Config, Facts, Scalar, Site, Upstream

SITE = Site(
    directory=PurePosixPath("/site"), document_root=PurePosixPath("/www"), port=8081,
    backend=Upstream(port=9000), cpus=frozenset({1, 0}),
)  # fmt: skip
FACTS = Facts()


def render(text: str, config: Config, site: Site = SITE) -> str:
    files = Command(templates={"web.conf": text}).render(config, site, FACTS)
    assert list(files) == [PurePosixPath("/site/web.conf")]
    return files[PurePosixPath("/site/web.conf")].decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Printing:
    """A host on which every command prints the same."""

    stdout: str
    returncode: int = 0

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        return Completed(
            argv=tuple(argv), returncode=self.returncode, stdout=self.stdout.encode(), stderr=b"",
            duration_s=0.0,
        )  # fmt: skip


def read_back(printed: str, config: Config, **how: int) -> Config:
    host = Printing(stdout=printed, **how)
    server = Command(read_back=["ask", "{port}"])
    return server.effective(host, config, SITE, FACTS, None)  # type: ignore[arg-type]


def test_a_template_becomes_a_file_with_the_settings_and_the_place_of_the_instance():
    text = (
        "workers {{ settings.workers }};\n{% if settings['tcp.fast-open'] %}\nfast;\n{% endif %}\n"
        "{{ port }} {{ directory }} {{ document_root }} {{ backend }} {{ cpus|join('-') }}\n"
    )

    written = render(text, {"workers": 3, "tcp.fast-open": True})

    assert written == "workers 3;\nfast;\n8081 /site /www 127.0.0.1:9000 0-1\n"


def test_a_value_is_no_template():
    assert render("{{ settings.x }}", {"x": "{{ 7 * 7 }}{% raw %}"}) == "{{ 7 * 7 }}{% raw %}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ok\nworkers {{ settings.workrs }}\n",
            r"template of web\.conf, line 2: .*no attribute 'workrs'.*settings are workers",
        ),
        ("{{ prot }}", r"template of web\.conf, line 1: 'prot' is undefined"),
        ("\n\n{{ 1 // (settings.workers - 2) }}", r"template of web\.conf, line 3: .*by zero"),
        ("{{ settings.__class__.__mro__ }}", r"web\.conf, line 1: .*unsafe"),
        ("{{ ''.__class__ }}", r"web\.conf, line 1: .*unsafe"),
        ("{% include '/etc/passwd' %}", r"web\.conf, line 1: .*loader"),
        ("{% for a in range(10**9) %}x{% endfor %}", r"web\.conf, line 1: .*[Rr]ange too big"),
        ("{{ 'x' * 2000000 }}", r"web\.conf becomes 2000000 characters, more than 1048576"),
    ],
)  # fmt: skip
def test_what_cannot_be_rendered_names_template_line_and_variable(text: str, message: str):
    with pytest.raises(ConfigRejected, match=message):
        render(text, {"workers": 2})


def test_what_is_no_template_names_its_line_before_anything_runs():
    with pytest.raises(UsageError, match=r"template of web\.conf, line 2: .* Correct the template\."):
        Command(templates={"web.conf": "a\n{% if %}\n"})


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "a\u2028b", "\x1b[1m", "x" * 1001])
def test_a_text_of_several_lines_reaches_no_file(value: str):
    with pytest.raises(ConfigRejected, match=r"^command: x = .* is not one value"):
        render("{{ settings.x }}", {"x": value})


def test_commands_know_where_the_instance_is_word_by_word():
    server = Command(
        folder="/my studies", start=["serve", "{folder}/a b", "-p{port}", "{directory}", "{backend}"],
        check=["check", "{document_root}"],
    )  # fmt: skip

    assert server.start(SITE, FACTS) == ("serve", "/my studies/a b", "-p8081", "/site", "127.0.0.1:9000")
    assert server.check(SITE, FACTS) == ("check", "/www")
    assert server.stop(SITE, FACTS) is None


@pytest.mark.parametrize(
    "printed",
    [
        "workers=3\nfast: on\nratio = 0.333333\nmode=slow start\nother=1\n",
        '{"workers": 3, "fast": true, "ratio": 0.333333, "mode": "slow start"}',
    ],
)
def test_what_is_in_force_is_read_in_the_kind_that_was_asked(printed: str):
    asked: dict[str, Scalar] = {"workers": 3, "fast": True, "ratio": 1 / 3, "mode": "slow start"}

    assert read_back(printed, asked) == asked


def test_what_differs_is_told_as_it_is():
    found = read_back("workers=2\nfast=maybe\nratio=x\n", {"workers": 3, "fast": True, "ratio": 0.5})

    assert found == {"workers": 2, "fast": "maybe", "ratio": "x"}


def test_a_setting_of_which_nothing_is_said_is_not_in_force():
    with pytest.raises(
        NotEffective, match=r"gives no value of fast; it printed 'workers=3'\. Let it print a line"
    ):
        read_back("workers=3\n", {"workers": 3, "fast": True})


@pytest.mark.parametrize(
    ("printed", "status", "message"),
    [("no socket", 3, "`ask` failed with status 3: 'no socket'"), ("{workers: 3}", 0, "printed no JSON")],
)
def test_a_read_back_that_fails_proves_nothing(printed: str, status: int, message: str):
    with pytest.raises(NotEffective, match=message):
        read_back(printed, {"workers": 3}, returncode=status)


def test_without_a_read_back_nothing_is_said_to_be_in_force():
    host = Printing(stdout="workers=3")

    assert Command(start=["x"]).effective(host, {"workers": 3}, SITE, FACTS, None) == {}  # type: ignore[arg-type]


def test_without_a_start_it_is_only_known_by_its_name():
    with pytest.raises(UsageError, match="`tuner init command` writes an example"):
        Command().detect(Printing(stdout=""))  # type: ignore[arg-type]


def test_lines_of_its_log_that_speak_of_failure_explain_one():
    log = b"listening on 80\nERROR: no room\nbind() failed: in use\nterror is no error of ours\n"

    assert Command().complaints(log) == (
        "ERROR: no room",
        "bind() failed: in use",
        "terror is no error of ours",
    )


def test_a_command_holds_settings_as_one_word_each():
    server = Command(start=["serve", "--workers={workers}", "{tcp.fast-open}", "${HOME}", "{port}"])
    site = replace(SITE, settings={"workers": 3, "tcp.fast-open": True})

    assert server.start(site, FACTS) == ("serve", "--workers=3", "true", "${HOME}", "8081")


def test_a_setting_that_a_configuration_does_not_have_is_a_failed_start():
    with pytest.raises(ConfigRejected, match=r"`serve` takes \{workers\}, and this configuration has no"):
        Command(start=["serve", "{workers}"]).start(SITE, FACTS)

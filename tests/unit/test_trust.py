"""A check of somebody else's study does nothing that its author chose freely."""

from pathlib import Path

import pytest

from tuner.errors import UsageError
from tuner.settings import load_study
from tuner.space import SpaceFacts, available_spaces, load_space
from tuner.trust import name_own_settings, name_programs, refuse_untrusted

FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1), "apache": (2, 4, 62)},
)  # fmt: skip
OWN = "space: own\nserver: {server}\ntitle: mine\nparameters:\n  {parameter}\n"


def own(tmp_path: Path, parameter: str, server: str = "apache") -> tuple[str, ...]:
    (tmp_path / "own.yaml").write_text(OWN.format(server=server, parameter=parameter))
    return name_own_settings(load_space(["./own.yaml"], facts=FACTS, base=tmp_path))


@pytest.mark.parametrize("name", available_spaces())
def test_the_spaces_of_tuner_itself_are_trusted(name):
    current = {"net.core.default_qdisc": "fq_codel", "net.ipv4.tcp_congestion_control": "cubic"}
    facts = SpaceFacts(names=FACTS.names, versions=FACTS.versions, current=current)

    assert name_own_settings(load_space([name], facts=facts, base=Path("/"))) == ()


def test_narrowing_them_needs_no_trust():
    sources = ["nginx", {"only": ["worker_processes", "access_log"]}, {"set": {"access_log": "off"}}]

    assert name_own_settings(load_space(sources, facts=FACTS, base=Path("/"))) == ()


@pytest.mark.parametrize(
    "name", ["ErrorLog", "LoadModule", "Include", "CustomLog2", "ScriptSock", "SSLPassPhraseDialog", "Define"]
)
def test_a_setting_of_its_own_is_named(tmp_path, name):
    choices = "{kind: categorical, choices: ['|sh -c id', b], default: b, why: x, source: y}"

    assert own(tmp_path, f"{name}: {choices}") == (
        f"space: {name} is a setting that tuner's own spaces do not have",
    )


def test_a_number_of_its_own_is_named_as_well(tmp_path):
    number = "{kind: int, low: 1, high: 3, default: 2, why: x, source: y}"

    assert own(tmp_path, f"ListenBackLog2: {number}", "nginx")


@pytest.mark.parametrize(
    "choices", ["['|sh -c id', combined]", "[combined, '\"|id\" combined']", "[combined, '${PATH}']"]
)
def test_a_text_of_its_own_for_a_known_setting_is_named(tmp_path, choices):
    found = own(
        tmp_path,
        f"CustomLog: {{kind: categorical, choices: {choices}, default: combined, why: x, source: y}}",
    )

    assert len(found) == 1
    assert found[0].startswith("space: CustomLog may become ")


def test_other_numbers_for_a_known_setting_are_only_numbers(tmp_path):
    number = "{kind: int, low: 1, high: 30, default: 2, why: x, source: y}"

    assert own(tmp_path, f"ThreadsPerChild: {number}") == ()


@pytest.mark.parametrize(
    ("load", "named"),
    [
        (
            "{generator: command, command: [sh, -c, 'id > /tmp/x'], result: {correct: /ok}}",
            "load.command runs",
        ),
        ("{generator: k6, script: ../../evil.js}", "load.script runs"),
        ("{generator: wrk, command: [id]}", "load.command runs `id`"),
    ],
)
def test_programs_that_a_study_brings_along_are_named(tmp_path, load, named):
    study = tmp_path / "study.yaml"
    study.write_text(f"study: a\nservers: [nginx]\nspace: [nginx]\nload: {load}\n")

    (found,) = name_programs(load_study(study))

    assert found.startswith(named)


@pytest.mark.parametrize(
    "more",
    ["", "optimizer: 'os:system'\n", "storage: postgresql://db.example/x\n", "warm_start: [/etc/shadow]\n"],
)
def test_what_a_check_does_not_touch_needs_no_trust(tmp_path, more):
    study = tmp_path / "study.yaml"
    study.write_text(f"study: a\nservers: [nginx]\nspace: [nginx]\n{more}")

    assert name_programs(load_study(study)) == ()


def test_what_has_to_be_trusted_is_named_and_not_without_end():
    with pytest.raises(
        UsageError, match=r"a\.yaml: .*: one; two; three; four; five; and 2 more\. Read the study"
    ):
        refuse_untrusted(Path("a.yaml"), ["one", "two", "three", "four", "five", "six", "seven"])

    refuse_untrusted(Path("a.yaml"), ())

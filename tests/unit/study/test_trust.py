"""A check of somebody else's study does nothing that its author chose freely."""

from pathlib import Path

import pytest

from tuner.errors import UsageError
from tuner.space import SpaceFacts, available_spaces, load_space
from tuner.study import load_study
from tuner.study.trust import name_large_numbers, name_own_settings, name_programs, refuse_untrusted

FACTS = SpaceFacts(
    names={"cores": 2, "memory_mib": 7900, "connections": 100, "open_files_max": 1048576, "somaxconn": 4096},
    versions={"nginx": (1, 22, 1), "apache": (2, 4, 62)},
)  # fmt: skip
NUMBER = "worker_connections: {kind: int, low: 1, high: 9000, default: 768, why: x, source: y}"
OWN = "space: own\nserver: {server}\ntitle: mine\nparameters:\n  {parameter}\n"


def own(tmp_path: Path, parameter: str, server: str = "apache") -> tuple[str, ...]:
    (tmp_path / "own.yaml").write_text(OWN.format(server=server, parameter=parameter))
    return name_own_settings(load_space(["./own.yaml"], facts=FACTS, base=tmp_path), {})


@pytest.mark.parametrize("name", available_spaces())
def test_the_spaces_of_tuner_itself_are_trusted(name):
    current = {"net.core.default_qdisc": "fq_codel", "net.ipv4.tcp_congestion_control": "cubic"}
    facts = SpaceFacts(names=FACTS.names, versions=FACTS.versions, current=current)

    assert name_own_settings(load_space([name], facts=facts, base=Path("/")), current) == ()


def test_narrowing_them_needs_no_trust():
    sources = ["nginx", {"only": ["worker_processes", "access_log"]}, {"set": {"access_log": "off"}}]

    assert name_own_settings(load_space(sources, facts=FACTS, base=Path("/")), {}) == ()


@pytest.mark.parametrize(
    "name", ["ErrorLog", "LoadModule", "Include", "CustomLog2", "ScriptSock", "SSLPassPhraseDialog", "Define"]
)
def test_a_setting_of_its_own_is_named(tmp_path, name):
    choices = "{kind: categorical, choices: ['|sh -c id', b], default: b, why: x, source: y}"

    assert own(tmp_path, f"{name}: {choices}") == (
        f"space: {name} is a setting that tuner's own search spaces do not have",
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


def refine(tmp_path: Path, text: str) -> tuple[str, ...]:
    (tmp_path / "own.yaml").write_text(text)
    return name_own_settings(load_space(["./own.yaml"], facts=FACTS, base=tmp_path), {})


INJECTED = "1; error_log /tmp/x debug; thread_pool b threads=1"


@pytest.mark.parametrize(
    "value",
    [
        f"\"'{INJECTED}'\"",
        f"\"32 if cores > 64 else '{INJECTED}'\"",
        f"\"cores > 64 or '{INJECTED}'\"",
        f"\"cores and '{INJECTED}'\"",
        "own_text",
    ],
)
def test_a_derived_setting_that_may_become_a_text_is_named(tmp_path, value):
    helper = (
        f"own_text: {{kind: categorical, choices: ['{INJECTED}'], default: '{INJECTED}', internal: true}}"
    )
    derived = f"worker_rlimit_nofile: {{value: {value}}}"

    found = refine(tmp_path, f"server: nginx\nparameters:\n  {NUMBER}\n  {helper}\nderived:\n  {derived}\n")

    assert found == (
        (
            f"space: worker_rlimit_nofile may become {INJECTED!r}, and tuner's own search spaces have no "
            "such setting"
        ),
    )


def test_a_derived_setting_that_hands_on_the_text_of_another_is_named(tmp_path):
    number = "worker_processes: {kind: int, low: 1, high: 4, default: auto, special: {auto: auto}}"
    derived = "worker_rlimit_nofile: {value: worker_processes}"
    found = refine(tmp_path, f"server: nginx\nparameters:\n  {number}\nderived:\n  {derived}\n")

    assert found == (
        "space: worker_rlimit_nofile may become 'auto', and tuner's own search spaces have no such setting",
    )


def test_a_derived_word_that_tuner_knows_for_that_setting_needs_no_trust(tmp_path):
    derived = "access_log: {value: \"'off' if worker_connections > 768 else 'on'\"}"
    text = f"server: nginx\nparameters:\n  {NUMBER}\nderived:\n  {derived}\n"
    (tmp_path / "own.yaml").write_text(text)
    space = load_space(["./own.yaml"], facts=FACTS, base=tmp_path)

    assert name_own_settings(space, {}) == ()


@pytest.mark.parametrize(
    ("server", "parameter", "owner"),
    [
        ("apache", "access_log: {kind: categorical, choices: ['on', 'off'], default: 'on'}", "nginx"),
        (
            "nginx",
            "CustomLog: {kind: categorical, choices: [combined], default: combined}",
            "apache, apache-mpm, apache-prefork, apache-worker",
        ),
        ("apache", "net.core.somaxconn: {kind: int, low: 1, high: 9, default: 2}", "sysctl"),
        ("php-fpm", "num-threads: {kind: int, low: 1, high: 9, default: 2}", "h2o"),
    ],
)
def test_a_setting_of_another_server_is_one_of_its_own(tmp_path, server, parameter, owner):
    name = parameter.partition(":")[0]

    assert own(tmp_path, parameter, server) == (f"space: {name} is a setting of {owner}, not of {server}",)


def test_a_name_that_only_builds_other_settings_may_not_be_written(tmp_path):
    (found,) = own(tmp_path, "MostWorkers: {kind: int, low: 1, high: 9, default: 2}")

    assert found == "space: MostWorkers is a setting that tuner's own search spaces do not have"


def test_a_value_that_is_in_force_on_the_host_was_not_chosen_by_the_author():
    current = {"net.ipv4.tcp_congestion_control": "dctcp"}
    facts = SpaceFacts(names=FACTS.names, current=current, sandbox=False, loopback=False)
    space = load_space(["sysctl-net"], facts=facts, base=Path("/"))

    assert name_own_settings(space, current) == ()
    assert name_own_settings(space, {}) != ()


@pytest.mark.parametrize("name", available_spaces())
def test_the_numbers_of_the_spaces_of_tuner_itself_are_no_larger_than_they_go_up_to(name):
    current = {"net.core.somaxconn": 9999, "net.ipv4.tcp_fin_timeout": 60}
    facts = SpaceFacts(names=FACTS.names, versions=FACTS.versions, current=current, loopback=False)

    assert name_large_numbers(load_space([name], facts=facts, base=Path("/")), facts) == ()


@pytest.mark.parametrize(
    ("own_text", "named"),
    [
        (
            "parameters: {worker_connections: {high: 3000000, default: 2500000}}",
            "worker_connections is 2500000",
        ),
        ("parameters: {worker_processes: {high: 500, default: 400}}", "worker_processes is 400"),
        (
            "parameters: {worker_processes: {high: 500}}\nset: {worker_processes: 400}",
            "worker_processes is 400",
        ),
        ("derived: {worker_rlimit_nofile: {value: 1000000}}", "worker_rlimit_nofile is 1000000"),
    ],
)
def test_a_number_that_would_cost_more_than_tuner_would_ever_ask_for_is_named(tmp_path, own_text, named):
    (tmp_path / "own.yaml").write_text(own_text)
    space = load_space(["nginx", "./own.yaml"], facts=FACTS, base=tmp_path)

    (found, *_) = name_large_numbers(space, FACTS)

    assert found.startswith(f"space: {named}, and tuner's own search spaces allow at most ")


@pytest.mark.parametrize(
    "own_text",
    [
        "parameters: {worker_connections: {high: 2000000}}",
        "set: {worker_processes: auto, worker_connections: 4096, keepalive_requests: 100000}",
        "parameters: {worker_connections: {low: 10, default: 20}}",
        "derived: {worker_rlimit_nofile: {value: 1024}}",
    ],
)
def test_a_wider_range_and_other_numbers_within_it_need_no_trust(tmp_path, own_text):
    (tmp_path / "own.yaml").write_text(own_text)
    space = load_space(["nginx", "./own.yaml"], facts=FACTS, base=tmp_path)

    assert name_large_numbers(space, FACTS) == ()


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
    ["", "optimizer: 'os:system'\n", "warm_start: [/etc/shadow]\n"],
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

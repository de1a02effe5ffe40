"""Every block of README and docs does what its page says when it is pasted."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import optuna
import pytest

from tests.e2e.command_line import CommandLine
from tests.unit.editor import find_faults
from tuner.campaign.prepare import prepare
from tuner.commands.contests.compare import resolve
from tuner.commands.template import write_study
from tuner.ports import HTTP
from tuner.space import SpaceFacts, load_space
from tuner.space.yaml_text import read_yaml
from tuner.study import Study, load_study, load_values
from tuner.study.schema import json_schema

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDES = ("index", "install", "studies", "commands", "managed", "recipes", "optimizer", "spaces")
TUTORIALS = ("tutorial-nginx-tls", "tutorial-php", "tutorial-several-hosts")
PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in GUIDES))
"""docs/adding-a-server.md and docs/own-servers.md are followed by tests of their own."""
WITH_PARTS = (*PAGES, "docs/corpus.md", "docs/workers.md", *(f"docs/{name}.md" for name in TUTORIALS))
"""Pages with parts of a study to paste."""
USERS_NAMESPACES = "kernel.apparmor_restrict_unprivileged_userns=0"
INSTALL_WHEEL = ["install", "./servertuner-*-py3-none-any.whl"]
"""tests/packaging installs that wheel with the lines of the CI jobs."""
FACTS = SpaceFacts(
    names={
        "cores": 2, "memory_mib": 4096, "connections": 100, "open_files_max": 65536, "somaxconn": 4096,
        "a": 1, "b": 2,
    },
    versions={"nginx": (1, 22, 1)},
    load={"keepalive": True, "pages": 1, "loopback": True, "installed": False},
    sandbox=True,
)  # fmt: skip
RULES = """\
space: rules
server: nginx
title: What the rules of the page are about
parameters:
  one: {kind: int, low: 1, high: 9, default: 1}
  two: {kind: int, low: 1, high: 9, default: 2}
  worker_processes: {kind: int, low: 1, high: 9, default: 2}
  worker_connections: {kind: int, low: 256, high: 9999, default: 768}
"""
MORE = (
    "space: more\nserver: nginx\ntitle: More\nparameters:\n  own: {kind: int, low: 1, high: 9, default: 1}\n"
)


def blocks_of(page: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / page).read_text()) if kind == language]


def keys_of(text: str) -> list[str]:
    return re.findall(r"^(\w+):", text, re.MULTILINE)


def paste(folder: Path, block: str) -> Study:
    """Put a block into the study that `tuner init nginx` writes, in place of what it has there."""
    path = write_study("nginx", folder / "nginx.yaml")
    document = path.read_text()
    instead = {"loads": "load", "targets": "target"}
    for key in (*keys_of(block), *(instead[each] for each in keys_of(block) if each in instead)):
        document = re.sub(rf"(?m)^{key}:.*\n(?:[ -].*\n)*", "", document)
    (folder / "www").mkdir()
    (folder / "www/index.html").write_text("a page\n")
    (folder / "more.yaml").write_text(MORE)
    for page in re.findall(r'path: "?/([a-z]+)"?[,}\s]', block):
        # A page of the reader's own: the built-in content has no such one.
        (folder / "www" / page).write_text("<html>a page of the application</html>\n")
        document = re.sub(r"(?m)^content:.*\n", "", document) + f"content: {folder / 'www'}\n"
    path.write_text(document + block.replace("/srv/www", str(folder / "www")))
    return load_study(path)


def is_of_a_study(block: str) -> bool:
    """Return whether a block is a part of a study; others are parts of a space."""
    keys = keys_of(block)
    return bool(keys) and not {"parameters", "derived", "presets", "elsewhere", "parts"} & set(keys)


@pytest.mark.parametrize(
    "block", [block for page in WITH_PARTS for block in blocks_of(page, "yaml") if is_of_a_study(block)]
)
def test_a_part_of_a_study_can_be_pasted_into_the_one_that_init_writes(tmp_path: Path, block: str):
    settings = paste(tmp_path, block)

    assert find_faults((tmp_path / "nginx.yaml").read_text(), json_schema()) == []
    if settings.targets is not None:  # there are no such hosts
        assert settings.targets.hosts[0] == "ssh://root@web1"
        return
    if settings.target.is_managed:  # there is no such host
        assert settings.target.host in {"ssh://deploy@web1", "local"}
        return
    assert prepare(settings).space.dimensions


@pytest.mark.parametrize("block", blocks_of("docs/spaces.md", "yaml"))
def test_a_part_of_a_space_is_one(tmp_path: Path, block: str):
    if is_of_a_study(block):
        return
    if block.startswith("  "):  # of a parameter that nginx has
        refinement = read_yaml(f"parameters:\n{block}".encode(), "page.yaml")
        space = load_space(["nginx", refinement], facts=FACTS, base=tmp_path)
    elif "space" in keys_of(block):
        space = load_space([read_yaml(block.encode(), "page.yaml")], facts=FACTS, base=tmp_path)
    else:
        text = RULES + block.replace("a <= b", "one <= two")
        space = load_space([read_yaml(text.encode(), "page.yaml")], facts=FACTS, base=tmp_path)
    assert space.dimensions


@pytest.mark.parametrize("block", blocks_of("docs/optimizer.md", "python"))
def test_code_runs_as_it_stands(block: str):
    short = block.replace("n_trials=40", "n_trials=4")
    assert short != block
    names: dict[str, object] = {"load": lambda threads: (1000.0 + threads, 1e-4, 0.0)}

    exec(short, names)  # noqa: S102 - the page's own

    study = names["study"]
    assert isinstance(study, optuna.Study)
    assert len(study.trials) == 4


def test_a_recipe_of_a_page_can_be_compared(tmp_path: Path):
    (shown,) = re.findall(r"(?s)\$ cat recipe.yaml\n(.*?)\$ ", (ROOT / "docs/commands.md").read_text())
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(shown)
    setup = prepare(load_study(write_study("nginx", tmp_path / "nginx.yaml")))

    config = resolve(setup.settings, setup, load_values(recipe))

    assert {name: config[name] for name in ("worker_processes", "multi_accept")} == {
        "worker_processes": 4, "multi_accept": True,
    }  # fmt: skip


def commands_of(page: str) -> list[list[str]]:
    """Return the commands of a page, without the remarks behind them."""
    lines = [line for block in blocks_of(page, "console") for line in block.splitlines()]
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


EVERY_PAGE = (
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
)
TUNER_COMMANDS = [command for page in EVERY_PAGE for command in commands_of(page) if command[0] == "tuner"]
OTHER_COMMANDS = [command for page in PAGES for command in commands_of(page) if command[0] != "tuner"]
ON_THIS_MACHINE = {"init", "check", "spaces", "adapters"}
"""Commands that are run here; the others measure, or need a host, and are run by tests of their own."""
LOGS = {"access.log", "access.log*", "/var/log/apache2/access.log", "site.har", "timed.log", "host"}
"""Logs of other hosts, which tests of logs have of their own: in tests/e2e and tests/integration."""
ELSEWHERE = {
    "web.yaml",
    "web1.yaml",
    "own.yaml",
    "app.yaml",
    "ssh://deploy@web1",
    "ssh://root@web1",
    "lighttpd",
    "lighttpd.yaml",
    "./shared",
    *LOGS,
}
"""Studies of other hosts, of programs that may be missing, or with tests of their own; a corpus of others."""


def test_every_command_of_a_page_is_understood(tmp_path: Path):
    """Options and arguments are read as they stand; `--help` behind them ends it before anything is done."""
    for command in TUNER_COMMANDS:
        ended = CommandLine(tmp_path).call(*command[1:], "--help")

        assert ended.returncode == 0, f"{shlex.join(command)}\n{ended.stderr}"


def test_the_commands_of_the_pages_that_need_no_result_run_in_their_order(tmp_path: Path):
    tuner = CommandLine(tmp_path)
    write_study("apache", tmp_path / "apache.yaml")
    ran = []
    for command in TUNER_COMMANDS:
        is_here = len(command) > 1 and command[1] in ON_THIS_MACHINE and not ELSEWHERE & set(command)
        if is_here and command not in ran:
            ended = tuner.call(*command[1:])
            assert ended.returncode == 0, f"{shlex.join(command)}\n{ended.stdout}{ended.stderr}"
            ran.append(command)

    assert len(ran) >= 6


@pytest.mark.parametrize("command", sorted(set(map(tuple, OTHER_COMMANDS))), ids=" ".join)
def test_the_other_commands_of_the_pages_name_what_is_there(command: tuple[str, ...]):
    program, *arguments = command
    if program == "make":
        ended = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, check=False)
        assert ended.returncode == 0
    elif program == "cat":
        assert arguments == ["recipe.yaml"], "the block shows what it prints"
    elif program in {"python3", "~/tuner/bin/pip", "~/tuner/bin/tuner", "pipx", ".venv/bin/pip"}:
        known = (
            ["-m", "venv", "~/tuner"], ["-m", "venv", ".venv"], ["install", "."], ["--help"], INSTALL_WHEEL,
            ["wheel", "--no-deps", "--wheel-dir", "dist", "."], ["install", "servertuner[fleet]"],
        )  # fmt: skip
        assert arguments in known, "tests/packaging installs it into an environment of its own"
    elif program == "sudo":
        known = (["apt", "install", "./dist/servertuner_*.deb"], ["sysctl", USERS_NAMESPACES])
        assert arguments in known, "tests/packaging installs it; Ubuntu alone has that key"
    elif program.startswith(".venv/bin/"):
        assert (Path(sys.executable).with_name(Path(program).name)).exists()
        paths = [each for each in arguments if "/" in each and not each.startswith("-")]
        assert all((ROOT / each).exists() for each in paths)
    else:
        raise AssertionError(f"nobody runs {shlex.join(command)}: add how to this test")


@pytest.mark.parametrize("server", ["sysctl", "nginx", "apache", "h2o", "php-fpm"])
def test_a_study_that_init_writes_can_be_prepared_and_something_serves_in_it(tmp_path: Path, server: str):
    setup = prepare(load_study(write_study(server, tmp_path / f"{server}.yaml")))

    assert server in setup.settings.servers
    assert {setup.space.server_of(each.parameter) for each in setup.space.dimensions} == {server}
    assert any(facts.port is not None and facts.speaks == HTTP for facts in setup.facts.values())

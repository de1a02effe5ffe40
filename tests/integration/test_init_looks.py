"""`tuner init` alone: what it finds among this machine's programs, asks, and writes."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command_line import TUNER, CommandLine
from tests.integration.test_init_installed import SERVE, run_apart
from tests.more import leave_to_more
from tuner.study import load_study

OTHERS = "apache2 apache2ctl caddy h2o haproxy php-fpm8.* nginx"


def without(*programs: str) -> str:
    """Return the lines of a shell after which programs cannot be run, in a mount namespace."""
    names = " ".join(f"/usr/sbin/{each} /usr/bin/{each}" for each in programs)
    return f'for each in {names}; do if [ -e "$each" ]; then mount --bind /dev/null "$each"; fi; done'


ALONE = without(*(each for each in OTHERS.split() if each != "nginx"))
"""Only nginx is left."""


def test_the_only_server_is_taken(tmp_path: Path):
    done = run_apart(tmp_path, f"{ALONE}\n{TUNER} init --json\n{TUNER} check nginx.yaml")

    assert done.returncode == 0, done.stderr
    told, _ = json.JSONDecoder().raw_decode(done.stdout)
    assert (told["file"], told["servers"], told["mode"], told["missing"]) == (
        "nginx.yaml", ["nginx"], "sandbox", [],
    )  # fmt: skip
    assert [each["server"] for each in told["found"]] == ["nginx"]
    assert "ready      tuner run nginx.yaml" in done.stdout


def test_a_generator_that_is_there_is_taken_and_a_missing_one_is_named(tmp_path: Path):
    done = run_apart(
        tmp_path,
        f"{ALONE}\n{without('wrk')}\n{TUNER} init -o one.yaml --json\n"
        f"{without('h2load', 'ab')}\n{TUNER} init -o none.yaml --json",
    )

    assert done.returncode == 0, done.stderr
    one, end = json.JSONDecoder().raw_decode(done.stdout)
    none = json.loads(done.stdout[end:])
    assert (one["generator"], one["missing"]) == ("h2load", [])
    assert none["generator"] == "wrk"
    assert "apt-get install wrk" in none["missing"][0]
    assert none["missing"][0] in done.stderr


def test_nothing_installed_is_said_with_what_to_install(tmp_path: Path):
    done = run_apart(tmp_path, f"{without(*OTHERS.split())}\n{TUNER} init")

    assert done.returncode == 3
    assert "apt-get install apache2" in done.stderr
    assert not list(tmp_path.glob("*.yaml"))


def test_what_runs_comes_first_and_settings_of_the_kernel_find_the_page_that_it_serves(tmp_path: Path):
    done = run_apart(tmp_path, f"{SERVE}\n{TUNER} init --json || true\n{TUNER} init sysfs")

    told, _ = json.JSONDecoder().raw_decode(done.stdout)
    running = [each["running"] for each in told["found"]]
    assert {each["server"] for each in told["found"] if each["running"]} == {"nginx", "php-fpm"}
    assert running == sorted(running, reverse=True)
    assert done.returncode == 0, done.stderr
    study = load_study(tmp_path / "sysfs.yaml")
    assert study.target.is_managed
    assert study.load.path == "http://127.0.0.1:80/"


def test_a_server_is_named_by_an_option_as_well(tmp_path: Path):
    command = CommandLine(tmp_path)

    assert command.call("init", "--server", "nginx").stdout == "nginx.yaml\n"
    twice = command.call("init", "apache", "--server", "nginx")
    assert twice.returncode == 2
    assert "--server: nginx, but the argument is apache. Name one server." in twice.stderr


def test_without_a_terminal_several_are_listed_with_their_commands(tmp_path: Path):
    done = CommandLine(tmp_path).call("init")

    assert done.returncode == 2
    assert "tuner init nginx" in done.stderr
    assert "tuner init apache" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "code", "file"),
    leave_to_more(
        [
            ("99\n1\n", 0, "apache.yaml"),
            ("apache-worker\n", 0, "apache-worker.yaml"),
            ("\x04", 130, None),
            ("nginx\n", 0, "nginx.yaml"),
        ],
        ("99\n1\n", 0, "apache.yaml"),
        ("apache-worker\n", 0, "apache-worker.yaml"),
        ("\x04", 130, None),
    ),
    ids=["by its number, at the second try", "another way of it", "not at all", "by its name"],
)
def test_on_a_terminal_it_asks(tmp_path: Path, typed: str, code: int, file: str | None):
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    with os.fdopen(theirs) as terminal:
        done = subprocess.run(
            [TUNER, "init"], stdin=terminal, capture_output=True, text=True, cwd=tmp_path, check=False
        )
    os.close(ours)

    assert done.returncode == code, done.stderr
    assert "Which one" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ([file] if file else [])
    assert done.stdout.split() == ([file] if file else [])

"""The locked requirements, which `make setup` installs by hash."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ("run.txt", "dev.txt", "bench.txt", "schemas.txt", "ansible-lint.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(lock: str) -> dict[str, set[str]]:
    """Read name → versions (one for each range of Python versions)."""
    pinned: dict[str, set[str]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements" / lock).read_text(), re.MULTILINE
    ):
        pinned.setdefault(canonicalize_name(name), set()).add(version)
    return pinned


def assert_satisfied(requirements: list[str], lock: str) -> None:
    for requirement in map(Requirement, requirements):
        versions = pins(lock).get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement} is not in {lock}: run `make lock`"
        assert all(requirement.specifier.contains(version) for version in versions)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_neither_a_package_index_nor_a_place_on_a_machine(lock: str):
    text = (ROOT / "requirements" / lock).read_text()

    assert "://" not in text
    assert not re.search(r"(^|\s)(-i|--index-url|--extra-index-url|--find-links|-e)\b", text)
    assert not re.search(r"(^|\s)/\w", text)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_a_hash(lock: str):
    entries = re.split(r"\n(?=\w)", (ROOT / "requirements" / lock).read_text().strip())

    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_locks_hold_what_pyproject_asks_for():
    groups = PROJECT["dependency-groups"]
    dev = [requirement for requirement in groups["dev"] if isinstance(requirement, str)]

    assert_satisfied(PROJECT["project"]["dependencies"] + groups["build"], "run.txt")
    extras = PROJECT["project"]["optional-dependencies"]
    assert_satisfied(dev + extras["notebooks"] + extras["websocket"], "dev.txt")


def test_the_peers_of_the_optimizer_are_locked_beside_what_it_needs_itself():
    wanted = PROJECT["dependency-groups"]["bench"] + PROJECT["project"]["dependencies"]

    assert_satisfied(wanted, "bench.txt")
    assert all(pins("bench.txt")[name] == pins("run.txt")[name] for name in ("numpy", "optuna", "scipy"))


def test_the_tests_run_with_the_versions_that_users_run_with():
    assert pins("run.txt").items() <= pins("dev.txt").items()

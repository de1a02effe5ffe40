"""The Debian package: built, judged, and installed on a test host, where it is used and removed again."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.bed import Testbed
from tests.testbed.host import TestHost, User
from tests.testbed.processors import idle_processors
from tuner import __version__

ROOT = Path(__file__).parents[2]
PRIVATE = "/usr/lib/servertuner"
ELSEWHERE = {
    "/usr/bin/tuner",
    "/usr/share/bash-completion/completions/tuner",
    "/usr/share/doc/servertuner/changelog.Debian.gz",
    "/usr/share/doc/servertuner/changelog.gz",
    "/usr/share/doc/servertuner/copyright",
    "/usr/share/fish/vendor_completions.d/tuner.fish",
    "/usr/share/lintian/overrides/servertuner",
    "/usr/share/man/man1/tuner.1.gz",
    "/usr/share/zsh/vendor-completions/_tuner",
}
PLACES_OF_PACKAGES = ("/etc", "/opt", "/srv", "/usr", "/var")
NOTED_BY_THE_SYSTEM = ("/var/cache/", "/var/lib/dpkg/", "/var/log/")
"""Where the system itself keeps what was installed once, and its indexes."""

pytestmark = pytest.mark.deb


def make_deb(folder: Path, **variables: str) -> Path:
    environment = {**os.environ, "BIN": str(Path(sys.executable).parent), **variables}
    subprocess.run([ROOT / ".ci/deb", folder], env=environment, capture_output=True, check=True)
    (deb,) = folder.iterdir()
    return deb


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_deb(tmp_path_factory.mktemp("deb"), SOURCE_DATE_EPOCH="1700000000")


def ask(*argv: str | Path) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def files_of(deb: Path) -> dict[str, str]:
    """Return path → mode and owner of what is in a package, folders left out."""
    listed = re.findall(
        r"^(\S+ \S+) +\S+ \S+ \S+ \.(/.+?)(?: -> .+)?$", ask("dpkg-deb", "--contents", deb), re.MULTILINE
    )
    return {path: mode for mode, path in listed if not path.endswith("/")}


def test_lintian_has_nothing_to_say(deb: Path):
    judged = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", deb],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    told = [line for line in judged.stdout.splitlines() if not line.startswith("N:")]
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert told == []


def test_each_exception_from_what_lintian_wants_has_its_reason():
    text = (ROOT / ".ci/debian/servertuner.lintian-overrides").read_text()

    groups = text.strip().split("\n\n")
    assert all(group.startswith("# ") and not group.splitlines()[-1].startswith("#") for group in groups)


def test_it_holds_the_command_its_pages_and_one_private_environment(deb: Path):
    files = files_of(deb)

    assert {path for path in files if not path.startswith(f"{PRIVATE}/")} == ELSEWHERE
    assert all(re.fullmatch(r"(l.*|-rw-r--r--|-rwxr-xr-x) root/root", mode) for mode in files.values())
    assert not [path for path in files if "/tests/" in path or "__pycache__" in path or "/pip/" in path]


def test_the_packages_in_it_are_those_of_the_bill_of_materials_each_with_its_license(
    deb: Path, tmp_path: Path
):
    subprocess.run(["dpkg-deb", "--extract", deb, tmp_path], check=True)
    (bill,) = (ROOT / "build/deb/dist").glob("*.cdx.json")
    components = json.loads(bill.read_text())["components"]
    metadata = {path.parent.name.partition("-")[0]: path for path in tmp_path.rglob("*.dist-info/METADATA")}
    terms = (tmp_path / "usr/share/doc/servertuner/copyright").read_text()

    named = {each["name"].replace("-", "_") for each in components}
    assert metadata.keys() == {*named, "servertuner"}
    for name in named:
        (paragraph,) = re.findall(
            rf"^Files:[^:]*/{name}-[\d.]+\.dist-info/\*\n.*?(?=^Files:|\Z)", terms, re.MULTILINE | re.DOTALL
        )
        assert re.search(r"^Copyright: \S", paragraph, re.MULTILINE)
        assert re.search(r"^License: \S.*\n \S", paragraph, re.MULTILINE)


def test_another_day_zone_and_locale_give_the_same_bytes(deb: Path, tmp_path: Path):
    again = make_deb(
        tmp_path, SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="1"
    )

    assert again.name == deb.name
    assert again.read_bytes() == deb.read_bytes()


@pytest.fixture(scope="module")
def host(bed: Testbed) -> TestHost:
    """A host like this machine, with room for the package, and with somebody who is no administrator."""
    return bed.add_host("debian", user=User(name="maria"), disk="2g")


@pytest.fixture(scope="module")
def untouched(host: TestHost) -> set[str]:
    return look_at(host)


def look_at(host: TestHost) -> set[str]:
    """List what packages may install, but not what the system itself notes."""
    listed = host.run(["find", *PLACES_OF_PACKAGES, "-xdev"]).stdout.decode()
    return {path for path in listed.splitlines() if not path.startswith(NOTED_BY_THE_SYSTEM)}


@pytest.fixture(scope="module")
def installed(deb: Path, host: TestHost, untouched: set[str]) -> TestHost:  # noqa: ARG001 - looked at before
    """Install the package, as an administrator does."""
    host.run(["tee", "/home/tuner.deb"], stdin=deb.read_bytes())
    host.run(["dpkg", "--install", "/home/tuner.deb"], timeout_s=300)
    return host


def run_as_user(host: TestHost, command: str) -> "subprocess.CompletedProcess[bytes]":
    return host.run(["su", "--login", "maria", "-c", command], check=False, timeout_s=240)


def test_the_command_answers_with_its_adapters_its_page_and_its_completion(installed: TestHost):
    version = run_as_user(installed, "tuner --version")
    adapters = run_as_user(installed, "tuner adapters --json")
    page = run_as_user(installed, "man --where tuner")
    completed = run_as_user(
        installed,
        "bash -c '. /usr/share/bash-completion/completions/tuner && complete -p tuner'",
    )

    assert __version__ in version.stdout.decode(), version.stderr
    assert {"nginx", "wrk", "ssh"} <= {each["name"] for each in json.loads(adapters.stdout)}
    assert page.stdout.decode() == "/usr/share/man/man1/tuner.1.gz\n"
    assert completed.returncode == 0, completed.stderr


def test_what_it_imports_is_compiled_and_its_own(installed: TestHost):
    script = "import numpy, optuna, tuner.cli; print(numpy.__file__, numpy.__cached__, optuna.__file__)"

    told = run_as_user(installed, f"{PRIVATE}/bin/python3 -c '{script}'").stdout.decode().split()

    assert len(told) == 3
    assert all(path.startswith(f"{PRIVATE}/lib/") for path in told)
    assert (installed.root / told[1].removeprefix("/")).exists()


def test_an_ordinary_user_tunes_with_it_to_a_verdict(installed: TestHost):
    budget = "--preset quick --minutes 0.4 --trials 2"
    with idle_processors(installed):
        made = run_as_user(installed, "tuner init nginx -o nginx.yaml")
        checked = run_as_user(installed, "tuner check nginx.yaml")
        ran = run_as_user(installed, f"tuner run nginx.yaml {budget}")

    assert made.returncode == 0, made.stderr
    assert checked.returncode == 0, checked.stderr
    assert ran.returncode in {0, 1}, ran.stderr
    assert b" against default" in ran.stdout or b"nothing" in ran.stdout
    assert (installed.root / "home/maria/nginx.study/report.html").exists()


def test_removed_it_leaves_nothing_behind(installed: TestHost, untouched: set[str]):
    """The last test: afterwards the host is without it."""
    installed.run(["dpkg", "--purge", "servertuner"], timeout_s=120)

    changed = look_at(installed) ^ untouched
    # What this machine changes meanwhile shows through.
    assert {path for path in changed if Path(path).exists() != (installed.root / path[1:]).exists()} == set()
    assert b"servertuner" not in (installed.root / "var/lib/dpkg/status").read_bytes()


def test_the_packages_of_this_machine_are_as_they_were():
    assert b"servertuner" not in Path("/var/lib/dpkg/status").read_bytes()

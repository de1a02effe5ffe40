"""What `make dist` leaves, and that what it leaves is all that an ordinary user needs."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration.everybody import AS_NOBODY, python_for_everybody
from tests.packaging.test_locks import pins
from tests.testbed.processors import idle_processors_here
from tuner import __version__

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
OTHER = {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C", "COLUMNS": "40"}


def make_dist(folder: Path, **variables: str) -> Path:
    environment = {**os.environ, "BIN": str(Path(sys.executable).parent), **variables}
    subprocess.run([ROOT / ".ci/dist", folder], env=environment, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dist(tmp_path_factory.mktemp("dist"), SOURCE_DATE_EPOCH="1700000000")


def test_all_of_it_is_there_with_its_checksums(dist: Path):
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}

    own = f"servertuner-{__version__}"
    assert sums.keys() == {
        f"{own}-py3-none-any.whl", f"{own}.tar.gz", f"{own}.cdx.json", "tuner.1", "tuner.bash", "tuner.zsh",
        "tuner.fish",
    }  # fmt: skip
    assert sums.keys() | {"SHA256SUMS"} == {path.name for path in dist.iterdir()}
    assert all(hashlib.sha256((dist / name).read_bytes()).hexdigest() == sums[name] for name in sums)
    assert all((dist / name).stat().st_size for name in sums)


def test_another_day_zone_locale_and_folder_give_the_same_bytes(dist: Path, tmp_path: Path):
    again = make_dist(tmp_path / "again", SOURCE_DATE_EPOCH="1700000000", **OTHER)

    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in dist.iterdir()
    }


def test_the_bill_of_materials_names_what_is_installed_and_no_more(dist: Path):
    bill = json.loads((dist / f"servertuner-{__version__}.cdx.json").read_text())
    locked = {(name, version) for name, versions in pins("run.txt").items() for version in versions}
    listed = {(each["name"], each["version"]) for each in bill["components"]}

    left_out = {name for name, _ in locked - listed}
    assert listed <= locked
    assert left_out == {"colorama", "hatchling", "pathspec", "pluggy", "tomlkit", "trove-classifiers"}
    assert all(each["hashes"] for each in bill["components"])
    refs = {each["bom-ref"] for each in bill["components"]}
    (own,) = (each for each in bill["dependencies"] if each["ref"] not in refs)
    assert {ref.partition("@")[0] for ref in own["dependsOn"]} >= {"pkg:pypi/optuna", "pkg:pypi/typer"}
    assert all({*each["dependsOn"]} <= refs for each in bill["dependencies"])


@pytest.fixture(scope="module")
def home(dist: Path) -> Iterator[Path]:
    """Install the wheel where nobody may run it, without the checkout; dependencies are borrowed."""
    place = Path(tempfile.mkdtemp(dir="/tmp", prefix="tuner-"))  # pytest's own directories are private
    place.chmod(0o755)
    try:
        subprocess.run([python_for_everybody(), "-m", "venv", "--without-pip", place / "venv"], check=True)
        (site,) = place.glob("venv/lib/python*/site-packages")
        assert site.parent.name == f"python{sysconfig.get_python_version()}", "the borrowed packages need it"
        argv = [sys.executable, "-m", "pip", "--python", place / "venv/bin/python", "install", "--quiet"]
        (wheel,) = dist.glob("*.whl")
        subprocess.run([*argv, "--no-deps", "--no-index", wheel], check=True)
        _borrow(Path(sysconfig.get_path("purelib")), site)
        (place / "home").mkdir()
        shutil.chown(place / "home", "nobody", "nogroup")
        yield place / "home"
    finally:
        shutil.rmtree(place)


def test_the_jobs_of_ci_install_the_wheel_as_the_page_does(dist: Path, tmp_path: Path):
    """Their lines run in a folder that has the wheel next to the study, and name no package of an index."""
    examples = ROOT / "docs/examples"
    github = yaml.safe_load((examples / "github-actions.yaml").read_text())
    gitlab = yaml.safe_load((examples / "gitlab-ci.yaml").read_text())
    said = [step["run"] for job in github["jobs"].values() for step in job["steps"] if "run" in step]
    jobs = ["\n".join(said).splitlines(), gitlab["no-slower"]["before_script"]]
    page = (ROOT / "docs/install.md").read_text()

    for number, lines in enumerate(jobs):
        install = [line for line in lines if "python3 -m venv" in line or "/pip " in line]
        assert len(install) == 2
        assert all(f"$ {line}\n" in page for line in install)
        folder = tmp_path / str(number)
        folder.mkdir()
        (wheel,) = dist.glob("*.whl")
        shutil.copy(wheel, folder)
        # No index, and what tuner needs is on the path.
        offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
        script = "\n".join(["set -e", *install])
        ran = subprocess.run(["sh", "-c", script], cwd=folder, env=offline, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert (folder / ".venv/bin/tuner").exists()


def _borrow(purelib: Path, site: Path) -> None:
    """Copy the packages of run.txt, so that neither the checkout nor a private home is on the path."""
    for each in purelib.iterdir():
        if (
            each.name.startswith(("servertuner", "_servertuner", "__pycache__"))
            or (site / each.name).exists()
        ):
            continue
        if each.is_dir():
            shutil.copytree(each, site / each.name, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        elif each.suffix in {".py", ".so"}:
            shutil.copy(each, site)


def run_as_nobody(
    home: Path, *arguments: str, through: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    program = home.parent / "venv/bin/tuner"
    environment = ("env", "-i", f"HOME={home}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8")
    return subprocess.run(
        [*through, *AS_NOBODY, *environment, program, *arguments],
        cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_wheel_alone_tunes_as_an_ordinary_user(home: Path):
    made = run_as_nobody(home, "init", "nginx")
    with idle_processors_here() as through:
        ran = run_as_nobody(
            home,
            "run",
            "nginx.yaml",
            "--preset",
            "quick",
            "--minutes",
            "0.4",
            "--trials",
            "2",
            through=through,
        )

    assert made.returncode == 0, made.stderr
    assert ran.returncode in {0, 1}, ran.stderr
    assert " against default" in ran.stdout or "nothing" in ran.stdout
    assert (home / "nginx.study/report.html").stat().st_uid == home.stat().st_uid
    first = (home / "nginx.yaml").read_text().splitlines()[0]
    assert f"file://{home.parent}/venv/lib/" in first

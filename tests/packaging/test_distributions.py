"""What is published: the wheel and the source distribution, built as a release builds them."""

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path, PurePosixPath

import pytest

from tuner import __version__

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
SOURCES = ("tuner", "adapters", "search_spaces", "notebooks", "tests", "requirements")
TOP_FILES = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile"}


def build(kind: str, tree: Path, destination: Path) -> Path:
    """Build a distribution of a tree without network or isolation."""
    argv = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", destination]
    built = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = destination.iterdir()
    return file


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (tree,) = place.iterdir()
    return tree


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_of_sdist(unpacked: Path, tmp_path_factory: pytest.TempPathFactory):
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel-of-sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory):
    """Install the wheel into an environment of its own, which borrows the dependencies of this one."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin/python"
    argv = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    subprocess.run(argv, check=True)
    # A .pth line adds a folder to the path without reading the .pth files in that folder: the checkout, which
    # this environment has by such a file, stays out.
    (site,) = place.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_below(folder: Path) -> set[str]:
    """Name the source files below a folder, relative to the checkout, links followed."""
    return {
        str(PurePosixPath(folder.relative_to(ROOT), path.relative_to(folder.resolve())))
        for path in folder.resolve().rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }


def run(argv: list[str | Path], cwd: Path) -> str:
    ran = subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_wheel_puts_nothing_but_tuner_into_site_packages(wheel: Path):
    assert {name.partition("/")[0] for name in members(wheel)} == {
        "tuner",
        f"servertuner-{__version__}.dist-info",
    }


def test_the_wheel_holds_every_module_adapter_and_search_space(wheel: Path):
    own = {
        name
        for name in files_below(ROOT / "tuner")
        if not name.startswith(("tuner/adapters", "tuner/search_"))
    }
    linked = files_below(ROOT / "tuner/adapters") | files_below(ROOT / "tuner/search_spaces")

    assert own | linked <= members(wheel)
    assert any(name.startswith("tuner/adapters/servers/") for name in linked)
    assert any(name.startswith("tuner/search_spaces/") for name in linked)


def test_the_wheel_names_the_command_and_the_license(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        metadata = message_from_bytes(archive.read(f"servertuner-{__version__}.dist-info/METADATA"))
        points = archive.read(f"servertuner-{__version__}.dist-info/entry_points.txt").decode()

    assert metadata["Name"] == "servertuner"
    assert metadata["License-Expression"] == "MIT"
    assert "tuner = tuner.cli:main" in points


def test_the_source_distribution_is_complete(unpacked: Path):
    wanted = TOP_FILES | {".ci/run", ".pre-commit-config.yaml"}
    for folder in SOURCES:
        wanted |= files_below(ROOT / folder)

    there = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}

    assert wanted <= there, sorted(wanted - there)


def test_the_wheel_of_the_source_distribution_is_the_wheel_of_the_tree(wheel: Path, wheel_of_sdist: Path):
    assert members(wheel_of_sdist) == members(wheel)
    assert wheel_of_sdist.read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_building_twice_gives_the_same_bytes(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    assert build(kind, ROOT, tmp_path).read_bytes() == request.getfixturevalue(kind).read_bytes()


def test_the_installed_command_runs_outside_the_checkout(installed: Path, tmp_path: Path):
    assert __version__ in run([installed / "bin/tuner", "--version"], tmp_path)


def test_the_installed_package_brings_its_spaces_and_adapters(installed: Path, tmp_path: Path):
    script = (
        "import tuner.space, tuner.plugins\n"
        "print(tuner.__file__)\n"
        "print(*tuner.space.available_spaces())\n"
        "print(tuner.plugins.make_server('nginx').name)\n"
    )

    file, spaces, server = run([installed / "bin/python", "-c", script], tmp_path).splitlines()

    assert Path(file).is_relative_to(installed)
    assert "nginx" in spaces.split()
    assert server == "nginx"

"""On a full disk what was there stays, and nothing is left by halves: a small tmpfs in a mount namespace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREPARE = 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"'
REPORT = """
import sys
from pathlib import Path
from tests.unit.simulated_study import make_summary, small_space
from tests.unit.simulation import make_setup, write_study
from tuner.commands.page import make_page, write_page
from tuner.commands.session import Reading
from tuner.errors import TargetError
from tuner.study.folder import write_file

disk = Path(sys.argv[1])
settings = write_study(disk)
folder = settings.folder
write_file(folder / "report.html", b"the old one", study_folder=folder)
(disk / "page.html").write_text("the old one")
setup = make_setup(settings, small_space())
reading = Reading(settings=settings, space=setup.space, summary=make_summary(searches=6), setup=setup)
for output in (None, disk / "page.html"):
    try:
        write_page(settings, make_page(reading), output)
    except TargetError as error:
        print(error)
for path in (folder / "report.html", disk / "page.html"):
    print(path.name, path.read_text())
print(sorted(path.name for path in (*folder.iterdir(), *disk.iterdir())))
"""


def run_on_small_disk(folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    apart = ["unshare", *user, "--mount", "sh", "-c", PREPARE, str(folder), *map(str, command)]
    return subprocess.run(apart, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    path.mkdir()
    return path


def test_the_old_report_stays_when_the_new_one_does_not_fit(disk: Path):
    ended = run_on_small_disk(disk, sys.executable, "-c", REPORT, disk)

    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, ended.stderr
    assert [line.rpartition(": ")[2] for line in lines[:2]] == [
        "cannot be written (No space left on device). Check the folder, its permissions and free space."
    ] * 2
    assert lines[2:4] == ["report.html the old one", "page.html the old one"]
    assert ".page" not in lines[4], "nothing that was begun is left"
    assert ".report" not in lines[4]


def test_init_leaves_no_study_that_is_not_whole(disk: Path):
    fill = 'head -c 1M /dev/zero > "$0/filler" 2>/dev/null; "$1" init nginx -o "$0/nginx.yaml"; code=$?; '
    look = 'ls "$0"; rm "$0/filler"; "$1" init nginx -o "$0/nginx.yaml" >/dev/null && exit $code'
    tuner = Path(sys.executable).with_name("tuner")

    ended = run_on_small_disk(disk, "sh", "-c", fill + look, disk, tuner)

    assert ended.returncode == 3, ended.stderr
    assert "nginx.yaml: cannot be written (No space left on device)" in ended.stderr
    assert ended.stdout.split() == ["filler"]

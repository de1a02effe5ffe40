"""`make release` sets the version and dates the changelog, or refuses before it changes anything."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tuner import __version__

ROOT = Path(__file__).parents[2]
NEXT = f"{int(__version__.split('.')[0]) + 1}.0.0"
ENTRY = "- `tuner check` names a new thing."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a committed checkout of the files that a release touches, with one unreleased entry."""
    for name in (".ci/release", "tuner/__init__.py", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    write_unreleased(tmp_path, f"\n### Added\n\n{ENTRY}\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "All")
    return tmp_path


def write_unreleased(checkout: Path, entries: str) -> None:
    text = (checkout / "CHANGELOG.md").read_text()
    (checkout / "CHANGELOG.md").write_text(
        re.sub(r"(?s)(## \[Unreleased\]\n).*?(?=\n## \[)", lambda head: head[1] + entries, text)
    )


def git(checkout: Path, *words: str) -> str:
    identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")
    return subprocess.run(
        ["git", *identity, *words], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout


def release(checkout: Path, version: str, checks: str = "true") -> subprocess.CompletedProcess[str]:
    person = {
        f"GIT_{role}_{key}": "tester@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for key in ("NAME", "EMAIL")
    }
    return subprocess.run(
        [checkout / ".ci/release", version], env={**os.environ, **person, "CHECKS": checks},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_release_sets_the_version_dates_its_entries_and_is_tagged(checkout: Path):
    ended = release(checkout, NEXT)

    assert ended.returncode == 0, ended.stderr
    assert f'__version__ = "{NEXT}"' in (checkout / "tuner/__init__.py").read_text()
    log = (checkout / "CHANGELOG.md").read_text()
    assert re.search(
        rf"## \[Unreleased\]\n\n## \[{NEXT}\] – \d{{4}}-\d\d-\d\d\n\n### Added\n\n{re.escape(ENTRY)}\n", log
    )
    assert git(checkout, "tag").split() == [f"v{NEXT}"]
    assert git(checkout, "status", "--porcelain") == ""


def test_what_cannot_be_released_is_refused_and_nothing_changes(checkout: Path):
    for version in ("", "1.2", "0.0.1", __version__):
        assert release(checkout, version).returncode == 2, version
    assert release(checkout, NEXT, checks="false").returncode == 1
    assert git(checkout, "status", "--porcelain") == ""

    write_unreleased(checkout, "")
    assert "uncommitted changes" in release(checkout, NEXT).stderr
    git(checkout, "commit", "--quiet", "--all", "--message", "No entry")
    assert "no entry" in release(checkout, NEXT).stderr
    assert git(checkout, "tag") == ""


def test_the_newest_version_of_the_changelog_is_this_one():
    versions = re.findall(
        r"^## \[([\d.]+)\] – \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )

    assert versions[0] == __version__
    assert versions == sorted(versions, key=lambda version: [*map(int, version.split("."))], reverse=True)

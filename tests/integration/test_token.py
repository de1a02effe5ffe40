"""What a killed tuner has put into a document root is removed by whoever comes next."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from tests.integration.waiting import holding
from tuner.adapters.hosts.local import LocalHost
from tuner.deploy.load_target import check_load_target, remove_tokens
from tuner.errors import RestoreFailed, TargetError
from tuner.hosts.url import parse_url

HOLD = Path(__file__).with_name("hold_token.py")
TUNER = Path(sys.executable).with_name("tuner")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a document root in which a killed tuner has left its file."""
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    directory = tmp_path / "html"
    directory.mkdir()
    (directory / "index.html").write_text("mine")
    with holding(str(HOLD), directory):
        pass
    assert len(list(directory.iterdir())) == 2
    return directory


def restore(root: Path) -> None:
    done = subprocess.run([TUNER, "restore"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(root / "tuner-"))
    assert "1 backup restored" in done.stderr
    assert "Nothing" in subprocess.run([TUNER, "restore"], capture_output=True, text=True, check=True).stderr


def aim_again(root: Path) -> None:
    """Aim as the next check or run does, whatever becomes of that."""
    with pytest.raises(TargetError, match="cannot be resolved"):
        check_load_target(parse_url("http://balancer.invalid/"), LocalHost(), {"gen": LocalHost()})
    assert remove_tokens(LocalHost()) == ()
    assert root.exists()


@pytest.mark.parametrize("come_next", [restore, aim_again])
def test_the_token_of_a_killed_tuner_is_removed(root: Path, come_next: Callable[[Path], None]):
    come_next(root)

    assert [path.name for path in root.iterdir()] == ["index.html"]


def test_a_token_that_cannot_be_removed_is_named_and_not_forgotten(root: Path):
    (token,) = root.glob("tuner-*")
    token.unlink()
    token.mkdir()

    with pytest.raises(RestoreFailed, match=token.name):
        remove_tokens(LocalHost())
    token.rmdir()
    token.write_text("again")

    assert remove_tokens(LocalHost()) == (PurePosixPath(token),)
    assert remove_tokens(LocalHost()) == ()

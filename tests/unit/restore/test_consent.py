"""Managed runs need an agreement, host by host."""

import stat
from pathlib import Path

import pytest

from tuner.restore.consent import FILE, has_agreed, remember_agreement


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_nobody_has_agreed_at_first():
    assert not has_agreed("ssh://web1")


def test_an_agreement_is_for_one_host_and_stays():
    remember_agreement("ssh://web1")
    remember_agreement("ssh://web2")

    assert has_agreed("ssh://web1")
    assert has_agreed("ssh://web2")
    assert not has_agreed("ssh://web")


def test_nobody_else_may_read_where_one_agreed(state: Path):
    remember_agreement("ssh://web1")

    assert stat.S_IMODE((state / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", ["", "{", '"ssh://web1"', "[1, 2]", '{"ssh://web1": true}'])
def test_a_damaged_file_agrees_to_nothing(state: Path, content: str):
    state.mkdir()
    (state / FILE).write_text(content)

    assert not has_agreed("ssh://web1")


def test_a_link_in_the_place_of_the_file_is_not_followed(state: Path, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    state.mkdir()
    (state / FILE).symlink_to(victim)

    with pytest.raises(Exception, match="cannot be written"):
        remember_agreement("ssh://web1")

    assert victim.read_text() == "precious"

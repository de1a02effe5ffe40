from pathlib import Path

import pytest

from tuner.errors import TargetError
from tuner.restore.journal import Journal
from tuner.restore.recovery import confirm, describe_use, find_applied, restore_host
from tuner.testing.fakes import MemoryHost, completed


def test_a_host_that_never_had_a_keeper_is_not_asked_for_root(tmp_path: Path):
    host = MemoryHost(commands={"test": lambda *_: completed(returncode=1)})

    with Journal(tmp_path) as journal:
        assert restore_host(host, journal) == ()

    assert describe_use(host) == ()
    assert {argv[0] for argv in host.ran} == {"test"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("step", [confirm, find_applied])
def test_where_nothing_was_ever_applied_that_is_what_is_said(step, tmp_path: Path):
    host = MemoryHost(name="web1", commands={"test": lambda *_: completed(returncode=1)})

    with (
        Journal(tmp_path) as journal,
        pytest.raises(
            TargetError, match=r"^web1: nothing is applied on this host\. Apply a winner with: tuner apply"
        ),
    ):
        step(host, journal)

from pathlib import Path

from tuner.restore.journal import Journal
from tuner.restore.recovery import describe_use, restore_host
from tuner.testing.fakes import MemoryHost, completed


def test_a_host_that_never_had_a_keeper_is_not_asked_for_root(tmp_path: Path):
    host = MemoryHost(commands={"test": lambda *_: completed(returncode=1)})

    with Journal(tmp_path) as journal:
        assert restore_host(host, journal) == ()

    assert describe_use(host) == ()
    assert {argv[0] for argv in host.ran} == {"test"}
    assert not list(tmp_path.iterdir())

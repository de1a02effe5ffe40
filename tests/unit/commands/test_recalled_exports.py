"""Files of a target that the storage keeps for later exports: no secret, and nobody's but one's own."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.property.hostile_storages import INSTALLED, make_base
from tests.unit.adapters.servers.nginx import layouts
from tests.unit.simulation import make_setup
from tuner.adapters.servers.nginx import Nginx
from tuner.commands.outputs import DIFFERENCES, write_export, write_results
from tuner.commands.session import Reading, open_begun, read
from tuner.errors import TargetError
from tuner.ports import Facts
from tuner.study import load_study
from tuner.study.storage import Storage
from tuner.testing.fakes import completed


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    """Read a finished study whose target has a plain nginx."""
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    make_base(tmp_path / "study", is_whole=False)
    (study,) = (tmp_path / "study").glob("*.yaml")
    found = read(load_study(study))
    host = layouts.make_host(INSTALLED)
    host.commands["readlink"] = lambda _host, argv, _stdin: completed(
        argv, stdout="".join(f"{path}\n" for path in argv[3:]).encode()
    )
    setup = replace(
        make_setup(found.settings, found.space),
        host=host,
        servers={"nginx": Nginx()},
        facts={"nginx": Facts()},
    )
    return replace(found, setup=setup)


def when_the_target_is_gone(reading: Reading) -> Reading:
    target = replace(reading.settings.target, host="ssh://root@127.0.0.1:1")
    return replace(reading, settings=replace(reading.settings, target=target), setup=None)


def storage_of(reading: Reading) -> Storage:
    storage = open_begun(reading.settings)
    assert storage is not None
    return storage


def test_what_a_stranger_wrote_into_the_storage_is_not_exported(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(reading)
    later, told = when_the_target_is_gone(reading), list[str]()
    (written, *_) = write_export(later, "shell", tmp_path / "own", warn=told.append)
    assert b"keepalive_requests" in written.read_bytes()
    assert "as the target was when the study ended" in told[0]

    stored = storage_of(reading).recall(DIFFERENCES)
    assert stored is not None
    changed = replace(stored, text=stored.text.replace("keepalive_requests 9", "keepalive_requests 8"))
    storage_of(reading).remember(DIFFERENCES, changed)
    with pytest.raises(TargetError, match="your tuner did not write them"):
        write_export(later, "shell", tmp_path / "changed")

    storage_of(reading).remember(DIFFERENCES, stored)
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state of another"))
    with pytest.raises(TargetError, match="your tuner did not write them"):
        write_export(later, "shell", tmp_path / "another")


def test_of_files_that_few_may_read_the_storage_holds_none_and_few_may_read_the_exports(
    reading: Reading, tmp_path: Path
) -> None:
    assert reading.setup is not None
    host = reading.setup.host
    host.write(layouts.MAIN, replace(host.read(layouts.MAIN), mode=0o640))

    write_results(reading)

    assert storage_of(reading).recall(DIFFERENCES) is None
    written = write_export(reading, "shell", tmp_path / "out")
    own = [path for path in (reading.settings.folder / "exports").iterdir() if path.is_file()]
    assert own
    assert {stat.S_IMODE(path.stat().st_mode) for path in (*written, *own)} == {0o600}

"""Whoever writes a study's storage makes no command fail badly, hang, run anything or write elsewhere."""

import contextlib
import shutil
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.property.hostile_storages import (
    COMPUTED,
    SCHEMAS,
    STUDY,
    Watch,
    make_base,
    mutate,
    play,
    read_installed,
)
from tests.unit.adapters.servers.nginx import layouts
from tuner.commands.outputs import write_export, write_results
from tuner.commands.page import NAME as PAGE
from tuner.commands.session import Reading, open_begun
from tuner.errors import TargetError
from tuner.study import load_study
from tuner.study.cache import FOLDER
from tuner.study.digest import make_study_key
from tuner.study.facts import DIFFERENCES
from tuner.study.storage import Storage

QUICK = ("show", "show --csv")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "base"
    make_base(folder, is_whole=False)
    return folder


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture
def study(base: Path, tmp_path: Path) -> Path:
    shutil.copytree(base, tmp_path / "study")
    (tmp_path / "study/canary").write_bytes(b"a file of somebody else's\n")
    return tmp_path / "study" / STUDY


def database_of(study: Path) -> Path:
    return study.with_suffix(".study") / "study.db"


def test_the_study_itself_is_read(study: Path, watch: Watch) -> None:
    assert [(each.code, each.violation) for each in play(study, "", watch, commands=QUICK)] == [(0, "")] * 2


@pytest.mark.parametrize("number", range(6))
def test_a_study_that_somebody_changed_is_read_or_refused(study: Path, watch: Watch, number: int) -> None:
    changed = mutate(study.with_suffix(".study"), Random(number))  # noqa: S311 - no secret

    for outcome in play(study, changed, watch, commands=QUICK):
        assert outcome.violation == "", outcome


@pytest.mark.parametrize("script", [*SCHEMAS[:6], COMPUTED])
def test_programs_in_a_database_are_refused_and_never_run(study: Path, watch: Watch, script: str) -> None:
    with contextlib.closing(sqlite3.connect(database_of(study))) as database:
        database.executescript(f"PRAGMA foreign_keys = OFF; {script}")

    for outcome in play(study, script, watch, commands=("show", "report")):
        assert (outcome.code, outcome.violation) == (2, ""), outcome
        assert "the storage has content that tuner never writes" in outcome.said


def test_a_journal_that_names_another_file_deletes_nothing(study: Path, watch: Watch) -> None:
    ends = bytes.fromhex("d9d505f920a163d7")
    name = str(study.parent / "canary").encode()
    sizes = len(name).to_bytes(4, "big") + (sum(name) & 0xFFFFFFFF).to_bytes(4, "big")
    journal = database_of(study).with_name("study.db-journal")
    journal.write_bytes(ends + bytes(504) + (0x40000000 // 4096 + 1).to_bytes(4, "big") + name + sizes + ends)

    (outcome,) = play(study, "journal", watch, commands=("show",))

    assert (outcome.code, outcome.violation) == (2, "")
    assert "a journal that names another file" in outcome.said


def test_a_page_that_somebody_put_into_the_cache_is_not_the_report(study: Path, watch: Watch) -> None:
    key = make_study_key(load_study(study))
    assert key is not None
    place = study.with_suffix(".study") / FOLDER / PAGE
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(key + b"0" * 64 + b"\n<script>alert(1)</script>")

    (outcome,) = play(study, "page", watch, commands=("report",))

    assert (outcome.code, outcome.violation) == (0, "")
    assert b"alert(1)" not in (study.with_suffix(".study") / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "UPDATE study_user_attributes SET value_json = '{}' WHERE key = 'space_facts'",
            "space_facts: the storage has content that tuner never writes",
        ),
        (
            "UPDATE study_user_attributes SET value_json = '[1e18]' WHERE key = 'expected'",
            "expected: the storage has content that tuner never writes",
        ),
        (
            "UPDATE study_user_attributes SET value_json = 'NaN' WHERE key = 'confirm'",
            "confirm: the storage has content that tuner never writes",
        ),
        ("DELETE FROM study_user_attributes", "the study has no measurements yet"),
    ],
)
def test_facts_that_no_tuner_writes_are_named_and_no_target_is_asked_instead(
    study: Path, watch: Watch, script: str, said: str
) -> None:
    with contextlib.closing(sqlite3.connect(database_of(study), isolation_level=None)) as database:
        database.execute(
            "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (1, 'expected', '[0.1]')"
        )
        database.execute(script)

    (outcome,) = play(study, script, watch, commands=("show",))

    assert (outcome.code, outcome.violation) == (2, ""), outcome
    assert said in outcome.said


@pytest.fixture
def reading(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reading:
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state"))
    return read_installed(load_study(study))


def storage_of(reading: Reading) -> Storage:
    storage = open_begun(reading.settings)
    assert storage is not None
    return storage


def test_commands_that_a_stranger_wrote_into_the_storage_are_not_exported(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(reading)
    gone = reading.settings.target.model_copy(update={"host": "ssh://root@127.0.0.1:1"})
    later = replace(reading, settings=replace(reading.settings, target=gone), setup=None)
    told: list[str] = []
    (written, *_) = write_export(later, "shell", tmp_path / "own", warn=told.append)
    assert b"keepalive_requests" in written.read_bytes()
    assert "the target at the end of the study" in "".join(told)

    stored = storage_of(reading).recall(DIFFERENCES)
    assert stored is not None
    changed = replace(stored, text=stored.text.replace("keepalive_requests 9", "keepalive_requests 8"))
    assert changed != stored
    storage_of(reading).remember(DIFFERENCES, changed)
    with pytest.raises(TargetError, match="Another tuner wrote them"):
        write_export(later, "shell", tmp_path / "changed")

    storage_of(reading).remember(DIFFERENCES, stored)
    monkeypatch.setenv("TUNER_STATE", str(tmp_path / "state of another"))
    with pytest.raises(TargetError, match="Another tuner wrote them"):
        write_export(later, "shell", tmp_path / "another")


def test_of_files_that_few_may_read_the_storage_holds_none_and_few_may_read_the_exports(
    reading: Reading, tmp_path: Path
) -> None:
    assert reading.setup is not None
    host = reading.setup.host
    host.write(layouts.MAIN, replace(host.read(layouts.MAIN), mode=0o640))

    write_results(reading)

    assert storage_of(reading).recall(DIFFERENCES) is None
    exports = (path for path in (reading.settings.folder / "exports").iterdir() if path.is_file())
    written = (*write_export(reading, "shell", tmp_path / "out"), *exports)
    assert len(written) > 2
    for path in written:
        mode = 0o700 if path.read_bytes().startswith(b"#!") else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == mode, path

"""Whoever writes a study's storage makes no command fail badly, hang, run anything or write elsewhere."""

import contextlib
import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from tests.property.hostile_storages import COMPUTED, SCHEMAS, STUDY, Watch, make_base, mutate, play
from tuner.commands.page import NAME as PAGE
from tuner.study import load_study
from tuner.study.cache import FOLDER
from tuner.study.digest import make_study_key

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
        assert "this is not what a tuner writes" in outcome.said


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
            "space_facts: this is not",
        ),
        (
            "UPDATE study_user_attributes SET value_json = '[1e18]' WHERE key = 'expected'",
            "expected: this is not",
        ),
        ("UPDATE study_user_attributes SET value_json = 'NaN' WHERE key = 'confirm'", "confirm: this is not"),
        ("DELETE FROM study_user_attributes", "nothing is measured yet"),
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

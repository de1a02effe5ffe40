import shutil

import pytest

from tuner.study.cache import FOLDER, keep, look_up, make_key

KEY = make_key(b"trials", b"study file")
NAME = "explanation.json"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "nginx.study"
    path.mkdir(mode=0o755)
    return path


def test_what_was_kept_is_found_until_something_it_depends_on_changes(folder):
    keep(folder, NAME, KEY, b"what\nwas found")

    assert look_up(folder, NAME, KEY) == b"what\nwas found"
    assert look_up(folder, NAME, make_key(b"trials", b"another file")) is None
    assert look_up(folder, NAME, make_key(b"trial", b"sstudy file")) is None
    assert look_up(folder, "another", KEY) is None


def test_the_last_that_was_kept_is_found(folder):
    keep(folder, NAME, make_key(b"earlier"), b"old")
    keep(folder, NAME, KEY, b"new")

    assert look_up(folder, NAME, KEY) == b"new"
    assert look_up(folder, NAME, make_key(b"earlier")) is None


def test_the_cache_may_be_deleted_at_any_time(folder):
    keep(folder, NAME, KEY, b"found")
    shutil.rmtree(folder / FOLDER)

    assert look_up(folder, NAME, KEY) is None
    keep(folder, NAME, KEY, b"found")
    assert look_up(folder, NAME, KEY) == b"found"


@pytest.mark.parametrize("broken", [b"", KEY, KEY + b"\nfound", b"\xff\x00", b"found"])
def test_what_is_not_whole_is_not_found(folder, broken):
    keep(folder, NAME, KEY, b"found")
    (folder / FOLDER / NAME).write_bytes(broken)

    assert look_up(folder, NAME, KEY) is None


@pytest.mark.parametrize("length", [1, 10, 80, 140])
def test_what_was_cut_off_is_not_found(folder, length):
    keep(folder, NAME, KEY, b"found")
    whole = (folder / FOLDER / NAME).read_bytes()
    (folder / FOLDER / NAME).write_bytes(whole[:-length])

    assert look_up(folder, NAME, KEY) is None


def test_a_link_is_neither_read_nor_written_through(folder, tmp_path):
    keep(folder, NAME, KEY, b"found")
    elsewhere = tmp_path / "elsewhere"
    (folder / FOLDER / NAME).rename(elsewhere)
    (folder / FOLDER / NAME).symlink_to(elsewhere)
    before = elsewhere.read_bytes()

    assert look_up(folder, NAME, KEY) is None
    keep(folder, NAME, KEY, b"other")
    assert elsewhere.read_bytes() == before


def test_where_no_folder_can_be_made_nothing_is_kept(folder):
    (folder / FOLDER).write_text("in the way")

    keep(folder, NAME, KEY, b"found")

    assert look_up(folder, NAME, KEY) is None
    assert (folder / FOLDER).read_text() == "in the way"

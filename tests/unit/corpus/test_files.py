import json
import os
from dataclasses import asdict, replace

import pytest

from tests.unit.corpus.samples import make_study, try_out
from tuner.corpus.files import MOST_BYTES, find_corpus, name_file, read_corpus, write_corpus_study
from tuner.errors import TargetError, UsageError


def test_a_study_that_is_added_again_takes_its_own_place(tmp_path):
    first, again = make_study(), make_study(try_out({"sendfile": False}, 0.3))

    paths = [write_corpus_study(each, tmp_path / "known") for each in (first, again)]

    assert paths[0] == paths[1]
    assert read_corpus(tmp_path / "known") == (again,)
    assert [path.name for path in (tmp_path / "known").iterdir()] == [name_file(first)]


def test_what_was_being_written_when_the_tuner_was_killed_is_not_read(tmp_path):
    write_corpus_study(make_study(), tmp_path)
    (tmp_path / ".nginx-000000000001.json.1234abcd").write_text("{")
    (tmp_path / ".half.json").write_text("{")
    (tmp_path / "README.md").write_text("Whose studies these are.")

    assert len(read_corpus(tmp_path)) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"version": 2},
            ["the file has version 2 of the format, and this tuner reads 1", "add the study again"],
        ),
        ({"version": 2, "unheard": 1}, ["the file has version 2 of the format, and this tuner reads 1"]),
        ({"unheard": 1}, ["unheard", "Remove the file"]),
        ({"finished": "yesterday"}, ["finished", "'yesterday'"]),
        ({"id": "../../x"}, ["id", "'../../x'"]),
    ],
)
def test_a_refusal_names_file_place_and_remedy(tmp_path, change, words):
    (tmp_path / "x.json").write_text(json.dumps({**asdict(make_study()), **change}))

    with pytest.raises(UsageError) as refused:
        read_corpus(tmp_path)

    for word in (str(tmp_path / "x.json"), *words):
        assert word in str(refused.value)


def test_what_no_corpus_holds_is_not_written(tmp_path):
    study = replace(make_study(), defaults={"certificate": "/etc/ssl/private/key"})

    with pytest.raises(UsageError, match=r"defaults\.certificate"):
        write_corpus_study(study, tmp_path / "known")

    assert not (tmp_path / "known").exists()


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "endless.json")

    with pytest.raises(UsageError, match=r"endless\.json: the entry is no regular file"):
        read_corpus(tmp_path)


def test_more_than_memory_bears_is_not_read(tmp_path):
    with (tmp_path / "sparse.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)

    with pytest.raises(
        UsageError, match="the folder has 1 files of 256 MiB in all, more than tuner reads at once"
    ):
        read_corpus(tmp_path)


def test_a_corpus_that_is_not_there_is_filled_first(tmp_path):
    with pytest.raises(UsageError, match=r"the corpus does not exist.*tuner corpus add"):
        read_corpus(tmp_path / "nowhere")


def test_a_corpus_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(TargetError, match=r"cannot be written.*--corpus"):
        write_corpus_study(make_study(), tmp_path / "file" / "known")


def test_the_corpus_of_a_user_lies_where_xdg_says(tmp_path, monkeypatch):
    monkeypatch.delenv("TUNER_CORPUS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert find_corpus() == tmp_path / "tuner" / "corpus"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert find_corpus().parts[-4:] == (".local", "share", "tuner", "corpus")
    monkeypatch.setenv("TUNER_CORPUS", "/elsewhere")
    assert str(find_corpus()) == "/elsewhere"

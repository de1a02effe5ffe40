"""What a finished study found is proposed to a study of another host, by the command line alone."""

import json
import re
import socket

import pytest

from tests.e2e.command_line import CommandLine
from tests.testbed.processors import idle_processors_here
from tuner.study import load_study

BAD_DEFAULT = "{keepalive_requests: {low: 3, default: 3}}"
"""Connections are made all the time, which about halves the goodput: any other value shows it."""
SPACE = f"nginx, {{only: [sendfile, keepalive_requests]}}, {{parameters: {BAD_DEFAULT}}}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A real study that has ended; its figures are nobody's."""
    with idle_processors_here() as through:
        tuner = CommandLine(tmp_path_factory.mktemp("corpus"), through=through)
        study = tuner.write(space=SPACE)
        completed = tuner.run(
            "run", study, "--preset", "quick", "--minutes", "0.5", "--trials", "10", timeout_s=240
        )
        assert completed.returncode in {0, 1}, completed.stderr
        yield tuner, study


@pytest.mark.more
@pytest.mark.alone
def test_a_finished_study_is_kept_without_names_and_gives_hints_to_a_new_one(finished):
    tuner, study = finished

    added = [tuner.run("corpus", "add", study, "--corpus", "known", "--json") for _ in range(2)]
    listed = json.loads(tuner.run("corpus", "list", "--corpus", "known", "--json").stdout)
    begun = tuner.run("init", "nginx", "--corpus", "known", "-o", "later.yaml", "--json", timeout_s=300)

    files = [json.loads(each.stdout)["files"] for each in added]
    assert files[0] == files[1]
    assert len(listed) == 1
    kept = (tuner.folder / files[0][0]).read_text()
    assert not re.search(rf"\b({socket.gethostname()}|{load_study(study).name})\b", kept)
    assert str(tuner.folder) not in kept
    proposed = json.loads(begun.stdout)["corpus"]
    assert proposed["alike"] == 1
    written = (tuner.folder / "later.yaml").read_text()
    for hint in proposed["hints"]:
        assert f'"{hint["parameter"]}": {{value: ' in written
        assert listed[0]["study"] in written
    assert tuner.run("check", "later.yaml").returncode == 0


def test_a_file_that_is_none_of_a_corpus_leaves_no_study_file_behind(tmp_path):
    tuner = CommandLine(tmp_path)
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "evil.json").write_text('{"version": 99}')

    refused = tuner.call("init", "nginx", "--corpus", "known")

    assert refused.returncode == 2
    assert "known/evil.json: the file has version 99 of the format, and this tuner reads 1." in refused.stderr
    assert not (tmp_path / "nginx.yaml").exists()


def test_an_unfinished_study_is_not_added(tmp_path):
    tuner = CommandLine(tmp_path)
    study = tuner.write()

    refused = tuner.call("corpus", "add", study, "--corpus", "known")

    assert refused.returncode == 2
    assert "this storage has no study yet" in refused.stderr
    assert not (tmp_path / "known").exists()

"""The log holds no secrets, and is of a bounded size."""

import logging
import os
import shlex

import pytest

from tuner import log
from tuner.log import BoundedLog, hide, without_secrets

VALUE = "it's-s3cret-v4lue"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return what the log has of a message."""
    monkeypatch.setattr(log, "_secrets", set())
    path = tmp_path / "log"
    handler = BoundedLog(path, lambda path: os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))

    def write(text, *values):
        handler.emit(logging.LogRecord("tuner.demo", logging.INFO, "", 1, text, values, None))
        return path.read_text()

    yield write
    handler.close()


@pytest.mark.parametrize(
    "text",
    [
        "ran ab -H 'Authorization: Basic s3cret' http://a/",
        "ran ab -C 'Cookie: session=s3cret; more=s3cret'",
        'headers: {"Set-Cookie": "s3cret"}',
        "PGPASSWORD=s3cret psql",
        "postgresql://tuner:s3cret@db/tuner",
        "postgresql://tuner:p@s3cret@db/tuner",
        "X-Api-Key: s3cret",
    ],
)
def test_what_its_name_gives_away_is_hidden(written, text):
    found = written("%s", text)

    assert "s3cret" not in found
    assert "(hidden)" in found


def test_a_value_that_is_known_to_be_secret_is_hidden_however_a_shell_quotes_it(written):
    hide([VALUE, "s"])

    found = written("ran %s and %r", shlex.join(["ab", "-H", f"X-Own: {VALUE}"]), VALUE)
    assert "s3cret" not in found
    assert "X-Own" in found
    assert "sends" in without_secrets("sends")


def test_no_character_of_it_commands_a_terminal(written):
    assert "\x1b" not in written("said \x1b[2Jthis\x07")


def test_it_is_rotated_and_never_larger_than_its_bound(written, tmp_path, monkeypatch):
    for number in range(60):
        written("%d %s", number, "x" * 20_000)
    files = sorted(tmp_path.glob("log*"))

    monkeypatch.setattr(log, "MOST_LETTERS", 10**6)
    for number in range(45):
        written("%d %s", number, "x" * 100_000)
    rotated = sorted(tmp_path.glob("log*"))

    assert len(files) == 1  # a record is cut
    assert len(rotated) == 1 + log.OLDER_FILES
    assert sum(path.stat().st_size for path in rotated) <= (1 + log.OLDER_FILES) * log.MOST_BYTES
    assert {path.stat().st_mode & 0o777 for path in rotated} == {0o600}


def test_a_disk_that_is_full_ends_nothing(tmp_path):
    full = BoundedLog(tmp_path / "full", lambda _: os.open("/dev/full", os.O_WRONLY))

    full.emit(logging.LogRecord("tuner.demo", logging.INFO, "", 1, "text", (), None))
    full.close()

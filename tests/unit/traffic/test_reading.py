"""Logs of any size and any content: packed, broken, hostile, in another format."""

import gzip
import io
import sys
from pathlib import Path

import pytest

from tuner.commands.logged_load import LoggedLoad, read_logs
from tuner.errors import UsageError
from tuner.traffic import reading
from tuner.traffic.kinds import KindCounter

LINE = '192.0.2.1 - - [12/Mar/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 100 "-" "-"\n'


def read(*sources: Path | str, log_format: str | None = None) -> LoggedLoad:
    return read_logs(list(map(str, sources)), log_format=log_format, takes_unsafe=False, stands_in=False)


def test_a_packed_log_is_read_as_a_plain_one(tmp_path: Path):
    (tmp_path / "a.log").write_text(LINE.format("/a") * 3)
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(LINE.format("/b").encode() * 2))

    kinds = read(tmp_path / "a.log", tmp_path / "b.log.gz").kinds

    assert {each.path: each.count for each in kinds} == {"/a": 3, "/b": 2}


def test_a_pattern_stands_for_the_files_that_match(tmp_path: Path):
    for name in ("access.log", "access.log.1", "other.log"):
        (tmp_path / name).write_text(LINE.format("/a"))

    assert read(tmp_path / "access.log*").requests == 2
    with pytest.raises(UsageError, match="--from: no file matches"):
        read(tmp_path / "none*")


def test_the_standard_input_is_read_as_a_file(monkeypatch: pytest.MonkeyPatch):
    piped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(LINE.format("/a").encode() * 2)))
    monkeypatch.setattr(sys, "stdin", piped)

    assert read("-").requests == 2


def test_broken_lines_are_counted_and_the_first_are_quoted(tmp_path: Path):
    broken = b'\x1b[2J\x00\xff"\\\n' + b"x" * 2_000_000 + b"\n\n"
    usable = LINE.format("/a").encode()
    (tmp_path / "a.log").write_bytes(usable * 2 + broken + usable * 3 + b"the end is missing")

    load = read(tmp_path / "a.log")

    (source,) = load.sources
    assert (source.requests, source.broken) == (5, 3)
    assert source.shown[0] == r"""line 3: '\x1b[2J\x00ÿ"\\'"""
    assert len(source.shown[1]) < 100
    assert load.describe().isprintable() or "\x1b" not in load.describe()


def test_lines_longer_than_a_block_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 512)
    monkeypatch.setattr(reading, "LONGEST_LINE", 1024)
    lines = [LINE.format("/a"), "x" * 10_000 + "\n", LINE.format("/b" * 50), LINE.format("/c")]
    (tmp_path / "a.log").write_text("".join(lines * 20))

    (source,) = read(tmp_path / "a.log").sources

    assert (source.requests, source.broken) == (60, 20)


def test_a_format_that_is_not_known_is_refused_with_file_line_and_remedy(tmp_path: Path):
    (tmp_path / "a.log").write_text("\n2026-03-12 | GET /a | 200\n" * 3)

    with pytest.raises(UsageError, match=r"a\.log:2: tuner does not know the format of this line") as said:
        read(tmp_path / "a.log")
    assert "'2026-03-12 | GET /a | 200'" in str(said.value)
    assert "--log-format" in str(said.value)


def test_a_format_that_most_lines_are_not_in_is_refused_with_one_of_them(tmp_path: Path):
    (tmp_path / "a.log").write_text(LINE.format("/a"))

    with pytest.raises(UsageError, match=r"1 of 1 lines are not in the format .*: line 1: '192\.0\.2\.1"):
        read(tmp_path / "a.log", log_format='$status "$request"')


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the log is empty"),
        (b"\n\n", "the log is empty"),
        (b'{"log": {"entries": []}}', "the file has no request"),
        (b'{"log": {"entries": 1}}', "this is no HAR file"),
        (b"\x1f\x8b\x08\x00", "tuner cannot read the log"),
        (LINE.format("/a").replace("GET", "POST").encode(), "tuner can send no request of this log"),
    ],
)
def test_a_log_without_a_usable_request_is_refused(tmp_path: Path, content: bytes, said: str):
    (tmp_path / "a.log").write_bytes(content)

    with pytest.raises(UsageError, match=said):
        read(tmp_path / "a.log")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("$remote_addr $status", "logs no request"),
        ("%h %r", "logs no status"),
        ("plain", "is no format"),
    ],
)
def test_a_format_of_which_no_load_can_be_made_is_refused(tmp_path: Path, given: str, said: str):
    (tmp_path / "a.log").write_text(LINE.format("/a"))

    with pytest.raises(UsageError, match=said):
        read(tmp_path / "a.log", log_format=given)


def test_a_format_is_found_by_its_name(tmp_path: Path):
    (tmp_path / "a.log").write_text(LINE.format("/a"))

    assert read(tmp_path / "a.log", log_format="combined").sources[0].format == "combined"


def test_unsafe_methods_are_part_of_the_load_when_asked_for(tmp_path: Path):
    (tmp_path / "a.log").write_text(LINE.format("/a") + LINE.format("/a").replace("GET", "POST"))

    load = read_logs([str(tmp_path / "a.log")], log_format=None, takes_unsafe=True, stands_in=False)

    assert {(each.method, each.path) for each in load.kinds} == {("GET", "/a"), ("POST", "/a")}
    with pytest.raises(UsageError, match="--unsafe-methods: stand-in files answer only GET"):
        read_logs([str(tmp_path / "a.log")], log_format=None, takes_unsafe=True, stands_in=True)


def test_memory_stays_bounded_whatever_paths_a_log_has():
    counter = KindCounter()
    for block in range(20):
        lines = range(block * 1000, block * 1000 + 1000)
        words = ["".join(chr(ord("a") + int(digit)) for digit in str(line)) for line in lines]
        counter.add(
            {
                reading.LogField.REQUEST: [f"GET /{word}.{word} HTTP/1.1" for word in words],
                reading.LogField.STATUS: ["200"] * len(words),
                reading.LogField.BYTES: [str(line) for line in lines],
            }
        )

    assert len(counter.cells) <= 2 * 4096
    assert sum(each.count for each in counter.cells.values()) == 20_000

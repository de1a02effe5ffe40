import sys
from io import BytesIO, TextIOWrapper

import pytest

from tuner.cli.streams import prepare_streams


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("ascii", "on -> off  1.31x [1.27, ...]  5 us  ?\n"),
        ("latin-1", "on -> off  1.31× [1.27, ...]  5 µs  ?\n"),
        ("utf-8", "on → off  1.31× [1.27, …]  5 µs  日\n"),
    ],
)
def test_what_an_encoding_lacks_is_spelled(monkeypatch, encoding, expected):
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding=encoding))
    prepare_streams()

    sys.stdout.write("on → off  1.31× [1.27, …]  5 µs  日\n")
    sys.stdout.flush()

    assert written.getvalue().decode(encoding) == expected

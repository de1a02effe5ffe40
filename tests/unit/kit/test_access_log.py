"""Times of logs in every form, and formats that no line can make slow."""

import pytest

from tuner.kit.access_log import COMBINED, read_second


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("12/Mar/2026:10:00:07 +0000", 1773309607),
        ("12/Mar/2026:10:00:07 -0700", 1773309607),  # as the clock of the log shows it
        ("2026-03-12T10:00:07.655Z", 1773309607),
        ("2026-03-12 10:00:07,655", 1773309607),
        ("1773309607.123", 1773309607),
        ("1773309607123", 1773309607),
        ("1773309607123456", 1773309607),
        *((text, None) for text in ("", "-", "inf", "nan", "1e999", "-5", "32/Foo/2026:10:00:00", "20-3-12")),
    ],
)
def test_a_time_is_read_to_the_second(text: str, second: int | None):
    assert read_second(text) == second


def test_no_line_makes_a_format_backtrack():
    hostile = ("a " * 20_000, '"' * 40_000, "\\" * 40_001, "[" * 40_000, ' "- "' * 10_000)
    for line in hostile:
        assert COMBINED.rows(f"a - - [12/Mar/2026:10:00:00 +0000] {line}\n") == []
        assert COMBINED.rows(f"{line}\n") == []

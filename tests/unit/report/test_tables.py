import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.report.tables import escape_markdown, markdown_table, write_csv


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("open_file_cache", "open_file_cache"),
        ("_default_", "\\_default\\_"),
        ("a|b", "a\\|b"),
        (
            "*all* [is](lost) `x` <b> #3 ~~y~~ \\",
            "\\*all\\* \\[is\\](lost) \\`x\\` \\<b\\> \\#3 \\~\\~y\\~\\~ \\\\",
        ),
        ("\x1b[31mred", "\\[31mred"),
    ],
)
def test_nothing_that_a_name_brings_is_markup(text: str, escaped: str) -> None:
    assert escape_markdown(text).endswith(escaped)
    assert "\x1b" not in escape_markdown(text)


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2)))
def test_whatever_is_in_its_cells_a_table_has_as_many_rows_and_columns_as_it_was_given(
    rows: list[list[str]],
) -> None:
    lines = markdown_table(("", "requests/s"), rows, numbers=True)

    assert lines[1] == "| --- | ---: |"
    assert len("\n".join(lines).splitlines()) == len(rows) + 2
    assert {line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines} == {3}


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\r\0")), min_size=2, max_size=2)))
def test_csv_gives_back_what_was_written(rows: list[list[str]]) -> None:
    text = write_csv(("a", "b"), rows)

    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], *rows]

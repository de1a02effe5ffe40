import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.report.tables import escape_markdown, markdown_table, write_csv
from tuner.report.wording import make_printable


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


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2)))
def test_csv_gives_back_what_was_written_and_no_text_is_a_formula(rows: list[list[str]]) -> None:
    text = write_csv(("a", "b"), rows)

    read = list(csv.reader(io.StringIO(text, newline="")))
    assert [[each.removeprefix("'") for each in row] for row in read] == [
        ["a", "b"], *([make_printable(each).removeprefix("'") for each in row] for row in rows),
    ]  # fmt: skip
    assert not any(each.lstrip().startswith(("=", "+", "-", "@")) for row in read for each in row)


def test_a_negative_number_is_no_formula() -> None:
    assert write_csv(("=1+1", "b"), [("@sum", -1), ("\t=1", None)]) == "'=1+1,b\n'@sum,-1\n' =1,\n"

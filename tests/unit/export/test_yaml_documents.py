"""YAML that people read: files of several lines are blocks, and come back byte for byte."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tuner.export.formats.yaml_documents import dump_yaml

LINES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs", "Cc", "Cf"]), max_size=60)


@given(st.text(max_size=60) | st.lists(LINES, max_size=6).map("\n".join))
def test_any_text_comes_back(text: str) -> None:
    assert yaml.safe_load(dump_yaml({"files": [{"content": text}]})) == {"files": [{"content": text}]}


def test_a_file_with_tabs_and_blanks_at_line_ends_is_a_block() -> None:
    text = "http {\n\tsendfile off;  \n\n\tserver { }\t\n}\n"

    written = dump_yaml({"content": text})

    assert written == "content: |\n  http {\n  \tsendfile off;  \n\n  \tserver { }\t\n  }\n"
    assert yaml.safe_load(written) == {"content": text}


def test_signs_that_steer_a_terminal_stay_escaped() -> None:
    written = dump_yaml({"content": "a\u202eb\nc\x1b[31m\n"})

    assert written.isascii()
    assert "\x1b" not in written

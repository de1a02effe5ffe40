"""Arguments that several commands share."""

import pytest

from tuner.cli.arguments import Form, choose_form
from tuner.errors import UsageError


@pytest.mark.parametrize("form", list(Form))
def test_a_result_is_printed_in_the_form_that_was_asked_for(form: Form):
    asked = {
        "as_json": form is Form.JSON, "as_markdown": form is Form.MARKDOWN, "as_csv": form is Form.CSV,
    }  # fmt: skip

    assert choose_form(**asked) is form


def test_two_forms_at_once_are_refused():
    with pytest.raises(UsageError, match=r"^--json, --csv: these options exclude each other\. Choose one\."):
        choose_form(as_json=True, as_markdown=False, as_csv=True)

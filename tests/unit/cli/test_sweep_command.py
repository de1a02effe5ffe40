"""The sweep command's options, before anything is measured."""

import pytest

from tuner.cli.sweep_command import split_values
from tuner.errors import UsageError


def test_values_stand_between_commas():
    assert split_values("8, 16,off") == ["8", "16", "off"]


@pytest.mark.parametrize("text", ["", "8,,16", "8,"])
def test_an_empty_value_is_refused(text):
    with pytest.raises(UsageError, match="has an empty value"):
        split_values(text)

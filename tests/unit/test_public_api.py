"""What scripts and notebooks import from `tuner`."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tuner


def test_every_public_name_can_be_imported_and_nothing_else_is_public():
    assert tuner.__all__ == sorted(tuner.__all__)
    assert sorted(name for names in tuner._HOMES.values() for name in names) == tuner.__all__
    for name in tuner.__all__:
        assert getattr(tuner, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'tuner' has no attribute 'tune'"):
        _ = tuner.tune


def test_the_import_of_the_package_loads_none_of_its_modules():
    script = "import sys, tuner; print([name for name in sys.modules if name.startswith('tuner.')])"

    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"


def test_a_public_name_says_what_it_does():
    assert all(getattr(tuner, name).__doc__ for name in tuner.__all__)


def test_the_page_for_scripts_names_every_function():
    page = (Path(__file__).parents[2] / "docs/python.md").read_text()
    functions = {name for name in tuner.__all__ if inspect.isfunction(getattr(tuner, name))}

    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == functions


def test_the_glossary_names_ten_things():
    first, blank, *entries = tuner.__doc__.strip().splitlines()

    assert first.endswith(".")
    assert not blank
    assert len(entries) == 10

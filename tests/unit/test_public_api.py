"""What scripts and notebooks import from `tuner`."""

import functools
import inspect
import pydoc
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import tuner
from tuner.field_help import read_fields

PACKAGES_OF_RESULTS = (
    "tuner.explain", "tuner.records", "tuner.report", "tuner.statistics.confirmation.paired_gain",
)  # fmt: skip


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


def results() -> list[type]:
    """Return the public dataclasses, and those that their fields hold: all that a script reads from them."""
    found = [each for each in map(functools.partial(getattr, tuner), tuner.__all__) if is_dataclass(each)]
    classes = {
        each.__name__: each
        for module in [*sys.modules.values()]
        for each in vars(module).values()
        if inspect.isclass(each) and is_dataclass(each) and each.__module__.startswith(PACKAGES_OF_RESULTS)
    }
    for each in found:  # which grows
        named = {word for field in fields(each) for word in re.findall(r"\w+", str(field.type))}
        found += [classes[name] for name in sorted(named & classes.keys()) if classes[name] not in found]
    return found


def test_every_field_and_property_of_a_result_has_a_sentence():
    missing = [
        f"{each.__name__}.{name}"
        for each in results()
        for name, said in (
            *read_fields(each).items(),
            *((name, one.__doc__) for name, one in vars(each).items() if isinstance(one, property)),
        )
        if not said
    ]

    assert {"Summary", "Gain", "Window", "Explanation"} <= {each.__name__ for each in results()}
    assert missing == []


def test_the_help_of_a_result_shows_its_fields():
    told = pydoc.plain(pydoc.render_doc(tuner.Summary))

    assert "gain: Ratio of the winner to the default, with its 95 % interval" in told


def test_the_page_for_scripts_names_every_function():
    page = (Path(__file__).parents[2] / "docs/python.md").read_text()
    functions = {name for name in tuner.__all__ if inspect.isfunction(getattr(tuner, name))}

    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == functions


def test_the_glossary_names_ten_things():
    first, blank, *entries = tuner.__doc__.strip().splitlines()

    assert first.endswith(".")
    assert not blank
    assert len(entries) == 10

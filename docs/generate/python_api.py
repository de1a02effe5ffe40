"""Writes the reference of what scripts import from `tuner`, from docstrings and signatures."""

import inspect
from pathlib import Path

import tuner
from docs.generate.markdown import put

HEAD = """\
# Python

Functions, results and errors that scripts and notebooks import from `tuner`. [From Python](../python.md)
gives you an overview with an example.
"""
NOT_MADE = "   :exclude-members: __init__, __new__\n"
MEMBERS = f"   :members:\n   :undoc-members:\n{NOT_MADE}"


def write_page(folder: Path) -> None:
    """Write `python.md` into a folder: functions, what they return, errors."""
    public = {name: getattr(tuner, name) for name in tuner.__all__}
    functions = [name for name, found in public.items() if inspect.isfunction(found)]
    errors = [name for name in public if name.endswith("Error")]
    objects = [name for name in public if name not in {*functions, *errors}]
    sections = [
        ("Functions", [f".. autofunction:: tuner.{name}\n" for name in functions]),
        ("Parameters and results", [f".. autoclass:: tuner.{name}\n{MEMBERS}" for name in objects]),
        ("Errors", [f".. autoexception:: tuner.{name}\n{NOT_MADE}" for name in errors]),
    ]
    lines = [HEAD]
    for title, directives in sections:
        lines += [f"## {title}", "", *(f"```{{eval-rst}}\n{each}```\n" for each in directives)]
    put(folder / "python.md", "\n".join(lines))

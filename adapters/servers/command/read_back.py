"""Read what a command of the study's author says is in force: lines, or a JSON object."""

import json
import math
import re
from collections.abc import Mapping

from tuner.errors import NotEffective
from tuner.ports import Config, Scalar

_LINE = re.compile(r"^\s*([\w.\[\]-]+)\s*[=:]\s*(.*?)\s*$", re.MULTILINE)
_TRUE = frozenset({"true", "on", "yes", "1"})
_FALSE = frozenset({"false", "off", "no", "0"})
CLOSE = 1e-6
"""Relative difference of two numbers that are the same, written with fewer digits."""


def read_values(printed: str, config: Config) -> dict[str, Scalar]:
    """Return the value in force of each setting of a configuration, in the kind in which it was asked.

    Raises NotEffective when nothing is said of a setting: then it is not known what was measured.
    """
    said = _read_json(printed) if printed.lstrip().startswith("{") else dict(_LINE.findall(printed))
    if missing := [name for name in config if name not in said]:
        shown = " ".join(printed.split())[:200]
        raise NotEffective(
            f"command: read_back says nothing of {', '.join(missing[:5])}; it printed {shown!r}. "
            f"Let it print a line {missing[0]}=VALUE."
        )
    return {name: _as_asked(said[name], asked) for name, asked in config.items()}


def _read_json(printed: str) -> Mapping[str, object]:
    try:
        said = json.loads(printed)
    except ValueError as error:
        raise NotEffective(f"command: read_back printed no JSON: {error}. Correct it.") from error
    return said if isinstance(said, dict) else {}


def _as_asked(said: object, asked: Scalar) -> Scalar:
    """Return what was said in the kind of what was asked; as a text where it is none of that kind."""
    text = json.dumps(said) if isinstance(said, bool) else str(said)
    if isinstance(asked, bool):
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower(), text)
    if isinstance(asked, str):
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    is_same = math.isclose(number, asked, rel_tol=CLOSE if isinstance(asked, float) else 0.0)
    if is_same:
        return asked
    return int(number) if number.is_integer() else number

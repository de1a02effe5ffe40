"""Checks how a study file says that the result of a custom command is read."""

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath

from tuner.adapters.loads._command_result import COUNTS, NUMBER, QUANTILE, QUANTITIES, ResultReader
from tuner.errors import UsageError

_KEYS = ("json", "regex", "scale", "file")
_CONNECT = ("connect_min_ms", "connect_mean_ms", "connect_max_ms")
_EXAMPLE = "Write for example `json: {correct: /requests/ok}`."


def reader_of(result: Mapping[str, object] | None) -> ResultReader:
    """Check the `result` section of a study's load. Raises UsageError for what cannot be used."""
    if not result:
        msg = f"load.result: it is missing, so nothing would be counted. {_EXAMPLE}"
        raise UsageError(msg)
    for key in result:
        if key not in _KEYS:
            msg = f"load.result.{key}: this key is not known. There are {', '.join(_KEYS)}."
            raise UsageError(msg)
    if ("json" in result) == ("regex" in result):
        msg = f"load.result: exactly one of json and regex says how the output is read. {_EXAMPLE}"
        raise UsageError(msg)
    pointers, patterns = _pointers(result.get("json")), _patterns(result.get("regex"))
    names = [*pointers, *(name for pattern in patterns for name in pattern.groupindex)]
    _check_names(names)
    return ResultReader(
        pointers=pointers,
        patterns=patterns,
        scale=_scale(result.get("scale"), names),
        file=_file(result.get("file")),
    )


def _pointers(section: object) -> dict[str, str]:
    if section is None:
        return {}
    if not isinstance(section, Mapping) or not section:
        msg = f"load.result.json: {section!r} is not a mapping of names to JSON pointers. {_EXAMPLE}"
        raise UsageError(msg)
    for name, pointer in section.items():
        if not isinstance(pointer, str) or not pointer.startswith("/"):
            msg = f"load.result.json.{name}: {pointer!r} is no JSON pointer. Write one, such as /requests/ok."
            raise UsageError(msg)
    return {str(name): str(pointer) for name, pointer in section.items()}


def _patterns(section: object) -> tuple[re.Pattern[str], ...]:
    if section is None:
        return ()
    expressions = section if isinstance(section, list | tuple) else [section]
    patterns = []
    for expression in expressions:
        try:
            pattern = re.compile(str(expression), re.MULTILINE)
        except re.error as error:
            msg = f"load.result.regex: {expression!r} is no regular expression: {error}. Correct it."
            raise UsageError(msg) from error
        if not pattern.groupindex:
            msg = (
                f"load.result.regex: {expression!r} has no named group. Write one, such as (?P<correct>\\d+)."
            )
            raise UsageError(msg)
        patterns.append(pattern)
    return tuple(patterns)


def _check_names(names: list[str]) -> None:
    for name in names:
        if name not in COUNTS + QUANTITIES and QUANTILE.fullmatch(name) is None:
            known = (*COUNTS, *QUANTITIES, "latency_p50_ms", "latency_p99_ms")
            near = get_close_matches(name, known, n=1) or ["correct"]
            msg = f"load.result: {name!r} is not known. Did you mean {near[0]!r}?"
            raise UsageError(msg)
        if names.count(name) > 1:
            msg = f"load.result: {name!r} is given twice. Leave one out."
            raise UsageError(msg)
    tells_failures = any(name.startswith("failures_") for name in names)
    if "correct" not in names and not ("requests" in names and tells_failures):
        msg = (
            "load.result: it does not say how many responses were correct. "
            "Give `correct`, or `requests` together with all the `failures_…` that they hold."
        )
        raise UsageError(msg)
    connect = [name for name in names if name in _CONNECT]
    if connect and len(connect) < len(_CONNECT):
        msg = f"load.result: {connect[0]!r} is not enough. Give {', '.join(_CONNECT)}."
        raise UsageError(msg)


def _scale(section: object, names: list[str]) -> dict[str, float]:
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        msg = f"load.result.scale: {section!r} is not a mapping. Write `name: factor` lines."
        raise UsageError(msg)
    for name, factor in section.items():
        if name not in names or name in COUNTS:
            msg = f"load.result.scale.{name}: no measured time of this name is read. Leave it out."
            raise UsageError(msg)
        if NUMBER.fullmatch(str(factor)) is None or not 0 < float(str(factor)) < math.inf:
            msg = f"load.result.scale.{name}: {factor!r} is no factor. Write a positive number."
            raise UsageError(msg)
    return {str(name): float(str(factor)) for name, factor in section.items()}


def _file(name: object) -> str | None:
    if name is None:
        return None
    path = PurePosixPath(str(name))
    if len(path.parts) != 1 or path.name in {"", ".."}:
        msg = f"load.result.file: {str(name)!r} is not a file in {{directory}}. Write a plain name."
        raise UsageError(msg)
    return str(path)

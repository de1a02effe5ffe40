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


def _wrong(key: str, what: str) -> UsageError:
    return UsageError(f"load.result{key}: {what}")


def reader_of(result: Mapping[str, object] | None) -> ResultReader:
    """Check the `result` section of a study's load. Raises UsageError for what cannot be used."""
    if not result:
        raise _wrong("", f"the key is missing, so tuner would count no response. {_EXAMPLE}")
    for key in result:
        if key not in _KEYS:
            raise _wrong(f".{key}", f"this key is not known. Known keys: {', '.join(_KEYS)}.")
    if ("json" in result) == ("regex" in result):
        raise _wrong("", f"the result needs either `json:` or `regex:` to read the output. {_EXAMPLE}")
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
        raise _wrong(".json", f"{section!r} is not a mapping of names to JSON pointers. {_EXAMPLE}")
    for name, pointer in section.items():
        if not isinstance(pointer, str) or not pointer.startswith("/"):
            raise _wrong(f".json.{name}", f"{pointer!r} is no JSON pointer. Write one, such as /requests/ok.")
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
            raise _wrong(
                ".regex", f"{expression!r} is no regular expression: {error}. Correct the expression."
            ) from error
        if not pattern.groupindex:
            raise _wrong(
                ".regex", f"{expression!r} has no named group. Write one, such as (?P<correct>\\d+)."
            )
        patterns.append(pattern)
    return tuple(patterns)


def _check_names(names: list[str]) -> None:
    for name in names:
        if name not in COUNTS + QUANTITIES and QUANTILE.fullmatch(name) is None:
            known = (*COUNTS, *QUANTITIES, "latency_p50_ms", "latency_p99_ms")
            near = get_close_matches(name, known, n=1) or ["correct"]
            raise _wrong("", f"{name!r} is not known. Did you mean {near[0]!r}?")
        if names.count(name) > 1:
            raise _wrong("", f"{name!r} is given twice. Give each name once.")
    tells_failures = any(name.startswith("failures_") for name in names)
    if "correct" not in names and not ("requests" in names and tells_failures):
        raise _wrong(
            "",
            "the result does not contain the number of correct responses. Give `correct`, or `requests` "
            "together with every `failures_…` count that they include.",
        )
    connect = [name for name in names if name in _CONNECT]
    if connect and len(connect) < len(_CONNECT):
        raise _wrong("", f"{connect[0]!r} is not enough. Give all of {', '.join(_CONNECT)}.")


def _scale(section: object, names: list[str]) -> dict[str, float]:
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise _wrong(".scale", f"{section!r} is not a mapping. Write `name: factor` lines.")
    for name, factor in section.items():
        if name not in names or name in COUNTS:
            raise _wrong(f".scale.{name}", "no measured quantity has this name. Leave it out.")
        if NUMBER.fullmatch(str(factor)) is None or not 0 < float(str(factor)) < math.inf:
            raise _wrong(f".scale.{name}", f"{factor!r} is no factor. Write a positive number.")
    return {str(name): float(str(factor)) for name, factor in section.items()}


def _file(name: object) -> str | None:
    if name is None:
        return None
    path = PurePosixPath(str(name))
    if len(path.parts) != 1 or path.name in {"", ".."}:
        raise _wrong(".file", f"{str(name)!r} is not a file in {{directory}}. Write a plain name.")
    return str(path)

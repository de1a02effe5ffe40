"""Regular expressions of nginx (PCRE), matched by Python where both mean the same."""

import re
from functools import lru_cache

# Classes in brackets, what has no counterpart, and groups that are called by number or name.
_OTHERWISE = re.compile(r"\[\[:|\\[QEKRXhHvVNpPGgC]|\(\?(?:[R0-9&|+]|P>|-\d)|\(\*")
_NAMED = re.compile(r"\(\?<(?=[A-Za-z_])|\(\?'([A-Za-z_]\w*)'")
_ENDS = {r"\z": r"\Z", r"\Z": r"(?=\n?\Z)"}


def search_pattern(pattern: str, text: str, *, is_caseless: bool = False) -> re.Match[str] | bool:
    """Return what matched; False where nothing does, True where that cannot be told."""
    compiled = _compile(pattern, is_caseless=is_caseless)
    return True if compiled is None else compiled.search(text) or False


def matches_pattern(pattern: str, text: str, *, is_caseless: bool = False) -> bool:
    """Return whether it matches; one that cannot be told does not."""
    return isinstance(search_pattern(pattern, text, is_caseless=is_caseless), re.Match)


@lru_cache(maxsize=4096)
def _compile(pattern: str, *, is_caseless: bool) -> re.Pattern[str] | None:
    if _OTHERWISE.search(pattern):
        return None
    named = _NAMED.sub(lambda found: f"(?P<{found[1]}>" if found[1] else "(?P<", pattern)
    plain = re.sub(r"\\[zZ]", lambda found: _ENDS[found[0]], named)
    try:
        return re.compile(plain, re.ASCII | (re.IGNORECASE if is_caseless else 0))
    except re.error:
        return None

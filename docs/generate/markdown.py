"""Turns what the project says of itself into Markdown."""

import os
import re
from pathlib import Path

_SPECIAL = re.compile(r"([\\*_<>\[\]|#$])")
_URL = re.compile(r"https?://[^\s;,()]+[^\s;,.()]")


def put(page: Path, text: str) -> None:
    """Write a page whole or not at all: another build, as of the tests, may be reading it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    beside = page.with_suffix(f".{os.getpid()}")
    beside.write_text(text)
    beside.replace(page)


def escape(text: str) -> str:
    """Return plain text as Markdown; addresses in it become links."""
    parts = []
    end = 0
    for found in _URL.finditer(text):
        parts += [_SPECIAL.sub(r"\\\1", text[end : found.start()]), f"<{found[0]}>"]
        end = found.end()
    return "".join([*parts, _SPECIAL.sub(r"\\\1", text[end:])])


def code(text: str) -> str:
    """Return text of one line as code; backquotes in it stay."""
    fence = "``" if "`" in text else "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def fields(rows: dict[str, str]) -> list[str]:
    """Return lines of a field list, without those that say nothing."""
    return [f":{name}: {told}" for name, told in rows.items() if told]

"""Addresses of storages, made from paths and turned into them again."""

from pathlib import Path
from urllib.parse import quote, unquote

SQLITE = "sqlite:///"


def sqlite_url(path: Path) -> str:
    """Return the storage URL of a file, whatever letters are in its path."""
    return f"{SQLITE}{quote(str(path.absolute()))}"


def show_url(url: str) -> str:
    """Return the path of a storage."""
    return unquote(url.removeprefix(SQLITE))

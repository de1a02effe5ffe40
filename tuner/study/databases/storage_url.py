"""Addresses of storages: made from paths, and shown without what is secret in them."""

import re
from pathlib import Path
from urllib.parse import quote, unquote

SQLITE = "sqlite:///"
POSTGRESQL = "postgresql"
GRPC = "grpc://"
SHARED = (POSTGRESQL, GRPC)
"""Addresses at which several machines reach a study."""


def sqlite_url(path: Path) -> str:
    """Return the storage URL of a file, whatever letters are in its path."""
    return f"{SQLITE}{quote(str(path.absolute()))}"


def driver_url(url: str) -> str:
    """Return the address of a PostgreSQL with the driver that tuner brings along, where it names none."""
    return re.sub(r"^postgresql:", "postgresql+psycopg:", url)


def show_url(url: str) -> str:
    """Return where a storage is: the file's path, or the address without user, password and query."""
    if url.startswith(SQLITE):
        return unquote(url.removeprefix(SQLITE))
    scheme, separator, rest = url.partition("://")
    shown = (rest if separator else url).rpartition("@")[2].partition("?")[0]
    if not separator:
        return shown
    # Without a host, the password stands where the port belongs.
    return scheme + separator + re.sub(r"^[^/:]*:(?!\d+(/|$))[^/]*", "…", shown)

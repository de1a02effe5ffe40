"""Addresses of storages: made from paths, and shown without what is secret in them."""

import re
from pathlib import Path
from urllib.parse import quote, unquote

SQLITE = "sqlite:///"
POSTGRESQL = "postgresql"
GRPC = "grpc://"
SHARED = (POSTGRESQL, GRPC)
"""Addresses at which several machines reach a study."""
HOST = r"(\[[\da-fA-F:.]+\]|[^:/,]*)(:\d+)?"
PLACE = re.compile(rf"{HOST}(,{HOST})*(/.*)?")
"""One host or several, each with its port or without, and the name of the database."""
SCHEME = re.compile(r"[A-Za-z][A-Za-z\d+.-]*")
UNSHOWN = "…"


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
    # Further on it may be part of a password.
    is_scheme = separator and SCHEME.fullmatch(scheme)
    return f"{scheme}{separator}{_show_place(rest)}" if is_scheme else _show_place(url)


def _show_place(address: str) -> str:
    """Return where an address leads, and nothing of it where that is not certain."""
    before, _, query = address.partition("?")
    if "@" in query and ":" in before:
        return UNSHOWN  # either of the two may be part of a password
    place = before.rpartition("@")[2]
    # Without a host, the password stands where the port belongs.
    return place if PLACE.fullmatch(place) else UNSHOWN

"""URLs of the virtual hosts of an installed server."""

import re

_PLAIN_NAME = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_STANDARD_PORTS = {"http": 80, "https": 443}


def write_site(scheme: str, name: str, port: int) -> tuple[str, ...]:
    """Return the URL of a virtual host by its name; none where that is a pattern, an address or one word."""
    name = name.lower()
    is_plain = _PLAIN_NAME.fullmatch(name) and not name.replace(".", "").isdigit()
    return (f"{scheme}://{name}{'' if port == _STANDARD_PORTS[scheme] else f':{port}'}/",) if is_plain else ()

"""The virtual hosts of an installed Apache, as URLs.

https://httpd.apache.org/docs/2.4/vhosts/name-based.html
"""

import re
from collections.abc import Sequence

from tuner.adapters.servers.apache.syntax import Directive, Section
from tuner.kit.sites import write_site

_PORT = re.compile(r":(\d+)$")


def list_sites(directives: Sequence[Directive], port: int | None) -> tuple[str, ...]:
    """Return the URL of each virtual host by its ServerName, if that is a plain name.

    Args:
        directives: of the whole server.
        port: that of a virtual host for any port.
    """
    names: dict[Section, str] = {}
    with_tls: set[Section] = set()
    for each in directives:
        host = next((part for part in each.sections if part.name == "virtualhost"), None)
        if host is None or not each.words:
            continue
        if each.name == "servername":
            names[host] = each.words[0].rpartition("://")[2].partition(":")[0]
        elif each.name == "sslengine" and each.words[0].lower() != "off":
            with_tls.add(host)
    found: dict[str, None] = {}
    for host, name in names.items():
        for address in host.argument.split():
            given = _PORT.search(address)
            own = int(given[1]) if given else port
            if own is not None:
                found |= dict.fromkeys(write_site("https" if host in with_tls else "http", name, own))
    return tuple(found)

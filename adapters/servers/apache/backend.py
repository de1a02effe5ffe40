"""Write how a private instance passes requests to the server behind it (mod_proxy, mod_proxy_fcgi)."""

from tuner.adapters.servers.apache.syntax import quote
from tuner.ports import FASTCGI, Upstream

_PROXY = """\
    ProxyPass /server-status !
    ProxyPass / http://{address}/
    ProxyPassReverse / http://{address}/
"""
# As Debian's php8.2-fpm.conf has it.
_PROGRAMS = """\
    <FilesMatch ".+\\.ph(?:ar|p|tml)$">
        SetHandler "proxy:{address}"
    </FilesMatch>
"""


def modules_for(backend: Upstream | None) -> tuple[str, ...]:
    """Name the modules that it takes besides the packaged ones."""
    if backend is None:
        return ()
    return ("proxy", "proxy_fcgi" if backend.protocol == FASTCGI else "proxy_http")


def write_backend(backend: Upstream | None) -> str:
    """Write the lines of the site that pass requests on: to programs those for PHP, to a web server all."""
    if backend is None:
        return ""
    if backend.protocol != FASTCGI:
        return _PROXY.format(address=backend.address)
    socket = backend.socket
    asked = f"fcgi://{backend.address}" if socket is None else f"unix:{quote(socket)}|fcgi://localhost"
    return _PROGRAMS.format(address=asked)

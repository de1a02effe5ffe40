"""Write how a private instance passes requests to the server behind it (mod_proxy, mod_proxy_fcgi).

The settings of a connection pool stand as key=value where the backend is named. PHP is asked by a handler; a
worker of the same name gives it a pool, without which every request makes a connection of its own.
"""

import re
from collections.abc import Iterable, Mapping

from tuner.adapters.servers.apache.syntax import quote
from tuner.ports import FASTCGI, WEBSOCKET, Facts, Scalar, Upstream

OF_BACKEND: Mapping[str, Scalar] = {
    "ProxyPass.enablereuse": True, "ProxyPass.max": 1, "ProxyPass.smax": 1, "ProxyPass.ttl": 0,
    "ProxyPass.acquire": 0, "ProxyPass.retry": 60, "ProxyPass.timeout": 0, "ProxyPass.balancer": False,
    "ProxyPass.flushpackets": "off", "ProxyIOBufferSize": 8192,
}  # fmt: skip
"""A value of each setting that is said of a backend, of the kind that it takes."""
BUFFER = "ProxyIOBufferSize"
"""The one of them that is a directive of its own."""
UPGRADES_ITSELF = (2, 4, 47)
"""From this version on mod_proxy_http turns requests into WebSockets, and ProxyPass takes `upgrade`."""

_KEY = "ProxyPass."
_REUSE, _BALANCER = f"{_KEY}enablereuse", f"{_KEY}balancer"
_UNSET = {f"{_KEY}ttl": "0", f"{_KEY}acquire": "0", f"{_KEY}timeout": "0"}
"""What stands for no key at all; mod_proxy refuses 0."""
_NAMING = re.compile(r'^ *(ProxyPass|BalancerMember|ProxySet) (?:/ |")\S+(?: (.*))?$', re.MULTILINE)
_PAIR = re.compile(r"(\w+)=(\S+)")
_BUFFER_LINE = re.compile(rf"^ *({BUFFER}) (\d+)$", re.MULTILINE)
_PROXY = """\
{before}    ProxyPass /server-status !
    ProxyPass / {address}/{keys}
    ProxyPassReverse / {address}/
"""
_BALANCED = """\
    <Proxy "{balancer}">
        BalancerMember "{address}"{keys}
    </Proxy>
"""
_BALANCER_URL = "balancer://backend"
# https://httpd.apache.org/docs/2.4/mod/mod_proxy_wstunnel.html
_TUNNEL = """\
    RewriteEngine On
    RewriteCond %{{HTTP:Upgrade}} websocket [NC]
    RewriteRule ^/(.*) ws://{address}/$1 [P,L]
"""
# As Debian's php8.2-fpm.conf has it.
_PROGRAMS = """\
    <FilesMatch ".+\\.ph(?:ar|p|tml)$">
        SetHandler "proxy:{address}"
    </FilesMatch>
"""
_POOL = """\
    <Proxy "{name}/" enablereuse=On>
    </Proxy>
    ProxySet "{name}/"{keys}
"""


def modules_for(backend: Upstream | None, words: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    """Name the modules that it takes besides the packaged ones."""
    if backend is None:
        return ()
    if backend.protocol == FASTCGI:
        return ("proxy", "proxy_fcgi")
    if backend.protocol == WEBSOCKET and facts.version < UPGRADES_ITSELF:
        return ("proxy", "proxy_http", "proxy_wstunnel", "rewrite")
    balancing = ("proxy_balancer", "slotmem_shm", "lbmethod_byrequests")
    return ("proxy", "proxy_http", *(balancing if words.get(_BALANCER) == "On" else ()))


def write_backend(backend: Upstream | None, words: Mapping[str, str], facts: Facts) -> str:
    """Write the lines of the site that pass requests on: to programs those for PHP, to a server all.

    Args:
        backend: whom to pass them to.
        words: settings as they are written, by name.
        facts: of the program.
    """
    if backend is None:
        return ""
    if backend.protocol == FASTCGI:
        return _write_programs(backend, words)
    return _write_proxy(backend, words, facts)


def _write_proxy(backend: Upstream, words: Mapping[str, str], facts: Facts) -> str:
    address, keys, before = f"http://{backend.address}", list(_keys(words)), ""
    if backend.protocol == WEBSOCKET and facts.version < UPGRADES_ITSELF:
        before = _TUNNEL.format(address=backend.address)
    elif backend.protocol == WEBSOCKET:
        keys.append("upgrade=websocket")
    elif words.get(_BALANCER) == "On":
        before = _BALANCED.format(balancer=_BALANCER_URL, address=address, keys=_join(keys))
        address, keys = _BALANCER_URL, []
    return _PROXY.format(before=before, address=address, keys=_join(keys))


def _write_programs(backend: Upstream, words: Mapping[str, str]) -> str:
    socket = backend.socket
    name = f"fcgi://{backend.address}" if socket is None else "fcgi://localhost"
    asked = name if socket is None else f"unix:{quote(socket)}|{name}"
    is_kept = words.get(_REUSE) == "On"
    pool = _POOL.format(name=name, keys=_join(_keys(words))) if is_kept else ""
    return pool + _PROGRAMS.format(address=asked)


def _keys(words: Mapping[str, str]) -> Iterable[str]:
    """Yield the settings of the pool as key=value."""
    for name, word in words.items():
        if name.startswith(_KEY) and name != _BALANCER and _UNSET.get(name) != word:
            yield f"{name.removeprefix(_KEY)}={word}"


def _join(keys: Iterable[str]) -> str:
    return "".join(f" {key}" for key in keys)


def read_passing(printed: str) -> dict[str, str]:
    """Return each setting as it is printed where the backend is named; keys that nobody writes are unset."""
    named = [(line[1], line[2] or "") for line in _NAMING.finditer(printed)]
    found = {**_UNSET, _REUSE: "Off", _BALANCER: "Off"}
    found |= {f"{_KEY}{key}": word for _, keys in named for key, word in _PAIR.findall(keys)}
    if any(directive == "BalancerMember" for directive, _ in named):
        found[_BALANCER] = "On"
    return found | dict(_BUFFER_LINE.findall(printed))

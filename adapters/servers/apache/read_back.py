"""Read what Apache takes from the file of a private instance, as mod_info prints what was parsed."""

import re

from tuner.adapters.servers.apache import protocols
from tuner.adapters.servers.apache.backend import OF_BACKEND, read_passing
from tuner.adapters.servers.apache.builds import build_of
from tuner.adapters.servers.apache.config import CONFIG_FILE
from tuner.kit import programs
from tuner.ports import Config, Facts, Host, Scalar, Site

_LINE = re.compile(r"^(\w+) (\S+)$", re.MULTILINE)
_SESSION_CACHE = re.compile(r'"?(?:none|shmcb:.*\((?P<size>\d+)\))"?')


def read_printed(host: Host, config: Config, facts: Facts, site: Site) -> dict[str, Scalar]:
    """Read settings of TLS, HTTP/2 and a backend, which a running Apache does not show."""
    asked = [name for name in config if _is_said(name, site)]
    if not asked:
        return {}
    info = f"LoadModule info_module {build_of(facts).modules}/mod_info.so"
    command = (str(facts.program), "-t", "-f", str(site.directory / CONFIG_FILE), "-C", info)
    dumped = host.run((*command, "-D", "DUMP_CONFIG"), timeout_s=programs.COMMAND_TIMEOUT_S)
    printed = dumped.stdout.decode(errors="replace")
    found = {**read_passing(printed), **_read_spoken(printed)}
    return {name: _read_word(found.get(name, ""), config[name]) for name in asked}


def _is_said(name: str, site: Site) -> bool:
    """Return whether a line of the file says it, and none of another part of the server does."""
    if name in OF_BACKEND:
        return site.backend is not None
    return name in protocols.SETTINGS and protocols.is_spoken(name, site)


def _read_spoken(printed: str) -> dict[str, str]:
    """Return the settings of TLS and HTTP/2 by name; a cache as its size."""
    found = {name: word for name, word in _LINE.findall(printed) if name in protocols.SETTINGS}
    cache = _SESSION_CACHE.fullmatch(found.get("SSLSessionCache", ""))
    return found | ({"SSLSessionCache": cache["size"] or "0"} if cache else {})


def _read_word(word: str, asked: Scalar) -> Scalar:
    """Turn a word into a value of the kind that was asked."""
    if isinstance(asked, bool):
        return word.lower() == "on"
    return int(word) if isinstance(asked, int) and word.isdecimal() else word

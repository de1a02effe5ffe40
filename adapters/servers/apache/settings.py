"""The settings of an installed Apache: what its files say, and what its MPM makes of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tuner.adapters.servers.apache import mpm
from tuner.adapters.servers.apache.syntax import Directive
from tuner.errors import ConfigRejected
from tuner.ports import Facts, Scalar

DEFAULTS: Mapping[str, Scalar] = {
    # server/mpm_common.c; include/ap_listen.h
    "MaxConnectionsPerChild": 0, "MaxMemFree": 2048, "ListenBacklog": 511, "ListenCoresBucketsRatio": 0,
    "SendBufferSize": 0, "ReceiveBufferSize": 0,
    # include/httpd.h, include/http_core.h, server/core.c, modules/http/http_core.c
    "AcceptFilter": "data", "EnableMMAP": True, "EnableSendfile": False, "FlushMaxPipelined": 4,
    "FlushMaxThreshold": 65535, "KeepAlive": True, "KeepAliveTimeout": 5, "MaxKeepAliveRequests": 100,
    "ReadBufferSize": 8192, "Timeout": 60,
}  # fmt: skip
"""What the program does without a line, which is not what distributions write, by its parameter's name; what
an MPM has for itself is in `mpm.MPMS`."""
OF_MODULES: Mapping[str, tuple[str, Scalar]] = {
    "ExtendedStatus": ("status", True),  # modules/generators/mod_status.c, status_init
    "BufferedLogs": ("log_config", False),
    "RequestReadTimeout": ("reqtimeout", True),  # modules/filters/mod_reqtimeout.c, MRT_DEFAULT_*
}
"""What is there only with a module: its name and the default."""
WORDS: Mapping[str, tuple[str, ...]] = {
    # https://httpd.apache.org/docs/2.4/mod/core.html#acceptfilter
    "AcceptFilter": ("data", "none", "httpready", "dataready"),
    # Formats of the packaged configuration; `off` stands for no line at all.
    "CustomLog": ("combined", "common", "off"),
    # https://httpd.apache.org/docs/2.4/mod/mod_proxy.html#proxypass
    "ProxyPass.flushpackets": ("off", "on", "auto"),
}
"""What a setting may be that is neither a number nor a flag."""
LARGEST = 2**31 - 1
"""Beyond it atoi() gives another number."""
# Listen: each line is one more, there is no last one that counts. The others protect, and are never tuned.
_LEFT_ALONE = re.compile(r"listen|limit.*|ssl.*|auth.*|proxy(?:requests|via)")
_OLD_NAMES = {"maxclients": "maxrequestworkers", "maxrequestsperchild": "maxconnectionsperchild"}
_MILLISECONDS = {"": 1000, "s": 1000, "ms": 1, "mi": 60_000, "min": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the files say at the level of the server, by parameter name."""

    values: Mapping[str, Scalar]
    """Values as written, or the program's defaults."""
    written: Mapping[str, str]
    """File and line of those that are written."""
    elsewhere: Mapping[str, str]
    """File and line of those that have another value in a part of the server: no one value is active."""


def read_settings(directives: Iterable[Directive], facts: Facts) -> Settings:
    """Find the last value of each setting.

    Besides those with a known default, every directive counts that has one number, but for what protects.
    """
    values = {**DEFAULTS, **mpm.loaded_mpm(facts).defaults}
    values |= {name: value for name, (module, value) in OF_MODULES.items() if module in facts.modules}
    names = {name.lower(): name for name in values}
    written: dict[str, str] = {}
    elsewhere: dict[str, str] = {}
    limits = {"header": "on", "body": "on"}
    for directive in directives:
        if _LEFT_ALONE.fullmatch(directive.name):
            continue
        name = names.setdefault(_OLD_NAMES.get(directive.name, directive.name), directive.written)
        if directive.sections:
            elsewhere.setdefault(name, directive.where)
            continue
        if directive.name == "requestreadtimeout":
            limits |= dict(word.lower().split("=", 1) for word in directive.words if "=" in word)
            value: Scalar | None = limits["header"] != "0" or limits["body"] != "0"
        else:
            value = _read_value(directive, values.get(name))
        if value is not None:
            values[name], written[name] = value, directive.where
        elif name in values and directive.name != "acceptfilter":
            elsewhere[name] = directive.where
    kept = {name: value for name, value in values.items() if name not in elsewhere}
    return Settings(values=kept, written=written, elsewhere=elsewhere)


def find_withheld(settings: Settings) -> dict[str, str]:
    """Return why settings without a value that could be changed are left alone."""
    unloaded = {
        name: f"the module {module} is not loaded"
        for name, (module, _) in OF_MODULES.items()
        if name not in settings.values
    }
    elsewhere = {
        name: f"{place} sets this for a part of the server, and that line has priority there"
        for name, place in settings.elsewhere.items()
    }
    return {
        "CustomLog": "each site has its own log, and tuner could only add another log",
        **unloaded,
        **elsewhere,
    }


def in_force(settings: Settings, facts: Facts) -> dict[str, Scalar]:
    """Say what the MPM makes of the settings, most of it without a word."""
    loaded = mpm.loaded_mpm(facts)
    values = dict(settings.values)
    number = {name: int(values.get(name, loaded.defaults[name])) for name in (*loaded.sizes, *loaded.limits)}
    ratio = int(values.get("ListenCoresBucketsRatio", 0))
    buckets = max(1, facts.cores // ratio) if ratio > 0 else 1
    forced: dict[str, Scalar] = {
        **loaded.force(number, buckets),
        # More CPUs per listener than half of them make one listener, as without the line (server/listen.c).
        "ListenCoresBucketsRatio": ratio if buckets > 1 else 0,
        "AsyncRequestWorkerFactor": max(int(values.get("AsyncRequestWorkerFactor", 2)), 1),
    }
    return values | {name: value for name, value in forced.items() if name in values or name == "Processes"}


def write_value(name: str, value: Scalar, like: Scalar) -> str:
    """Write the one word that a value is.

    Args:
        name: the setting.
        value: its value.
        like: a value that the setting is known to have, of the kind that it takes.

    Raises ConfigRejected for what is no value of that kind: it never reaches a file.
    """
    if isinstance(like, str):
        is_one = isinstance(value, str) and (value == like or value in WORDS.get(name, ()))
    else:
        is_one = type(value) is type(like) and abs(value) <= LARGEST
    if not is_one:
        shown = f"{name} = {str(value)[:80]!r}"
        raise ConfigRejected(f"apache: {shown} is not one value of this directive. Correct the search space.")
    if isinstance(value, bool):
        return "On" if value else "Off"
    # Integers in plain decimal: most are read with atoi(), which turns 1e4 into 1 without a word.
    return str(value)


def _read_value(directive: Directive, before: Scalar | None) -> Scalar | None:
    """Read a value as its kind of setting is read; None when it is not one."""
    words = directive.words
    match directive.name:
        case "acceptfilter":
            return words[1].lower() if len(words) > 1 and words[0].lower() == "http" else None
        case "keepalivetimeout":
            return _seconds(words[0]) if words else None
        case "asyncrequestworkerfactor":
            return int(float(words[0])) if words and re.fullmatch(r"\d+(\.\d*)?", words[0]) else None
    if len(words) != 1:
        return None
    word = words[0].lower()
    if isinstance(before, bool):
        return {"on": True, "off": False}.get(word)
    # As atoi() does, which most of them are read with: 1k is 1.
    found = re.match(r"[+-]?\d+", word) if isinstance(before, int) else re.fullmatch(r"-?\d{1,18}", word)
    return int(found[0]) if found else None


def _seconds(word: str) -> int | None:
    """Read a time in whole seconds (ap_timeout_parameter_parse)."""
    found = re.fullmatch(r"(\d+)([a-z]*)", word.lower())
    if found is None or found[2] not in _MILLISECONDS:
        return None
    seconds, rest = divmod(int(found[1]) * _MILLISECONDS[found[2]], 1000)
    return None if rest else seconds

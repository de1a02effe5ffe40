"""Write Caddy's configuration as JSON, which its Caddyfile becomes as well, and what Go's runtime reads.

The fixed parts are what Debian's /etc/caddy/Caddyfile (caddy 2.6.2-5) becomes: one site that serves files, no
access log. Without names of hosts there are no certificates; automatic HTTPS is off all the same.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuner.errors import ConfigRejected
from tuner.kit.values import require_known, require_whole
from tuner.ports import Config, Files, Scalar, Site

CONFIG_FILE = "caddy.json"
ENVIRONMENT_FILE = "environment"
SOCKET = "admin.sock"
HOST = "localhost"
"""As which the socket lets itself be asked."""
SERVER = ("apps", "http", "servers", "web")
KEPT = {"probe_interval": "30s", "idle_timeout": "120s", "max_idle_conns_per_host": 32}
"""How connections to the server behind are kept unless something is said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonNumber:
    """A whole number with its unit."""

    unit: str = ""
    """As Go's durations and sizes have it; without one, JSON has a number."""
    least: int = 1
    by_itself: str | None = None
    """Value that stands for what the program finds by itself: nothing is written for it."""

    def write(self, name: str, value: Scalar) -> Scalar | None:
        if self.by_itself is not None and value == self.by_itself:
            return None
        number = require_whole("caddy", name, value, least=self.least)
        return f"{number}{self.unit}" if self.unit else number

    def read(self, written: object) -> Scalar | None:
        """Return the value that was written so; None where nothing, or something else, says it."""
        if written is None:
            return self.by_itself
        text = str(written).removesuffix(self.unit)
        return int(text) if text.lstrip("-").isdecimal() and not isinstance(written, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    def write(self, name: str, value: Scalar) -> Scalar | None:
        if value not in self.words:
            raise ConfigRejected(f"caddy: {name}: {str(value)[:80]!r} is none of {', '.join(self.words)}.")
        return value

    def read(self, written: object) -> Scalar | None:
        return written if isinstance(written, str) else None


Setting = JsonNumber | Word

ENVIRONMENT: Mapping[str, Setting] = {
    "GOMAXPROCS": JsonNumber(by_itself="auto"),
    "GOGC": JsonNumber(),
    "GOMEMLIMIT": JsonNumber(unit="MiB", by_itself="off"),
}
"""https://pkg.go.dev/runtime#hdr-Environment_Variables"""
OF_THE_SERVER: Mapping[str, tuple[tuple[str, ...], Setting]] = {
    "timeouts.idle": (("idle_timeout",), JsonNumber(unit="s")),
}
"""Name → where it stands below the server, and its form."""
OF_THE_PROXY: Mapping[str, tuple[tuple[str, ...], Setting]] = {
    "keepalive": (("transport", "keep_alive", "idle_timeout"), JsonNumber(unit="s")),
    "keepalive_idle_conns_per_host": (("transport", "keep_alive", "max_idle_conns_per_host"), JsonNumber()),
    "read_buffer": (("transport", "read_buffer_size"), JsonNumber()),
    "write_buffer": (("transport", "write_buffer_size"), JsonNumber()),
    "lb_policy": (
        ("load_balancing", "selection_policy", "policy"),
        Word(words=("random", "round_robin", "least_conn", "first")),
    ),
}
"""Name, as a Caddyfile has it → where it stands below the handler `reverse_proxy`, and its form."""


def write_files(config: Config, site: Site) -> Files:
    """Return configuration and environment. Raises ConfigRejected for what is no setting or no value."""
    for name in config:
        require_known("caddy", name, {*ENVIRONMENT, *OF_THE_SERVER, *OF_THE_PROXY})
    written = json.dumps(_configure(config, site), indent=4)
    return {
        site.directory / CONFIG_FILE: f"{written}\n".encode(),
        site.directory / ENVIRONMENT_FILE: _write_environment(config, site).encode(),
    }


def _write_environment(config: Config, site: Site) -> str:
    """Write what the shell exports: the runtime's variables, and where Caddy keeps files of its own."""
    variables = {name: form.write(name, config[name]) for name, form in ENVIRONMENT.items() if name in config}
    places = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), shlex.quote(str(site.directory)))
    both = {**places, **{name: value for name, value in variables.items() if value is not None}}
    lines = [f"unset {' '.join(ENVIRONMENT)}", *(f"export {name}={value}" for name, value in both.items())]
    return "".join(f"{line}\n" for line in lines)


def _configure(config: Config, site: Site) -> dict[str, Any]:
    log = {"output": "file", "filename": str(site.error_log), "roll": False}
    server: dict[str, Any] = {
        "listen": [f":{site.port}"],
        "automatic_https": {"disable": True},
        "routes": [{"handle": _answer(config, site)}],
    }
    _put(server, config, OF_THE_SERVER)
    return {
        "admin": {
            "listen": f"unix/{site.directory / SOCKET}",
            "origins": [HOST],
            "config": {"persist": False},
        },
        "logging": {"logs": {"default": {"level": "INFO", "writer": log}}},
        "apps": {"http": {"servers": {"web": server}}},
    }


def _answer(config: Config, site: Site) -> list[dict[str, Any]]:
    """Return the handlers that answer requests: files, or another web server for all of them."""
    if site.backend is None:
        return [{"handler": "vars", "root": str(site.document_root)}, {"handler": "file_server"}]
    dial = site.backend.address.replace("unix:", "unix/")
    proxy: dict[str, Any] = {"handler": "reverse_proxy", "upstreams": [{"dial": dial}]}
    _put(proxy, config, OF_THE_PROXY)
    if "transport" in proxy:
        proxy["transport"]["protocol"] = "http"
    if "keep_alive" in proxy.get("transport", {}):
        # What is left out of it is zero; without all of it there are defaults (httptransport.go).
        proxy["transport"]["keep_alive"] = {**KEPT, **proxy["transport"]["keep_alive"]}
    return [proxy]


def _put(block: dict[str, Any], config: Config, forms: Mapping[str, tuple[tuple[str, ...], Setting]]) -> None:
    """Put the settings of a configuration where they stand below a block."""
    for name, (path, form) in forms.items():
        if name in config:
            *parents, last = path
            here = block
            for parent in parents:
                here = here.setdefault(parent, {})
            here[last] = form.write(name, config[name])

"""Read back what a running Caddy has active: its configuration, and the environment that it began with.

https://caddyserver.com/docs/api#get-configpath. Go's runtime reads its variables once, before Caddy begins.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from tuner.adapters.servers.caddy.config import (
    ENVIRONMENT,
    HOST,
    OF_THE_PROXY,
    OF_THE_SERVER,
    SERVER,
    SOCKET,
    Setting,
)
from tuner.errors import TargetError
from tuner.kit import programs, readback
from tuner.ports import Argv, Config, FileReader, Host, Scalar, Site


def read_running(host: Host, config: Config, site: Site, pid: int) -> Config:
    """Return what can be read back of a configuration. Raises TargetError when there is no curl."""
    server = _below(_ask(host, site), SERVER)
    handlers = _below(server, ("routes", 0, "handle"))
    proxy = _below(handlers, (0,)) if site.backend is not None else None
    found = {
        **_read_environment(host, pid),
        **_read(server, OF_THE_SERVER),
        **_read(proxy, OF_THE_PROXY),
    }
    return {name: found[name] for name in config if name in found}


def config_command(site: Site) -> Argv:
    """Return the command that asks for the configuration that runs."""
    socket = str(site.directory / SOCKET)
    return ("curl", "-sS", "--max-time", "5", "--unix-socket", socket, f"http://{HOST}/config/")


def _ask(host: Host, site: Site) -> object:
    try:
        completed = host.run(config_command(site), timeout_s=programs.COMMAND_TIMEOUT_S)
    except TargetError as error:
        raise readback.lack_curl(host, "Caddy", error) from error
    try:
        return json.loads(completed.stdout)
    except ValueError:
        return None


def _read(block: object, forms: Mapping[str, tuple[tuple[str, ...], Setting]]) -> dict[str, Scalar]:
    values = {name: form.read(_below(block, path)) for name, (path, form) in forms.items()}
    return {name: value for name, value in values.items() if value is not None}


def _below(block: object, path: tuple[str | int, ...]) -> object:
    """Return what stands there in parsed JSON; None where nothing does."""
    here: Any = block
    for key in path:
        is_there = key in here if isinstance(here, dict) else isinstance(here, list) and isinstance(key, int)
        if not is_there:
            return None
        here = here[key]
    return here


def _read_environment(look: FileReader, pid: int) -> dict[str, Scalar]:
    content = (look.read(PurePosixPath(f"/proc/{pid}/environ")).content or b"").decode(errors="replace")
    given = dict(pair.split("=", 1) for pair in content.split("\0") if "=" in pair)
    if not given:  # it has gone, or shows nothing: that is no sign of what is absent
        return {}
    values = {name: form.read(given.get(name)) for name, form in ENVIRONMENT.items()}
    return {name: value for name, value in values.items() if value is not None}

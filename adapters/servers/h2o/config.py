"""Write an h2o configuration: the packaged one of Debian 12, with the settings of a configuration in it.

Its log goes to a file instead of a pipe to rotatelogs. There is no pid file: h2o would write it as `nobody`.
"""

import json

from tuner.adapters.servers.h2o.settings import SETTINGS
from tuner.errors import ConfigRejected
from tuner.ports import Config, Scalar, Site

CONFIG_FILE = "h2o.conf"

_SITE = """\
server-name: "h2o (Debian)"
error-log: {error_log}
{settings}
listen:
  port: {port}

hosts:
  default:
    paths:
      /:
        file.dir: {document_root}
      /server-status:
        status: ON
"""


def write_configuration(config: Config, site: Site) -> str:
    """Write the whole configuration file."""
    lines = [f"{name}: {_write(name, value)}" for name, value in config.items() if name != "access-log"]
    if _is_logged(config.get("access-log", "on")):
        lines.append(f"access-log: {_quote(site.access_log)}")
    return _SITE.format(
        error_log=_quote(site.error_log),
        settings="\n".join(lines),
        port=site.port,
        document_root=_quote(site.document_root),
    )


def _is_logged(value: Scalar) -> bool:
    if value not in {"on", "off"}:
        raise ConfigRejected(f"h2o: access-log: {str(value)[:80]!r} is neither on nor off.")
    return value == "on"


def _write(name: str, value: Scalar) -> str:
    if name not in SETTINGS:
        raise ConfigRejected(f"h2o: {name[:80]!r} is no setting that is changed. Take it out of the space.")
    return SETTINGS[name].write(name, value)


def _quote(path: object) -> str:
    """Write a path as a double-quoted scalar; what JSON writes is one in YAML as well."""
    return json.dumps(str(path))

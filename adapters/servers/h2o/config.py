"""Write an h2o configuration: the packaged one of Debian 12, with the settings of a configuration in it.

Its log goes to a file instead of a pipe to rotatelogs. There is no pid file: h2o would write it as `nobody`.
"""

import json

from tuner.adapters.servers.h2o.settings import SETTINGS
from tuner.errors import ConfigRejected
from tuner.kit.values import require_known
from tuner.ports import FASTCGI, Config, Scalar, Site

CONFIG_FILE = "h2o.conf"

_SITE = """\
server-name: "h2o (Debian)"
error-log: {error_log}
{settings}
listen:
  port: {port}
{certificate}
hosts:
  default:
    paths:
      /:
{answer}
      /server-status:
        status: ON
"""


# Protocols and ciphers are the program's own; with TLS it always offers HTTP/2 besides HTTP/1.1, and without
# TLS it takes HTTP/2 from who begins with it. Nobody knows whether a certificate of our own is revoked.
_CERTIFICATE = """\
  ssl:
    certificate-file: {file}
    key-file: {key}
    ocsp-update-interval: 0
"""

_FILES = """\
        file.dir: {document_root}"""
_PROGRAMS = """
        file.custom-handler:
          extension: .php
          fastcgi.connect: {address}"""
_PROXY = """\
        proxy.reverse.url: "http://{address}/\""""


def write_configuration(config: Config, site: Site) -> str:
    """Write the whole configuration file."""
    lines = [f"{name}: {_write(name, value)}" for name, value in config.items() if name != "access-log"]
    if _is_logged(config.get("access-log", "on")):
        lines.append(f"access-log: {_quote(site.access_log)}")
    return _SITE.format(
        error_log=_quote(site.error_log),
        settings="\n".join(lines),
        port=site.port,
        certificate=_certificate(site),
        answer=_answer(site),
    )


def _certificate(site: Site) -> str:
    if site.certificate is None:
        return ""
    return _CERTIFICATE.format(file=_quote(site.certificate.file), key=_quote(site.certificate.key))


def _answer(site: Site) -> str:
    """Write what answers requests: files, another web server for all of them, or programs for some."""
    backend, files = site.backend, _FILES.format(document_root=_quote(site.document_root))
    if backend is None:
        return files
    if backend.protocol != FASTCGI:
        return _PROXY.format(address=backend.address)
    place = {"host": "127.0.0.1", "port": backend.port, "type": "tcp"}
    socket = {"port": str(backend.socket), "type": "unix"}
    return files + _PROGRAMS.format(address=json.dumps(place if backend.socket is None else socket))


def _is_logged(value: Scalar) -> bool:
    if value not in {"on", "off"}:
        raise ConfigRejected(f"h2o: access-log: {str(value)[:80]!r} is neither on nor off.")
    return value == "on"


def _write(name: str, value: Scalar) -> str:
    require_known("h2o", name, SETTINGS)
    return SETTINGS[name].write(name, value)


def _quote(path: object) -> str:
    """Write a path as a double-quoted scalar; what JSON writes is one in YAML as well."""
    return json.dumps(str(path))

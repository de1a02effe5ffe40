"""nginx's `log_format` (nginx.org/en/docs/http/ngx_http_log_module.html)."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.tree import read_tree
from tuner.kit.access_log import (
    ADDRESSES,
    EPOCH,
    ISO_TIME,
    LENGTH,
    LOCAL_TIME,
    REQUEST,
    STATUS,
    USER,
    Part,
    Variable,
    compile_format,
    split_format,
)
from tuner.ports import Installation, LineFormat, LogField

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
VARIABLES: Mapping[str, Variable] = {
    "time_local": LOCAL_TIME,
    "time_iso8601": ISO_TIME,
    "msec": EPOCH,
    "request": REQUEST,
    "request_method": Variable(field=LogField.METHOD),
    "request_uri": Variable(field=LogField.TARGET),
    "uri": Variable(field=LogField.TARGET),
    "document_uri": Variable(field=LogField.TARGET),
    "server_protocol": Variable(field=LogField.PROTOCOL),
    "status": STATUS,
    "body_bytes_sent": LENGTH,
    "bytes_sent": LENGTH,
    "request_time": Variable(field=LogField.DURATION, pattern=r"[\d.]+|-"),
    "connection": Variable(field=LogField.CONNECTION, pattern=r"\d+|-"),
    "connection_requests": Variable(field=LogField.SERIAL, pattern=r"\d+|-"),
    "https": Variable(field=LogField.TLS),
    "scheme": Variable(field=LogField.TLS),
    "ssl_protocol": Variable(field=LogField.TLS),
    "gzip_ratio": Variable(field=LogField.ENCODING),
    "sent_http_content_encoding": Variable(field=LogField.ENCODING),
    "remote_user": USER,
    "http_x_forwarded_for": ADDRESSES,
    "proxy_add_x_forwarded_for": ADDRESSES,
}
SEVERAL = "upstream_"
"""Of variables that have a value for each server that was asked, with `, ` and ` : ` between them."""


def read_log_format(text: str) -> LineFormat | None:
    """Return how lines in a format are read; None where it has none of nginx's variables."""
    if not VARIABLE.search(text):
        return None
    return compile_format(text, split_format(text, VARIABLE, _find_variable))


def _find_variable(found: re.Match[str]) -> tuple[Part, ...]:
    name = found[1] or found[2]
    return (VARIABLES.get(name, ADDRESSES if name.startswith(SEVERAL) else Variable()),)


def find_logs(installation: Installation) -> dict[PurePosixPath, str]:
    """Return the logs that the files name by a whole path → the format of each."""
    formats: dict[str, str] = {}
    logs: dict[PurePosixPath, str] = {}
    for each in read_tree(installation).walk():
        name, *more = each.arguments or ("",)
        if each.name == "log_format":
            formats[name] = "".join(text for text in more if not text.startswith("escape="))
        elif each.name == "access_log" and name.startswith("/") and not VARIABLE.search(name):
            logs.setdefault(PurePosixPath(name), more[0] if more and "=" not in more[0] else "combined")
    return {path: formats.get(name, name) for path, name in logs.items()}

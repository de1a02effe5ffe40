"""nginx's `log_format` (nginx.org/en/docs/http/ngx_http_log_module.html)."""

import re
from collections.abc import Mapping

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
from tuner.ports import LineFormat, LogField

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

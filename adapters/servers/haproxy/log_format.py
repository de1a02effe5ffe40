"""HAProxy's HTTP log, as `option httplog` writes it (docs.haproxy.org, configuration, section 8.2.3)."""

from tuner.kit.access_log import LENGTH, LOCAL_TIME, REQUEST, STATUS, Variable, compile_format
from tuner.ports import LogField

HTTP_LOG = compile_format(
    "httplog",
    (
        # Client and port, which are the same for all requests of a connection.
        Variable(field=LogField.CONNECTION, pattern=r"[^ \n]+:\d+"),
        " [",
        LOCAL_TIME,
        "] ",
        Variable(pattern=r"[^ ~\n]*+"),
        Variable(field=LogField.TLS, pattern=r"~?"),  # behind the name of a frontend that speaks TLS
        " ",
        Variable(),
        " ",
        Variable(pattern=r"(?:[-+]?\d+/){4}"),
        Variable(field=LogField.DURATION, pattern=r"[-+]?\d+", unit_s=1e-3),
        " ",
        STATUS,
        " ",
        LENGTH,
        Variable(pattern=r'[^\n"]*+'),
        '"',
        REQUEST,
        '"',
    ),
    # syslog's own: date, host, program, in both of its forms (RFC 3164, RFC 5424)
    before=r'(?:[^\n"\[\]]*+\[\d+\]: |<\d+>1 (?:[^ \n]++ ){6})?+',
)

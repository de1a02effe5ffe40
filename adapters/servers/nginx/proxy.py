"""Write how a private instance passes requests to the server behind it, and read it again.

All of it stands in blocks of the private instance's own: an `upstream`, and the `location` that asks it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tuner.adapters.servers.nginx.edit import join_words
from tuner.adapters.servers.nginx.syntax import Directive
from tuner.adapters.servers.nginx.values import FLAG, Choice, Count, Size, Time, ValueKind
from tuner.ports import FASTCGI, WEBSOCKET, Config, Scalar, Upstream

UPSTREAM = "backend"
"""Name of the `upstream` block."""
KEPT = "upstream_keepalive"

_KIB = Size(suffix="k", least=1)
_OF_UPSTREAM: Mapping[str, ValueKind] = {
    KEPT: Count(),
    "upstream_keepalive_requests": Count(least=1),
    "upstream_keepalive_timeout": Time(),
}
_VERSION = Choice(words={"1.0": 1.0, "1.1": 1.1})
_OF_MODULE: Mapping[str, ValueKind] = {
    "buffering": FLAG, "buffer_size": _KIB, "busy_buffers_size": _KIB, "read_timeout": Time(),
}  # fmt: skip
_OF_LOCATION: Mapping[str, ValueKind] = {
    "proxy_http_version": _VERSION,
    "fastcgi_keep_conn": FLAG,
    **{f"proxy_{name}": kind for name, kind in _OF_MODULE.items()},
    **{f"fastcgi_{name}": kind for name, kind in _OF_MODULE.items()},
}
_BUFFERS = {
    f"{module}_buffers": (f"{module}_buffers_number", f"{module}_buffers_size")
    for module in ("proxy", "fastcgi")
}
_OF_BUFFERS: Mapping[str, ValueKind] = {
    "proxy_buffers_number": Count(least=2), "proxy_buffers_size": _KIB,
    "fastcgi_buffers_number": Count(least=2), "fastcgi_buffers_size": _KIB,
}  # fmt: skip
PARAMETERS: Mapping[str, ValueKind] = {**_OF_UPSTREAM, **_OF_LOCATION, **_OF_BUFFERS}
"""Everything that is said of a backend, by the names of the search space."""

_FILES = "            try_files $uri $uri/ =404;"
# As /etc/nginx/proxy_params of Debian 12 has it.
_PROXY = """\
            proxy_pass http://{address};
            proxy_set_header Host $host;
            proxy_set_header X-Real-IP $remote_addr;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;"""
# As sites-available/default has it in its comments, with the lines of snippets/fastcgi-php.conf that matter.
_PROGRAMS = """
        location ~ \\.php$ {{
            try_files $fastcgi_script_name =404;
            include {parameters};
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_pass {address};{lines}
        }}"""
# https://nginx.org/en/docs/http/websocket.html
_UPGRADE = """
    map $http_upgrade $connection_upgrade {
        default upgrade;
        '' close;
    }"""
_UPGRADE_LINES = (
    "proxy_set_header Upgrade $http_upgrade;",
    "proxy_set_header Connection $connection_upgrade;",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """The parts of a configuration that pass requests on."""

    http: str = ""
    """Blocks beside the server."""
    answer: str = _FILES
    """What the location of everything does."""
    programs: str = ""
    """The location of programs."""


def pass_requests(config: Config, backend: Upstream | None, parameters: str) -> Passing:
    """Write what answers requests: files, another server for all of them, or programs for some.

    Args:
        config: the settings.
        backend: whom to ask.
        parameters: path of the file that names a request's parameters for FastCGI.

    Raises ConfigRejected for a value that is none of its directive's.
    """
    for name in PARAMETERS.keys() & config.keys():  # also of those that this backend has no line for
        PARAMETERS[name].write(name, config[name])
    if backend is None:
        return Passing()
    is_kept = bool(config.get(KEPT))
    http = _write_upstream(config, backend) if is_kept else ""
    address = UPSTREAM if is_kept else backend.address
    if backend.protocol == FASTCGI:
        lines = "".join(f"\n            {line}" for line in _lines(config, "fastcgi"))
        return Passing(
            http=http, programs=_PROGRAMS.format(address=address, lines=lines, parameters=parameters)
        )
    more = list(_lines(config, "proxy"))
    if backend.protocol == WEBSOCKET:
        http += _UPGRADE
        more += _UPGRADE_LINES
        if "proxy_http_version" not in config:
            more.append("proxy_http_version 1.1;")
        if "proxy_buffer_size" in config:
            # Messages use none of these, but nginx asks for several of this size.
            more.append(f"proxy_buffers 8 {_KIB.write('proxy_buffer_size', config['proxy_buffer_size'])};")
    elif is_kept:
        # Otherwise nginx sends `Connection: close` with every request.
        more.append('proxy_set_header Connection "";')
    return Passing(http=http, answer="\n            ".join((_PROXY.format(address=address), *more)))


def _write_upstream(config: Config, backend: Upstream) -> str:
    words = [
        (name.removeprefix("upstream_"), _OF_UPSTREAM[name].write(name, config[name]))
        for name in _OF_UPSTREAM
        if name in config
    ]
    lines = (("server", backend.address), *words)
    return "\n".join(
        (f"\n    upstream {UPSTREAM} {{", *(f"        {join_words(line)};" for line in lines), "    }")
    )


def _lines(config: Config, module: str) -> Iterator[str]:
    """Yield the directives of a location."""
    for name, kind in _OF_LOCATION.items():
        if name in config and name.startswith(f"{module}_"):
            yield f"{name} {kind.write(name, config[name])};"
    number, size = _BUFFERS[f"{module}_buffers"]
    if number in config and size in config:
        words = (_OF_BUFFERS[each].write(each, config[each]) for each in (number, size))
        yield f"{module}_buffers {' '.join(words)};"


def read_passing(directives: Iterable[Directive]) -> dict[str, Scalar | None]:
    """Read these settings from all directives of a configuration; None for a value that is none of ours."""
    found: dict[str, Scalar | None] = {KEPT: 0}
    for each in directives:
        if each.name == "upstream":
            given = {f"upstream_{inner.name}": inner.arguments for inner in each.children}
            found |= {name: _OF_UPSTREAM[name].read(given[name][0]) for name in _OF_UPSTREAM.keys() & given}
        elif each.name in _OF_LOCATION:
            found[each.name] = _OF_LOCATION[each.name].read(each.arguments[0])
        elif each.name in _BUFFERS:
            words = zip(_BUFFERS[each.name], each.arguments, strict=True)
            found |= {name: _OF_BUFFERS[name].read(word) for name, word in words}
    return found

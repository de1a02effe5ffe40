"""The settings of nginx that can be changed in an installed configuration: where they stand, what they say.

Defaults are the program's own, for a directive that nobody gives: https://nginx.org/en/docs/, and the merge
functions of src/core/nginx.c, src/event/ngx_event.c and src/http/ngx_http_core_module.c.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tuner.adapters.servers.nginx.values import (
    FLAG,
    Choice,
    Count,
    CountOrAuto,
    Size,
    Time,
    ValueKind,
    check_number,
)
from tuner.ports import Config, Facts, Scalar

MAIN, EVENTS, HTTP = "", "events", "http"
SSL, V2, GZIP_STATIC = "http_ssl_module", "http_v2_module", "http_gzip_static_module"


class Scope(StrEnum):
    """From which server block nginx takes a setting of `http`."""

    SOCKET = "socket"
    """The default server of the socket that accepts."""
    ADDRESS = "address"
    """The default server of the address that the client connects to."""
    CONNECTION = "connection"
    """The one that the handshake of TLS names, else the default server: before a request is read."""
    REQUEST = "request"
    """The one that the request names, and its location."""


# Before it knows a name (ngx_http_add_listening, ngx_http_init_connection, ngx_http_alloc_request); sessions
# of TLS are looked up in the context that the handshake began with (SSL_set_SSL_CTX(3)).
_SCOPES = {
    "connection_pool_size": Scope.SOCKET,
    "ssl_session_cache": Scope.ADDRESS,
    "ssl_session_timeout": Scope.ADDRESS,
    **dict.fromkeys(
        (
            "client_header_buffer_size", "client_header_timeout", "request_pool_size",
            "http2_max_concurrent_streams", "ssl_buffer_size", "ssl_session_tickets",
        ),
        Scope.CONNECTION,
    ),
}  # fmt: skip


def scope_of(setting: "Setting") -> Scope:
    """Return from which server block a setting of `http` is taken."""
    return _SCOPES.get(setting.directive, Scope.REQUEST)


Words = tuple[str, ...]
"""The arguments of a directive, as nginx reads them."""


class Setting(Protocol):
    """One directive, and the parameters that it holds."""

    @property
    def directive(self) -> str:
        """Name of the directive."""

    @property
    def block(self) -> str:
        """Where it stands: MAIN, EVENTS, or HTTP, where a server block may override it."""

    @property
    def module(self) -> str:
        """Name of the module that has it, as `nginx -V` says it; empty for what each build has."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters in the search space."""

    def default(self, facts: Facts) -> dict[str, Scalar]:
        """Give what the program takes when the directive is not given."""

    def read(self, words: Words) -> dict[str, Scalar]:
        """Give those parameters that the directive says in a way that can be changed."""

    def write(self, words: Words | None, values: Config) -> Words | None:
        """Give the new arguments for the present ones (None: it is not given); None takes the directive out.

        Raises ConfigRejected for a value that nginx would not read back as it is.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWord:
    """A directive whose first argument is the value; what follows is kept."""

    directive: str
    block: str
    kind: ValueKind
    otherwise: Scalar | None
    """The default; None when it depends on how the program is started."""
    before: tuple[tuple[int, ...], Scalar] | None = None
    """A version, and the default until then."""
    module: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.directive,)

    def default(self, facts: Facts) -> dict[str, Scalar]:
        if self.module and self.module not in facts.modules:
            return {}
        if self.before is not None and facts.version < self.before[0]:
            return {self.directive: self.before[1]}
        return {} if self.otherwise is None else {self.directive: self.otherwise}

    def read(self, words: Words) -> dict[str, Scalar]:
        value = self.kind.read(words[0]) if words else None
        return {} if value is None else {self.directive: value}

    def write(self, words: Words | None, values: Config) -> Words | None:
        return (self.kind.write(self.directive, values[self.directive]), *(words or ())[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFileCache:
    """`open_file_cache max=N inactive=T`, or `off`."""

    directive: str = "open_file_cache"
    block: str = HTTP
    module: str = ""
    parameters: tuple[str, ...] = ("open_file_cache", "open_file_cache_inactive")

    def default(self, facts: Facts) -> dict[str, Scalar]:
        return {"open_file_cache": 0, "open_file_cache_inactive": 60}

    def read(self, words: Words) -> dict[str, Scalar]:
        if words == ("off",):
            return {"open_file_cache": 0, "open_file_cache_inactive": 60}
        options = dict(word.split("=", 1) for word in words if "=" in word)
        size, inactive = Count().read(options.get("max", "")), Time().read(options.get("inactive", "60s"))
        if size is None or inactive is None:
            return {}
        return {"open_file_cache": size, "open_file_cache_inactive": inactive}

    def write(self, words: Words | None, values: Config) -> Words | None:
        size = check_number("open_file_cache", values["open_file_cache"])
        inactive = Time().write("open_file_cache_inactive", values["open_file_cache_inactive"])
        return (f"max={size}", f"inactive={inactive}") if size else ("off",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """`output_buffers NUMBER SIZE` and its like."""

    directive: str
    number: int
    size: int
    """In KiB; both are the default."""
    before: tuple[tuple[int, ...], int] | None = None
    """A version, and the number until then."""
    block: str = HTTP
    module: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        return (f"{self.directive}_number", f"{self.directive}_size")

    def default(self, facts: Facts) -> dict[str, Scalar]:
        is_old = self.before is not None and facts.version < self.before[0]
        number = self.before[1] if self.before is not None and is_old else self.number
        return dict(zip(self.parameters, (number, self.size), strict=True))

    def read(self, words: Words) -> dict[str, Scalar]:
        number, size = Count().read("".join(words[:1])), Size(suffix="k").read("".join(words[1:]))
        if number is None or size is None:
            return {}
        return dict(zip(self.parameters, (number, size), strict=True))

    def write(self, words: Words | None, values: Config) -> Words | None:
        number, size = self.parameters
        return (
            Count(least=1).write(number, values[number]),
            Size(suffix="k", least=1).write(size, values[size]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCache:
    """`ssl_session_cache shared:NAME:SIZE`, or `none`; the caches of single workers are left as they are."""

    directive: str = "ssl_session_cache"
    block: str = HTTP
    module: str = SSL
    parameters: tuple[str, ...] = ("ssl_session_cache",)

    def default(self, facts: Facts) -> dict[str, Scalar]:
        return {"ssl_session_cache": 0} if self.module in facts.modules else {}

    def read(self, words: Words) -> dict[str, Scalar]:
        if words == ("none",):
            return {"ssl_session_cache": 0}
        shared = words[0].split(":") if len(words) == 1 else []
        size = Size(suffix="k").read(shared[2]) if len(shared) == 3 and shared[0] == "shared" else None  # noqa: PLR2004 - shared:NAME:SIZE
        return {} if size is None else {"ssl_session_cache": size}

    def write(self, words: Words | None, values: Config) -> Words | None:
        size = Size(suffix="k").write("ssl_session_cache", values["ssl_session_cache"])
        if size == "0k":
            return ("none",)
        named = words[0].split(":")[1] if words and words[0].startswith("shared:") else "tuner"
        return (f"shared:{named}:{size}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPool:
    """`thread_pool default threads=N max_queue=M`: the pool that `aio threads` uses."""

    directive: str = "thread_pool"
    block: str = MAIN
    module: str = "threads"
    parameters: tuple[str, ...] = ("thread_pool_threads",)

    def default(self, facts: Facts) -> dict[str, Scalar]:
        return {"thread_pool_threads": 32} if self.module in facts.modules else {}

    def read(self, words: Words) -> dict[str, Scalar]:
        threads = [Count().read(word.partition("=")[2]) for word in words if word.startswith("threads=")]
        return {"thread_pool_threads": threads[0]} if len(threads) == 1 and threads[0] is not None else {}

    def write(self, words: Words | None, values: Config) -> Words | None:
        threads = f"threads={check_number('thread_pool_threads', values['thread_pool_threads'], 1)}"
        if words is None:
            return ("default", threads, "max_queue=65536")
        return tuple(threads if word.startswith("threads=") else word for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAffinity:
    """`worker_cpu_affinity auto`; masks are left as they are."""

    directive: str = "worker_cpu_affinity"
    block: str = MAIN
    module: str = ""
    parameters: tuple[str, ...] = ("worker_cpu_affinity",)

    def default(self, facts: Facts) -> dict[str, Scalar]:
        return {"worker_cpu_affinity": "off"}

    def read(self, words: Words) -> dict[str, Scalar]:
        return {"worker_cpu_affinity": "auto"} if words == ("auto",) else {}

    def write(self, words: Words | None, values: Config) -> Words | None:
        kind = Choice(words={"auto": "auto", "off": "off"})
        chosen = kind.write("worker_cpu_affinity", values["worker_cpu_affinity"])
        return None if chosen == "off" else (chosen,)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLog:
    """`access_log PATH FORMAT buffer=SIZE flush=TIME`, or `off`."""

    directive: str = "access_log"
    block: str = HTTP
    module: str = ""
    parameters: tuple[str, ...] = ("access_log", "access_log_buffer")

    def default(self, facts: Facts) -> dict[str, Scalar]:
        return {"access_log": "on", "access_log_buffer": 0}

    def read(self, words: Words) -> dict[str, Scalar]:
        if words[:1] == ("off",):
            return {"access_log": "off", "access_log_buffer": 0}
        # Neither a path with a variable nor syslog is buffered.
        if not words or "$" in words[0] or words[0].startswith("syslog:"):
            return {"access_log": "on"} if words else {}
        options = dict(word.split("=", 1) for word in words[2:] if "=" in word)
        if "gzip" in words[2:] or "gzip" in options:
            return {"access_log": "on"}
        size = Size(suffix="k").read(options.get("buffer", "0"))
        return {"access_log": "on"} if size is None else {"access_log": "on", "access_log_buffer": size}

    def write(self, words: Words | None, values: Config) -> Words | None:
        kind = Choice(words={"on": "on", "off": "off"})
        if kind.write("access_log", values["access_log"]) == "off":
            return ("off",)
        # The format has to be named before options can follow.
        path, form, *rest = words if words and len(words) > 1 else (*(words or ()), "combined")
        if "access_log_buffer" not in values:
            return (path, form, *rest)
        size = Size(suffix="k").write("access_log_buffer", values["access_log_buffer"])
        if size == "0k":
            return (path, form, *(word for word in rest if not word.startswith(("buffer=", "flush="))))
        if not any(word.startswith("flush=") for word in rest):
            # One second bounds what a crash can lose and how late a line can be.
            rest = ["flush=1s", *rest]
        if not any(word.startswith("buffer=") for word in rest):
            rest = ["buffer=", *rest]
        return (path, form, *(f"buffer={size}" if word.startswith("buffer=") else word for word in rest))


def _one(
    directive: str,
    block: str,
    kind: ValueKind,
    otherwise: Scalar | None,
    before: tuple[tuple[int, ...], Scalar] | None = None,
) -> OneWord:
    return OneWord(directive=directive, block=block, kind=kind, otherwise=otherwise, before=before)


def _of(module: str, directive: str, kind: ValueKind, otherwise: Scalar) -> OneWord:
    return OneWord(directive=directive, block=HTTP, kind=kind, otherwise=otherwise, module=module)


SETTINGS: Sequence[Setting] = (
    _one("worker_processes", MAIN, CountOrAuto(), 1),
    WorkerAffinity(),
    _one("worker_rlimit_nofile", MAIN, Count(least=1), None),
    _one("timer_resolution", MAIN, Time(suffix="ms"), 0),
    ThreadPool(),
    _one("worker_connections", EVENTS, Count(least=1), 512),
    _one("multi_accept", EVENTS, FLAG, otherwise=False),
    _one("accept_mutex", EVENTS, FLAG, otherwise=False, before=((1, 11, 3), True)),
    _one("accept_mutex_delay", EVENTS, Time(suffix="ms"), 500),
    _one("epoll_events", EVENTS, Count(least=1), 512),
    _one("sendfile", HTTP, FLAG, otherwise=False),
    _one("sendfile_max_chunk", HTTP, Size(suffix="k"), 2048, before=((1, 21, 4), 0)),
    _one("tcp_nopush", HTTP, FLAG, otherwise=False),
    _one("tcp_nodelay", HTTP, FLAG, otherwise=True),
    _one("aio", HTTP, Choice(words={"off": "off", "threads": "threads"}), "off"),
    Buffers(directive="output_buffers", number=2, size=32, before=((1, 9, 5), 1)),
    _one("postpone_output", HTTP, Size(), 1460),
    OpenFileCache(),
    _one("open_file_cache_valid", HTTP, Time(), 60),
    _one("open_file_cache_min_uses", HTTP, Count(), 1),
    _one("open_file_cache_errors", HTTP, FLAG, otherwise=False),
    _one("keepalive_requests", HTTP, Count(), 1000, before=((1, 19, 10), 100)),
    _one("connection_pool_size", HTTP, Size(), 512),
    _one("request_pool_size", HTTP, Size(), 4096),
    _one("client_header_buffer_size", HTTP, Size(), 1024),
    _one("reset_timedout_connection", HTTP, FLAG, otherwise=False),
    AccessLog(),
    _one("keepalive_timeout", HTTP, Time(), 75),
    _one("send_timeout", HTTP, Time(), 60),
    _one("client_header_timeout", HTTP, Time(), 60),
    _one("lingering_close", HTTP, Choice(words={"on": "on", "off": "off", "always": "always"}), "on"),
    _one("etag", HTTP, FLAG, otherwise=True),
    _one("server_tokens", HTTP, FLAG, otherwise=True),
    _one("gzip", HTTP, FLAG, otherwise=False),
    _one("gzip_comp_level", HTTP, Count(least=1), 1),
    _one("gzip_min_length", HTTP, Size(), 20),
    Buffers(directive="gzip_buffers", number=32, size=4),
    _of(GZIP_STATIC, "gzip_static", FLAG, otherwise=False),
    SessionCache(),
    _of(SSL, "ssl_session_timeout", Time(), 300),
    _of(SSL, "ssl_session_tickets", FLAG, otherwise=True),
    _of(SSL, "ssl_buffer_size", Size(least=1), 16384),
    _of(V2, "http2_max_concurrent_streams", Count(least=1), 128),
    _of(V2, "http2_chunk_size", Size(least=1), 8192),
)
"""In the order in which new directives are written."""

"""Write an nginx configuration: the packaged one of Debian 12, with the settings of a configuration in it.

The fixed parts are those of /etc/nginx/nginx.conf and sites-available/default (nginx-common 1.22.1) that have
an effect on a page; only paths and the port are the instance's own. TLS lines are left out: no TLS is spoken;
so is the second listener on [::], which a sandbox's loopback may not have.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from tuner.errors import UsageError
from tuner.ports import Config, CpuSet, Scalar, Site

CONFIG_FILE = "nginx.conf"

_MAIN = ("worker_processes", "worker_rlimit_nofile", "worker_priority", "timer_resolution", "pcre_jit")
_EVENTS = (
    "worker_connections", "multi_accept", "accept_mutex", "accept_mutex_delay", "epoll_events",
)  # fmt: skip
_WRITTEN_WITH_OTHERS = frozenset({
    "worker_cpu_affinity", "thread_pool_threads", "open_file_cache", "open_file_cache_inactive",
    "output_buffers_number", "output_buffers_size", "access_log", "access_log_buffer",
    "listen_backlog", "listen_reuseport", "listen_deferred", "listen_sndbuf",
})  # fmt: skip
_UNITS = {
    "timer_resolution": "ms",
    "accept_mutex_delay": "ms",
    "sendfile_max_chunk": "k",
    "open_file_cache_valid": "s",
    "keepalive_timeout": "s",
    "send_timeout": "s",
    "client_header_timeout": "s",
    "client_body_timeout": "s",
    "lingering_timeout": "s",
}

_SITE = """\
{main}
user www-data;
pid {directory}/nginx.pid;
lock_file {directory}/nginx.lock;
daemon off;
# The packaged level is error; warn also says when worker_connections run out. It costs nothing until then.
error_log {error_log} warn;

events {{
{events}
}}

http {{
    types_hash_max_size 2048;
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    gzip on;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
{http}

    server {{
        listen {listen};
        root {document_root};
        index index.html index.htm index.nginx-debian.html;
        server_name _;
        location / {{
            try_files $uri $uri/ =404;
        }}
    }}
}}
"""


def write_configuration(config: Config, site: Site) -> str:
    """Write the whole configuration file."""
    directory = quote(site.directory)
    http = [name for name in config if name not in {*_MAIN, *_EVENTS, *_WRITTEN_WITH_OTHERS}]
    return _SITE.format(
        main="\n".join((*_directives(_MAIN, config), *_affinity(config, site.cpus), *_thread_pool(config))),
        events="\n".join(f"    {line}" for line in _directives(_EVENTS, config)),
        http="\n".join(f"    {line}" for line in (*_directives(http, config), *_http_combined(config, site))),
        listen=" ".join((f"{site.port} default_server", *_listen_options(config))),
        directory=directory,
        document_root=quote(site.document_root),
        error_log=quote(site.error_log),
    )


def quote(path: PurePosixPath) -> str:
    """Refuse a path that nginx would read as syntax; there is no escape for all of these."""
    if bad := [character for character in str(path) if character in " \t\n\"';{}$\\#"]:
        raise UsageError(f"nginx: the path {str(path)!r} contains {bad[0]!r}. Use a folder without it.")
    return str(path)


def _directives(names: Iterator[str] | tuple[str, ...] | list[str], config: Config) -> Iterator[str]:
    for name in names:
        if name in config:
            yield f"{name} {_show(config[name])}{_unit(name, config[name])};"


def _show(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str) and any(character in value for character in "\n;{}"):
        raise UsageError(f"nginx: the value {value!r} is not one value. Remove the line break, ';' or brace.")
    return str(value)


def _unit(name: str, value: Scalar) -> str:
    return _UNITS.get(name, "") if isinstance(value, int) and not isinstance(value, bool) else ""


def _affinity(config: Config, cpus: CpuSet) -> Iterator[str]:
    # Without a mask nginx takes CPU 0, 1, … even if pinned elsewhere (nginx.c, ngx_set_cpu_affinity).
    if config.get("worker_cpu_affinity", "off") == "auto":
        mask = "".join("1" if cpu in cpus else "0" for cpu in range(max(cpus, default=-1), -1, -1))
        yield f"worker_cpu_affinity auto {mask}".strip() + ";"


def _thread_pool(config: Config) -> Iterator[str]:
    if "thread_pool_threads" in config:
        yield f"thread_pool default threads={config['thread_pool_threads']} max_queue=65536;"


def _http_combined(config: Config, site: Site) -> Iterator[str]:
    if "open_file_cache" in config:
        yield f"open_file_cache {_open_file_cache(config)};"
    if "output_buffers_number" in config and "output_buffers_size" in config:
        yield f"output_buffers {config['output_buffers_number']} {config['output_buffers_size']}k;"
    if config.get("access_log", "on") in {"off", False}:
        yield "access_log off;"
    else:
        buffer = config.get("access_log_buffer", 0)
        # One second bounds what a crash can lose and how late a line can be.
        buffering = f" combined buffer={buffer}k flush=1s" if buffer else ""
        yield f"access_log {quote(site.access_log)}{buffering};"


def _open_file_cache(config: Config) -> str:
    if not config["open_file_cache"]:
        return "off"
    inactive = config.get("open_file_cache_inactive", 60)
    return f"max={config['open_file_cache']} inactive={inactive}s"


def _listen_options(config: Config) -> Iterator[str]:
    if "listen_backlog" in config:
        yield f"backlog={config['listen_backlog']}"
    if config.get("listen_sndbuf"):
        yield f"sndbuf={config['listen_sndbuf']}k"
    for option in ("deferred", "reuseport"):
        if config.get(f"listen_{option}"):
            yield option

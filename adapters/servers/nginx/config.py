"""Write an nginx configuration: the packaged one of Debian 12, with the settings of a configuration in it.

The fixed parts are those of /etc/nginx/nginx.conf and sites-available/default (nginx-common 1.22.1) that have
an effect on a page; only paths and the port are the instance's own. What is of TLS or HTTP/2 stands there
only where that is spoken; the second listener on [::] never, which a sandbox's loopback may not have.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from tuner.adapters.servers.nginx.builds import build_of
from tuner.adapters.servers.nginx.edit import join_words
from tuner.adapters.servers.nginx.listen import OPTIONS, write_options
from tuner.adapters.servers.nginx.proxy import PARAMETERS, pass_requests
from tuner.adapters.servers.nginx.settings import (
    EVENTS,
    HTTP,
    MAIN,
    SETTINGS,
    SSL,
    V2,
    AccessLog,
    OneWord,
    Setting,
    WorkerAffinity,
)
from tuner.errors import UsageError
from tuner.kit.values import require_known
from tuner.ports import HTTP1, Config, CpuSet, Facts, Site

CONFIG_FILE = "nginx.conf"

_KNOWN = (
    frozenset(OPTIONS) | PARAMETERS.keys() | {name for setting in SETTINGS for name in setting.parameters}
)
# Directives of one value first, then those that several parameters make up.
_ORDERED = sorted(SETTINGS, key=lambda setting: not isinstance(setting, OneWord))

_SITE = """\
{main}
user {user};
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
    include {mime_types};
    default_type application/octet-stream;
{packaged}    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
{http}
{upstream}
    server {{
        listen {listen};
{certificate}        root {document_root};
        index index.html index.htm index.nginx-debian.html;
        server_name _;
        location / {{
{answer}
        }}{programs}
    }}
}}
"""


# The packaged lines of nginx.conf; nothing that protects is ever tuned.
_TLS = """\
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
"""
_CERTIFICATE = """\
        ssl_certificate {file};
        ssl_certificate_key {key};
"""
HTTP2_DIRECTIVE = (1, 25, 1)
"""Since then HTTP/2 is a directive of its own, and no word of `listen`."""


def write_configuration(config: Config, site: Site, facts: Facts) -> str:
    """Write the whole configuration file.

    Raises:
        ConfigRejected: a setting is not one that tuner knows, or a value is none of its directive's.
        UsageError: a path would be read as syntax.
    """
    for name in config:
        require_known("nginx", name, _KNOWN)
    directory = quote(site.directory)
    if site.backend is not None and site.backend.socket is not None:
        quote(site.backend.socket)
    build = build_of(facts)
    passing = pass_requests(config, site.backend, quote(build.directory / "fastcgi_params"))
    return _SITE.format(
        main="\n".join(_directives(MAIN, config, site, facts)),
        events="\n".join(f"    {line}" for line in _directives(EVENTS, config, site, facts)),
        http="\n".join(f"    {line}" for line in _directives(HTTP, config, site, facts)),
        packaged=("" if "gzip" in config else "    gzip on;\n") + (_TLS if site.certificate else ""),
        listen=_listen(config, site, facts),
        certificate=_certificate(site, facts),
        user=_user(facts),
        mime_types=quote(build.directory / "mime.types"),
        directory=directory,
        document_root=quote(site.document_root),
        error_log=quote(site.error_log),
        upstream=passing.http,
        answer=passing.answer,
        programs=passing.programs,
    )


def _user(facts: Facts) -> str:
    """Name the user, and the group where it has another name."""
    user = facts.user or build_of(facts).users[0]
    return user if facts.group in ("", user) else f"{user} {facts.group}"


def quote(path: PurePosixPath) -> str:
    """Refuse a path that nginx would read as syntax; there is no escape for all of these."""
    if bad := [character for character in str(path) if character in " \t\n\"';{}$\\#"]:
        raise UsageError(
            f"nginx: the path {str(path)!r} contains {bad[0]!r}. Use a folder without this character."
        )
    return str(path)


def _directives(block: str, config: Config, site: Site, facts: Facts) -> Iterator[str]:
    """Yield the lines of one block; each value is checked by the setting that it belongs to."""
    for setting in _ORDERED:
        own = {name: config[name] for name in setting.parameters if name in config}
        # A log is written also where no configuration speaks of it.
        if setting.block == block and (own or isinstance(setting, AccessLog)):
            lines = tuple(_directive(setting, {**setting.default(facts), **own}, site))
            yield from lines if is_spoken(setting, site) else ()


def is_spoken(setting: Setting, site: Site) -> bool:
    """Return whether what a setting is about is spoken at all: elsewhere its default says nothing."""
    if setting.module == SSL:
        return site.certificate is not None
    return setting.module != V2 or site.protocol != HTTP1


def _directive(setting: Setting, values: Config, site: Site) -> Iterator[str]:
    if isinstance(setting, AccessLog):
        yield _access_log(setting, values, site.access_log)
        return
    words = setting.write(None, values)
    if words is not None:
        mask = _mask(site.cpus) if isinstance(setting, WorkerAffinity) else ()
        yield f"{join_words((setting.directive, *words, *mask))};"


def _mask(cpus: CpuSet) -> tuple[str, ...]:
    # Without a mask nginx takes CPU 0, 1, … even if pinned elsewhere (nginx.c, ngx_set_cpu_affinity).
    mask = "".join("1" if cpu in cpus else "0" for cpu in range(max(cpus, default=-1), -1, -1))
    return (mask,) if mask else ()


def _access_log(setting: AccessLog, values: Config, path: PurePosixPath) -> str:
    words = setting.write((quote(path),), values) or ()
    if words == ("off",):
        return "access_log off;"
    # The format has to be named only where options follow.
    return f"access_log {quote(path)}{' ' + join_words(words[1:]) if words[2:] else ''};"


def _listen(config: Config, site: Site, facts: Facts) -> str:
    options = {name: config[name] for name in OPTIONS if name in config}
    words = (
        *(("ssl",) if site.certificate else ()),
        *(("http2",) if site.protocol != HTTP1 and facts.version < HTTP2_DIRECTIVE else ()),
        "default_server",
    )
    return join_words((str(site.port), *write_options(words, options)))


def _certificate(site: Site, facts: Facts) -> str:
    """Write what a server needs for the protocol besides the words of its `listen`."""
    has_directive = site.protocol != HTTP1 and facts.version >= HTTP2_DIRECTIVE
    lines = "        http2 on;\n" if has_directive else ""
    if site.certificate is None:
        return lines
    return lines + _CERTIFICATE.format(file=quote(site.certificate.file), key=quote(site.certificate.key))
